"""Wheels of PyTorch, as the matrix unpacks them."""

import os
import zipfile
from pathlib import Path

from tests.torch_versions import wheel


def test_the_programs_of_a_wheel_are_executable_wherever_they_lie(tmp_path: Path) -> None:
    modes = {"torch/bin/protoc": 0o755, "torch/test/op_test": 0o755, "torch/version.py": 0o644}
    packed = tmp_path / "torch.whl"
    with zipfile.ZipFile(packed, "w") as archive:
        for name, mode in modes.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, "")
    with zipfile.ZipFile(packed) as archive:
        wheel.extract(archive, modes, tmp_path)
    found = {name: os.access(tmp_path / name, os.X_OK) for name in modes}
    assert found == {name: mode == 0o755 for name, mode in modes.items()}
