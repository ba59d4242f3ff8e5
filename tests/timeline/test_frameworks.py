"""A profile sees imported frameworks in a program that is not attached."""

import os
import subprocess
import sys

import pytest


def printed(code: str, **environ: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, env={**clean, **environ}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


NUMPY = """
import os, numpy, opscope
before = os.listdir("/proc/self/task")
with opscope.profile() as prof:
    numpy.add(1.0, 2.0)
print([(row.key, row.count) for row in prof.key_averages()])
print(opscope.attach_status().attached, os.listdir("/proc/self/task") == before)
"""


def test_numpy_is_seen_without_attaching_and_nothing_else_begins() -> None:
    assert printed(NUMPY) == "[('numpy::add', 1)]\nFalse True\n"


@pytest.mark.parametrize("environ", [{"OPSCOPE_ENABLED": "0"}, {"OPSCOPE_BRIDGES": "torch"}])
def test_what_is_switched_off_stays_off(environ: dict[str, str]) -> None:
    assert printed(NUMPY, **environ).startswith("[]\n")


def test_a_framework_that_cannot_be_seen_is_named() -> None:
    code = NUMPY.replace("with", "numpy.__version__ = '9.9'\nwith", 1)
    said = printed(code)
    assert said.startswith("[]\n")
    assert "<string>:5: RuntimeWarning: operators of numpy are not in this profile: " in said


def test_pytorch_is_seen_without_attaching() -> None:
    pytest.importorskip("torch")
    code = """
import torch, opscope
x = torch.ones(3)
for _ in range(2):
    with opscope.profile() as prof:
        x.add(x)
    print([(row.key, row.count) for row in prof.key_averages()])
"""
    assert printed(code) == "[('aten::add', 1)]\n" * 2
