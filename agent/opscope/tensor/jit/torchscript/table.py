"""The table of operators: how PyTorch's become nodes of the core, by the name behind `torch.`.

A translation gets the writer and the arguments of the call, by position, as PyTorch's schema
orders them. It raises `MissingError` for an option that the core lacks. Operators that write in
place do so here too.
"""

from __future__ import annotations

from collections.abc import Callable

from opscope.tensor.jit.torchscript.values import Symbol, Unknown, Value
from opscope.tensor.jit.torchscript.writer import Writer

Translation = Callable[..., Value]


class MissingError(Exception):
    """What an operator lacks here."""


TABLE: dict[str, Translation] = {}

# PyTorch's dtypes by their numbers (c10::ScalarType).
_DTYPES = {0: "uint8", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64"}
_DTYPES |= {11: "bool", 15: "bfloat16"}


def register(names: str) -> Callable[[Translation], Translation]:
    """Puts a translation under these names, separated by spaces."""

    def put(translation: Translation) -> Translation:
        for each in names.split():
            TABLE[each] = translation
        return translation

    return put


def same(name: str, count: int) -> None:
    """The core's operator takes the same first arguments; others must have their defaults."""

    def translate(writer: Writer, *arguments: Value) -> Value:
        if any(each not in (None, False) for each in arguments[count:]):
            raise MissingError(f"with {arguments[count:]}")
        return writer.core(name, *arguments[:count])

    TABLE[name] = translate


def need(condition: bool, what: str) -> None:
    """Refuses an option unless the condition holds."""
    if not condition:
        raise MissingError(what)


def lacks(translation: Translation, given: list[Value], named: dict[str, Value]) -> str:
    """The option of a call that is refused for each value that its unknown arguments may have; ""
    if there is none."""
    found = ""
    for guess in (*(Symbol("0", kind) for kind in ("Tensor", "int", "List[int]")), 0, [0, 0]):
        arguments = [_guessed(each, guess) for each in given]
        options = {name: _guessed(each, guess) for name, each in named.items()}
        try:
            translation(Writer(), *arguments, **options)
        except MissingError as error:
            found = str(error)
        except Exception:  # It is of another type.
            continue
        else:
            return ""
    return found


def _guessed(value: Value, guess: Value) -> Value:
    if isinstance(value, list):
        return [_guessed(each, guess) for each in value]
    if isinstance(value, tuple):
        return tuple(_guessed(each, guess) for each in value)
    return guess if isinstance(value, Unknown) else value


def dtype_of(writer: Writer, dtype: Value) -> Value:
    """The dtype of PyTorch's number, or one that the run knows, as a value of the graph."""
    if isinstance(dtype, Symbol):
        return dtype
    need(dtype in _DTYPES, f"dtype {dtype}")
    return writer.dtype(_DTYPES[dtype])


def cast(writer: Writer, x: Value, dtype: Value) -> Value:
    """The tensor in that dtype, None: as it is."""
    return x if dtype is None else writer.core("to", x, dtype_of(writer, dtype))
