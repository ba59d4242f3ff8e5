"""Forks the soak's processes quickly: reads lines `<first slot> <seed>`, prints the pid of each.

A process records ranges, in threads and in children that it forks at random, and after each range
increments its slot of a shared file. It ends at random, or soak.py kills it. Usage: spawner.py
DIRECTORY SLOTS_FILE
"""

import mmap
import os
import random
import signal
import sys
import threading
import time

import opscope
from opscope.record import recorder

SLOTS_OF_PROCESS = 64


record_function = opscope.record_function


def work(slots: memoryview, slot: int, seed: int, until: float) -> None:
    chosen = random.Random(seed)
    names = [f"soak::op{number}" for number in chosen.sample(range(40), 3)]
    count = 0
    while time.monotonic() < until:
        for _ in range(chosen.randrange(1, 200)):
            with record_function(names[count % 3]):
                pass
            count += 1
            slots[slot] = count
        time.sleep(chosen.random() * 0.05)


def live(directory: str, slots: memoryview, first: int, seed: int, depth: int = 0) -> None:
    """One process's life; never returns."""
    chosen = random.Random(seed)
    until = time.monotonic() + chosen.choice([0.0] * 12 + [0.01] * 4 + [0.1] * 2 + [1.0, 4.0])
    if depth == 0:
        recorder.start(directory)
        recorder.note("service.name", f"soak{seed % 3}")
    threads = [
        threading.Thread(target=work, args=(slots, first + number, seed + number, until))
        for number in range(chosen.randrange(3))
    ]
    for thread in threads:
        thread.start()
    own = first + 10
    if depth < 2 and chosen.random() < 0.3:
        child = os.fork()
        if child == 0:
            live(directory, slots, first + 20 * (depth + 1), seed + 7, depth + 1)
    work(slots, own, seed + 3, until)
    for thread in threads:
        thread.join()
    if chosen.random() < 0.5:
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    directory, path = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with open(path, "r+b") as file:
        slots = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    for line in sys.stdin:
        first, seed = map(int, line.split())
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            live(directory, slots, first, seed)
        print(child, flush=True)


if __name__ == "__main__":
    main()
