"""Privileges that root drops at the agent's start; in separate processes, as it is permanent."""

import subprocess
import sys

PROGRAM = """
import os, sys
from opscope.server import privileges

uid = int(sys.argv[1])
if os.geteuid() == 0 and uid:
    os.setresuid(uid, uid, uid)
print(privileges.drop(keep_low_ports="low" in sys.argv))
with open("/proc/self/status") as file:
    facts = dict(line.split(":", 1) for line in file)
print(int(facts["CapEff"], 16), int(facts["CapPrm"], 16), int(facts["NoNewPrivs"]))
"""


def said(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout.split()


def capabilities() -> int:
    with open("/proc/self/status") as file:
        facts = dict(line.split(":", 1) for line in file)
    return int(facts["CapEff"], 16)


def test_three_capabilities_are_left_of_those_there_were() -> None:
    kept = capabilities() & 0b1110
    assert said("0") == ["True", str(kept), str(kept), "1"]


def test_a_low_port_needs_one_more() -> None:
    kept = capabilities() & (0b1110 | 1 << 10)
    assert said("0", "low") == ["True", str(kept), str(kept), "1"]


def test_dropping_without_privileges_changes_nothing() -> None:
    assert said("65534") == ["True", "0", "0", "1"]
