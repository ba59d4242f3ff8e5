"""A signal at any point ends the agent's loop."""

import subprocess
import sys

from opscope.server.loop import Stop

SIGNALS = 5000
# A signal some microseconds into each wait: if the waiting thread held a lock for part of them, one
# signal in a few hundred would find it held.
PROGRAM = f"""
import random, signal
from opscope.server.loop import Stop

for number in range({SIGNALS}):
    stop = Stop()
    signal.signal(signal.SIGALRM, lambda *_: stop.ask())
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6))
    while not stop.wait(20e-6):
        pass
print("ended")
"""


def test_a_signal_that_interrupts_a_wait_ends_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "ended\n"


def test_a_timeout_that_is_over_before_the_wait_begins_ends_it() -> None:
    stop = Stop()
    assert not stop.wait(1e-9)
    stop.ask()
    stop.ask()
    assert stop.wait(1e-9)
    assert stop.wait(1e-9)  # a request is kept
