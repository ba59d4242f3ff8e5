"""KServe's own clients, unmodified, in an environment of their own: they need an older pandas and
protobuf than these tests."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.running import Running

CLIENT = Path(__file__).with_name("kserve_client.py")


@pytest.mark.external
def test_kserves_clients_infer_over_both_protocols(server: Running, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    python = tmp_path / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "kserve>=0.21"], check=True)
    done = subprocess.run(
        [python, CLIENT, server.http, server.grpc], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    # The REST client names no version, so the newest one answers.
    thrice = {"y": [[0.0, 3.0, 6.0, 9.0], [12.0, 15.0, 18.0, 21.0]]}
    twice = {"y": [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0]]}
    ready = {"live": True, "ready": True, "model_ready": True}
    assert said["http"] == ready | {
        "infer binary=True": {"model": "double", "id": "bTrue", "outputs": thrice},
        "infer binary=False": {"model": "double", "id": "bFalse", "outputs": thrice},
    }
    missing = said["grpc"].pop("missing")
    assert said["grpc"] == ready | {"infer": {"model": "double", "id": "g1", "outputs": twice}}
    assert "NOT_FOUND" in missing and "there is no model 'missing'" in missing
