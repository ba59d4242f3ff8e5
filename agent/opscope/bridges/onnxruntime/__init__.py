"""The runs of ONNX Runtime's sessions as operators: `onnxruntime::InferenceSession.run`.

Tried with ONNX Runtime 1.32. Not seen: the nodes of a session's graph, which run in C++.
"""

import sys
from collections.abc import Iterator

from opscope.bridges.extension_modules import ExtensionModules, methods_of

FRAMEWORK = "onnxruntime"

PREFIXES = ("onnxruntime",)

_STATE = "onnxruntime.capi.onnxruntime_pybind11_state"

_METHODS = ("initialize_session", "run", "run_async", "run_with_iobinding", "run_with_ort_values")


def _functions() -> Iterator[tuple[object, str]]:
    session = getattr(sys.modules.get(_STATE), "InferenceSession", object)
    for function, name in methods_of(session, "onnxruntime::InferenceSession."):
        if name.rpartition(".")[2] in _METHODS:
            yield function, name


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach = _modules.attach
detach = _modules.detach
facts = _modules.facts
status = _modules.status
seen = _modules.seen
