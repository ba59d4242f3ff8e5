"""ONNX Runtime's profile of nodes: why `opscope trace` has none. It fails once there is a way."""

from pathlib import Path
from typing import Any

import pytest

from tests.torch_versions.dynamic_symbols import defined

onnxruntime: Any = pytest.importorskip("onnxruntime")


def _of_profiles(subject: object) -> set[str]:
    return {name for name in dir(subject) if "profil" in name and not name.startswith("_")}


def test_a_profile_begins_with_its_session_alone() -> None:
    state = onnxruntime.capi.onnxruntime_pybind11_state
    assert _of_profiles(onnxruntime.InferenceSession) == {
        "end_profiling",
        "get_profiling_start_time_ns",
    }
    assert _of_profiles(onnxruntime.RunOptions) == set()
    assert _of_profiles(onnxruntime.SessionOptions) == {"enable_profiling", "profile_file_prefix"}
    assert _of_profiles(state) == set()
    assert "OrtGetApiBase" not in defined([Path(state.__file__)])
