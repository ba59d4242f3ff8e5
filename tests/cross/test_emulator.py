"""Which programs the kernel gives to QEMU, and what is said if it cannot. QEMU does not start."""

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from native.cross import debian, emulator

X86_64, AARCH64 = 62, 183
EXECUTABLE, SHARED = 2, 3


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    started: list[list[str]] = []

    def start(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        started.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(emulator, "qemu", lambda: Path("/build/qemu"))
    monkeypatch.setattr(subprocess, "run", start)
    return started


def head(kind: int, machine: int) -> bytes:
    """Of an ELF file of 64 bits."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", kind, machine)


def takes(rule: str, file: bytes) -> bool:
    """As the kernel compares them (Documentation/admin-guide/binfmt-misc.rst)."""
    _, _, kind, offset, wanted, mask, interpreter, flags = rule.split(":")
    assert (kind, offset, interpreter, flags) == ("M", "", "/build/qemu", "F")
    wanted_bytes, mask_bytes = (
        text.encode().decode("unicode_escape").encode("latin-1") for text in (wanted, mask)
    )
    assert len(wanted_bytes) == len(mask_bytes)
    return all(
        not (one ^ other) & counts
        for one, other, counts in zip(file, wanted_bytes, mask_bytes, strict=False)
    )


def test_qemu_gets_the_programs_for_aarch64_and_no_others(commands: list[list[str]]) -> None:
    *_, rule = emulator.prefix()
    assert len(rule) < 1920  # more, the kernel refuses
    assert takes(rule, head(EXECUTABLE, AARCH64))
    assert takes(rule, head(SHARED, AARCH64))
    assert not takes(rule, head(SHARED, X86_64))
    assert not takes(rule, Path(sys.executable).read_bytes()[:20])
    assert not takes(rule, b"#!/bin/sh\nexit 0\n   ")


def test_it_is_tried_before_it_is_relied_on(commands: list[list[str]]) -> None:
    prefix = emulator.prefix()
    assert commands == [[*prefix, "true"]]
    assert prefix[:2] == ["unshare", "--user"]  # the machine's own rules stay as they are


def test_a_kernel_that_does_not_let_it_is_named_as_the_reason(
    monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]
) -> None:
    refused = "mount: /proc/sys/fs/binfmt_misc: permission denied."
    ended = subprocess.CompletedProcess([], 32, "", f"{refused}\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(debian.UnavailableError, match=r"Linux 6\.7.*permission denied"):
        emulator.prefix()


def test_a_machine_without_unshare_is_no_place_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(emulator, "qemu", lambda: Path("/build/qemu"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(debian.UnavailableError, match="unshare is not there"):
        emulator.prefix()
