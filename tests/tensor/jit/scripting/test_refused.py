"""What cannot be scripted is refused with the line, a caret, the reason and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope import OpscopeError, ScriptError
from opscope.tensor import jit
from tests.tensor.jit.scripting import refused

GOLDEN = Path(__file__).with_name("refused.txt")
NOT_SCRIPTED = {"MyError", "Assigns", "Tensor", "deco", "helper", "scaled"}


def texts() -> dict[str, str]:
    """The errors that are expected, by the function's name."""
    found = {}
    for part in GOLDEN.read_text().split("\n\n"):
        name, _, text = part.partition("\n")
        found[name] = text.rstrip("\n")
    return found


def names() -> list[str]:
    return [
        name
        for name, value in vars(refused).items()
        if getattr(value, "__module__", "") == refused.__name__ and name not in NOT_SCRIPTED
    ]


def error_of(name: str) -> ScriptError:
    with pytest.raises(ScriptError) as caught:
        jit.script(getattr(refused, name))
    return caught.value


@pytest.mark.parametrize("name", names())
def test_a_refusal_says_where_and_what_to_write_instead(name: str) -> None:
    error = error_of(name)
    shown = str(error).replace(str(Path(refused.__file__).parent) + "/", "")
    assert shown == texts()[name]


def test_a_refusal_shows_a_line_a_caret_and_a_remedy() -> None:
    for name, text in texts().items():
        lines = text.splitlines()
        assert "^" in lines[2], name
        assert lines[3].startswith("Write instead: "), name


def test_all_expected_errors_are_of_functions() -> None:
    assert set(texts()) == set(names())


def test_an_error_has_its_parts() -> None:
    error = error_of("while_else")
    assert isinstance(error, OpscopeError)
    lines = Path(error.file).read_text().splitlines()
    assert lines[error.line - 1] == error.source == " " * error.column + "x = x + 1"
    assert error.problem in str(error)
    assert error.remedy in str(error)


def test_other_objects_are_refused() -> None:
    with pytest.raises(ScriptError, match="takes a function or a module, not int"):
        jit.script(3)  # type: ignore[arg-type]
    with pytest.raises(ScriptError, match="written in Python"):
        jit.script(len)
    with pytest.raises(ScriptError, match="a lambda cannot be scripted"):
        jit.script(lambda x: x)
