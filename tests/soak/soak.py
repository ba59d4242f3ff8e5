"""`make soak`: an hour of a host's life in some minutes, with every range accounted for.

Processes start, fork, end and are killed at random, hundreds each second on a fast machine; the
agent is killed and restarted at random. Throughout, no exported counter may fall, not even over the
agent's restarts. At the end, the exported calls equal those that the processes counted themselves,
to within one range in flight for each thread; no files are left; and the agent has no more
descriptors, threads or memory than after its first minute.

Usage: soak.py [--seconds 1200] [--seed N]. Prints a report; exits with 1 if a check fails.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from opscope.bench import segment_directory

HERE = Path(__file__).parent
SLOTS_OF_PROCESS = 64
PROCESS_LIMIT = 1 << 18
LIVE_LIMIT = 60
AGENT = [sys.executable, "-c", "from opscope.cli import main; main()", "agent"]


# A counter's name and labels.
Key = tuple[str, tuple[tuple[str, str], ...]]


class Agent:
    """The command, which can be killed and restarted on the same port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.starts = 0
        self._start()

    def _start(self) -> None:
        self.starts += 1
        environ = {k: v for k, v in os.environ.items() if not k.startswith("OPSCOPE_")}
        environ |= {"OPSCOPE_DIR": str(self._directory), "OPSCOPE_INTERVAL_S": "5"}
        self.process = subprocess.Popen(
            [*AGENT, "--listen", f"127.0.0.1:{self._port}"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=None,
            text=True,
        )
        assert self.process.stdout is not None
        if "http://" not in self.process.stdout.readline():
            raise SystemExit("the agent did not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def restart(self) -> None:
        self.kill()
        self._start()

    def counters(self) -> dict[Key, float]:
        """Every counter of operators on its page."""
        with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=60) as page:
            text = page.read().decode()
        found: dict[Key, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith("opscope_op_") and sample.name.endswith("_total"):
                    found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
        return found

    def holds(self) -> tuple[int, int, float]:
        """Descriptors, threads, MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        facts = dict(line.split(":", 1) for line in status.splitlines())
        descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return descriptors, int(facts["Threads"]), int(facts["VmRSS"].split()[0]) / 1024


class Processes:
    """The processes that the spawner has forked."""

    def __init__(self, directory: Path, slots: Path) -> None:
        self.slots = slots
        slots.write_bytes(b"")
        os.truncate(slots, PROCESS_LIMIT * SLOTS_OF_PROCESS * 8)
        self._spawner = subprocess.Popen(
            [sys.executable, str(HERE / "spawner.py"), str(directory), str(slots)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started = self.killed = 0
        self._live: list[int] = []

    def start(self, seed: int) -> None:
        assert self._spawner.stdin is not None
        assert self._spawner.stdout is not None
        if self.started < PROCESS_LIMIT:
            print(self.started * SLOTS_OF_PROCESS, seed, file=self._spawner.stdin, flush=True)
            self._live.append(int(self._spawner.stdout.readline()))
            self.started += 1

    def look(self) -> int:
        """The number of live ones."""
        self._live = [pid for pid in self._live if Path(f"/proc/{pid}").exists()]
        return len(self._live)

    def kill_one(self, chosen: random.Random) -> None:
        if self._live:
            try:
                os.kill(self._live.pop(chosen.randrange(len(self._live))), signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                pass

    def end(self) -> None:
        assert self._spawner.stdin is not None
        for pid in self._live:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._spawner.stdin.close()
        self._spawner.wait()

    def counted(self) -> tuple[int, int]:
        """The ranges that the processes counted, and the number of threads that did."""
        total = threads = 0
        with self.slots.open("rb") as file:
            while raw := file.read(1 << 20):
                if any(raw):
                    numbers = memoryview(raw).cast("Q")
                    total += sum(numbers)
                    threads += sum(number > 0 for number in numbers)
                if file.tell() > self.started * SLOTS_OF_PROCESS * 8:
                    break
        return total, threads


def calls(counters: Mapping[Key, float]) -> int:
    return round(
        sum(
            value
            for (name, labels), value in counters.items()
            if name == "opscope_op_duration_seconds_count"
            and dict(labels)["op"].startswith("soak::")
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    chosen = random.Random(options.seed)
    faults: list[str] = []
    with segment_directory() as directory:
        place = Path(directory) / "segments"
        agent, processes = Agent(place), Processes(place, Path(directory) / "slots")
        before: dict[Key, float] = {}
        held: list[tuple[int, int, float]] = []
        most_files = scrapes = 0
        began = time.monotonic()
        next_restart, next_scrape = began + 10, began + 1
        while (now := time.monotonic()) < began + options.seconds:
            if processes.look() < LIVE_LIMIT:
                for _ in range(chosen.randrange(1, 16)):
                    processes.start(chosen.randrange(1 << 40))
            if chosen.random() < 0.2:
                processes.kill_one(chosen)
            if now > next_restart:
                held.append(agent.holds())
                agent.restart()
                next_restart = time.monotonic() + chosen.uniform(1, 30)
            if now > next_scrape:
                next_scrape = now + chosen.uniform(0.2, 3)
                found = agent.counters()
                scrapes += 1
                fallen = [key for key, value in before.items() if found.get(key, 0) < value]
                if fallen:
                    faults.append(f"{len(fallen)} counters fell, {fallen[0]} among them")
                before = found
                most_files = max(most_files, len(list(place.glob("*.seg"))))
            time.sleep(chosen.random() * 0.03)
        processes.end()
        time.sleep(6)  # unknown children end by themselves within four seconds
        agent.restart()
        deadline = time.monotonic() + 120
        while any(place.glob("*.seg")) and time.monotonic() < deadline:
            agent.counters()
        exported = calls(agent.counters())
        counted, threads = processes.counted()
        held.append(agent.holds())
        left = sorted(path.name for path in place.iterdir())
        agent.kill()

    if not counted <= exported <= counted + threads:
        faults.append(f"{exported:,} calls exported of {counted:,} counted")
    if left != ["agent.state"]:
        faults.append(f"files left: {left[:5]}, {len(left)} in all")
    first = held[min(2, len(held) - 1)]
    for what, one, allowed in (
        ("descriptors", 0, 4),
        ("threads", 1, 4),
        ("MiB", 2, 8),
    ):
        if held[-1][one] > first[one] + allowed:
            faults.append(f"{what} of the agent grew from {first[one]:g} to {held[-1][one]:g}")
    print(
        f"seed {options.seed}: {time.monotonic() - began:.0f} s\n"
        f"processes started {processes.started:,}, killed from outside {processes.killed:,}, "
        f"threads that recorded {threads:,}\n"
        f"agent started {agent.starts} times, scraped {scrapes:,} times\n"
        f"calls exported {exported:,}, counted {counted:,}: {exported - counted:+,}, "
        f"at most {threads:,} in flight\n"
        f"segments at most {most_files:,} at a time, files left {len(left)}\n"
        f"agent: descriptors, threads, MiB: {first} after its first minute, {held[-1]} in the end"
    )
    for fault in faults:
        print(f"does not hold: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except URLError as error:
        sys.exit(f"does not hold: the agent does not answer: {error}")
