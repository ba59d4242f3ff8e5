"""PyTorch's API-usage events are in the same log as ours, those of `import torch` among them."""

import sys
from pathlib import Path

from .torch_observed import counts, observed, observed_fork, observing, run, unobserved_fork

PROGRAM = """
import torch
torch.nn.Linear(2, 2)
torch.nn.Linear(2, 2)
torch.tensor(1)
"""
KEYS = {"torch.python.import", "python.nn_module", "tensor.create"}


def _used(directory: Path) -> dict[str, int]:
    usage = counts(directory / "segments").snapshot.usage
    return {key: count for (key, _), count in usage.items()}


def test_events_are_in_the_segment_from_the_import_on_and_on_stderr_as_pytorch_writes_them(
    tmp_path: Path,
) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    variables = {"PYTORCH_API_USAGE_STDERR": "1"}
    done = run([sys.executable, str(script)], tmp_path, observing(tmp_path, variables))
    used = _used(tmp_path)
    assert set(used) >= KEYS
    assert {used[key] for key in KEYS} == {1}
    lines = [line for line in done.stderr.splitlines() if line.startswith("PYTORCH_API_USAGE ")]
    assert {line.split()[1] for line in lines} >= KEYS
    assert len(set(lines)) == len(lines)


def test_a_program_that_attaches_late_has_those_from_then_on(tmp_path: Path) -> None:
    program = "import torch, opscope; opscope.attach(); torch.nn.Linear(2, 2)"
    unobserved_fork(tmp_path, program)
    assert "python.nn_module" in _used(tmp_path)


def test_a_handler_gets_each_event_once(tmp_path: Path) -> None:
    program = (
        "import opscope\nkeys = []\nopscope.set_api_usage_handler(keys.append)\n"
        f"{PROGRAM}\nprint(sorted(keys))"
    )
    keys = eval(observed(tmp_path, program))
    assert set(keys) >= KEYS
    assert len(set(keys)) == len(keys)
    assert _used(tmp_path).keys() >= KEYS


def test_a_library_without_such_events_is_left_alone(tmp_path: Path) -> None:
    program = f"{PROGRAM}\nimport opscope; from opscope._native import lib; import os\n" + (
        "c10 = os.path.join(os.path.dirname(torch.__file__), 'lib', 'libc10.so').encode()\n"
        "from opscope._native import ffi\n"
        "for library in b'libm.so.6', c10, b'/nowhere/libc10.so':\n"
        "    reason = lib.opscope_torch_log_usage(library)\n"
        "    print(ffi.string(reason).decode() if reason else 'logged')"
    )
    # Where the path leads nowhere, there is still the one that PyTorch has loaded.
    assert unobserved_fork(tmp_path, program).splitlines() == [
        "libc10 does not export c10::SetAPIUsageLogger",
        "logged",
        "logged",
    ]


METADATA = """
import threading
import opscope, torch
say = torch._C._log_api_usage_metadata
say("nobody listens", {"b": "c"})
told = []
opscope.set_api_usage_metadata_handler(lambda context, mapping: told.append((context, mapping)))

def wait():
    for _ in range(9): pass

say("first", {})
say("save", GIVEN)
say("b", {"c": "d"})
wait()
print(told)

def work():
    for _ in range(500):
        say("context", {"a": "b", "c": "d"})
told.clear()
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
say("context", {"a": "b"})
wait()
print(len(told))
"""
LONG = "a text that is longer than any a string keeps in itself"


def test_the_handler_gets_all_metadata_one_key_at_a_time(tmp_path: Path) -> None:
    """Also of four threads at once. Without a handler it is dropped."""
    given = {f"key {i} {LONG * (i % 2)}": LONG * i for i in range(50)}
    program = METADATA.replace("GIVEN", repr(given))
    told, of_threads = observed_fork(tmp_path, program).splitlines()
    expected = [("save", {key: given[key]}) for key in sorted(given)]
    assert eval(told) == [*expected, ("b", {"c": "d"})]
    assert of_threads == "4001"
