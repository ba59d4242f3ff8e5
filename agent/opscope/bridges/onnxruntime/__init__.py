"""The runs of ONNX Runtime's sessions as operators: `onnxruntime::InferenceSession.run`.

Tried with ONNX Runtime 1.32. Not seen: the nodes of a session's graph, which run in C++.

ONNX Runtime can time nodes itself, but not while `opscope trace` runs. In Python, a profile begins
with its session (`SessionOptions.enable_profiling`) and can only be ended (`end_profiling`); its
`RunOptions` have no profile of a run, although the C++ of 1.32 contains one, and the extension
module exports no function of the C API. So the nodes of a session that exists stay unseen, and
Opscope makes no session of its own of a program's model: it would take the model's memory twice.
"""

import sys

from opscope.bridges.extension_modules import ExtensionModules, Found, methods_of

FRAMEWORK = "onnxruntime"

PREFIXES = ("onnxruntime",)

_STATE = "onnxruntime.capi.onnxruntime_pybind11_state"

_METHODS = ("initialize_session", "run", "run_async", "run_with_iobinding", "run_with_ort_values")


def _functions() -> Found:
    session = getattr(sys.modules.get(_STATE), "InferenceSession", object)
    methods = methods_of(session, "onnxruntime::InferenceSession.")
    return [one for one in methods if one[1].rpartition(".")[2] in _METHODS]


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach, detach, facts, status, seen = _modules.functions
