"""Inputs and outputs of ranges: for callbacks that ask, and no others."""

import sys
from typing import Any

import pytest

import opscope
from opscope import RecordFunction, record_function
from opscope._native import ffi, lib
from opscope.record.values import ListValue, unbox


def values_seen(
    *arguments: object, needs_inputs: bool = True, needs_outputs: bool = True
) -> dict[str, tuple[object, ...]]:
    """The values that a callback gets for a decorated function called with `arguments`."""
    told: dict[str, tuple[object, ...]] = {}

    def start(fn: RecordFunction) -> None:
        told["inputs"], told["early outputs"] = fn.inputs, fn.outputs

    def end(fn: RecordFunction, context: object) -> None:
        told["outputs"] = fn.outputs

    handle = opscope.add_global_callback(
        start, end, needs_inputs=needs_inputs, needs_outputs=needs_outputs
    )
    record_function("f", *arguments)(lambda: "result")()
    opscope.remove_callback(handle)
    return told


def test_inputs_are_the_very_objects_given() -> None:
    given: tuple[object, ...] = (1, 2.5, "text", None, [], object(), True, 1 << 100)
    inputs = values_seen(*given)["inputs"]
    assert len(inputs) == len(given)
    assert all(one is other for one, other in zip(inputs, given, strict=True))


def test_many_inputs_come_through() -> None:
    given = tuple(range(1000, 1300))
    assert values_seen(*given)["inputs"] == given


def test_a_decorated_functions_result_is_its_output_at_the_end() -> None:
    told = values_seen()
    assert told["outputs"] == ("result",)
    assert told["early outputs"] == ()


def test_a_callback_that_did_not_ask_sees_no_values() -> None:
    told = values_seen(1, 2, needs_inputs=False, needs_outputs=False)
    assert told == {"inputs": (), "outputs": (), "early outputs": ()}


def test_of_two_callbacks_only_the_one_that_asked_sees_values() -> None:
    asked: list[object] = []
    not_asked: list[object] = []
    opscope.add_global_callback(lambda fn: not_asked.append(fn.inputs))
    opscope.add_global_callback(lambda fn: asked.append(fn.inputs), needs_inputs=True)
    with record_function("x", "value"):
        pass
    assert asked == [("value",)]
    assert not_asked == [()]


def test_values_are_boxed_only_when_a_callback_that_asks_fires() -> None:
    boxed: list[int] = []

    @ffi.callback("size_t(void *, opscope_value *, size_t)")  # type: ignore[untyped-decorator]
    def box(arg: object, values: object, capacity: int) -> int:
        boxed.append(capacity)
        return 0

    op = ffi.new("const opscope_op **")
    lib.opscope_op_intern(b"boxed", b"", lib.OPSCOPE_FUNCTION, lib.OPSCOPE_OTHER, op)
    info = ffi.new("opscope_range_info *", {"inputs": box})
    opscope.add_global_callback(lambda fn: None)
    opscope.add_global_callback(lambda fn: None, needs_inputs=True, sampling_prob=0.0)
    lib.opscope_range_end(lib.opscope_range_begin(op[0], info))
    assert boxed == []
    opscope.add_global_callback(lambda fn: None, needs_inputs=True)
    lib.opscope_range_end(lib.opscope_range_begin(op[0], info))
    assert len(boxed) == 1


def test_nested_ranges_keep_their_own_values() -> None:
    outputs: list[object] = []
    opscope.add_global_callback(
        None, lambda fn, _: outputs.append((fn.name, fn.outputs)), needs_outputs=True
    )

    @record_function("inner")
    def inner() -> str:
        return "of inner"

    @record_function("outer")
    def outer() -> str:
        inner()
        return "of outer"

    outer()
    with record_function("block"):
        inner()
    assert outputs == [
        ("inner", ("of inner",)),
        ("outer", ("of outer",)),
        ("inner", ("of inner",)),
        ("block", ()),
    ]


def test_reading_values_leaves_reference_counts_as_they_were() -> None:
    value = object()
    before = sys.getrefcount(value)
    for _ in range(100):
        values_seen(value)
    opscope.has_callbacks()  # a thread releases a removed callback at its next range
    assert sys.getrefcount(value) == before


@pytest.mark.parametrize(
    ("kind", "field", "given", "unboxed"),
    [
        ("NONE", "integer", 0, None),
        ("BOOL", "integer", 1, True),
        ("INT", "integer", -(1 << 63), -(1 << 63)),
        ("FLOAT", "real", 2.5, 2.5),
    ],
)
def test_plain_values_of_c_become_pythons(
    kind: str, field: str, given: float, unboxed: object
) -> None:
    value = ffi.new("opscope_value *")
    value.kind = getattr(lib, f"OPSCOPE_VALUE_{kind}")
    setattr(getattr(value, "as"), field, given)
    result = unbox(value[0])
    assert result == unboxed
    assert type(result) is type(unboxed)


@ffi.callback("size_t(void *, opscope_value *, size_t)")  # type: ignore[untyped-decorator]
def _hundred(arg: Any, values: Any, capacity: int) -> int:
    """Numbers from 0; number 1 is such a list itself."""
    for number in range(min(capacity, 100)):
        values[number].kind = lib.OPSCOPE_VALUE_INT
        getattr(values[number], "as").integer = number
    if not arg and capacity > 1:
        values[1].kind = lib.OPSCOPE_VALUE_LIST
        values[1].items = _hundred
        getattr(values[1], "as").object = values
    return 100


def test_a_list_of_c_becomes_its_first_items_and_their_number() -> None:
    value = ffi.new("opscope_value *", {"kind": lib.OPSCOPE_VALUE_LIST, "items": _hundred})
    result = unbox(value[0])
    assert isinstance(result, ListValue)
    assert result.length == 100
    assert result == [0, list(range(64)), *range(2, 64)]
    assert getattr(result[1], "length", None) == 100


def test_only_lists_have_items() -> None:
    value = ffi.new("opscope_value *", {"kind": lib.OPSCOPE_VALUE_INT, "items": _hundred})
    assert lib.opscope_value_items(value, ffi.NULL, 0) == 0


def test_text_of_c_becomes_a_string_and_an_unknown_object_none() -> None:
    text = ffi.new("char[]", "größe".encode())
    value = ffi.new("opscope_value *", {"kind": lib.OPSCOPE_VALUE_TEXT})
    getattr(value, "as").text = text
    assert unbox(value[0]) == "größe"
    kind = ffi.new("char[]", b"nobody's")
    value = ffi.new("opscope_value *", {"kind": lib.OPSCOPE_VALUE_OBJECT, "type": kind})
    getattr(value, "as").object = text
    assert unbox(value[0]) is None
