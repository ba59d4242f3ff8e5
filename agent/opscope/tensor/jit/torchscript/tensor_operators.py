"""Operators of tensors: elementwise, shapes, products, reductions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.table import (
    TABLE,
    MissingError,
    cast,
    need,
    register,
    same,
)
from opscope.tensor.jit.torchscript.values import OwnList, Value, is_constant, is_tensor, type_of
from opscope.tensor.jit.torchscript.writer import Writer

# Of the same name and meaning, taking one tensor; each in place too.
_ELEMENTWISE = (
    "relu sigmoid tanh exp log sqrt rsqrt sin cos tan abs neg erf floor ceil round reciprocal "
    "square log1p expm1 log2 log10 exp2 sign trunc asin acos atan sinh cosh silu"
).split()
_COMPARING = "eq ne lt le gt ge logical_and logical_or maximum minimum".split()

for _name in _ELEMENTWISE:
    same(_name, 1)
    same(f"{_name}_", 1)
for _name, _count in {
    "flatten": 3, "matmul": 2, "mm": 2, "bmm": 2, "mv": 2, "dot": 2, "linear": 3, "t": 1,
    "transpose": 3, "permute": 2, "unsqueeze": 2, "reshape": 2, "view": 2, "detach": 1, "where": 3,
    "adaptive_avg_pool2d": 2, "cumsum": 2, "select": 3, "unbind": 2, "split": 3, "chunk": 3,
    "masked_fill": 3, "tril": 2, "triu": 2, "index_select": 3, "gather": 3, "argmax": 3,
    "argmin": 3,
    "leaky_relu": 2, "logsumexp": 3, "isnan": 1, "outer": 2, "roll": 3, "flip": 2, "repeat": 2,
    "stack": 2, "cat": 2, "broadcast_to": 2, "masked_fill_": 3, "copy_": 2, "amax": 3,
    "amin": 3, "all": 3, "topk": 5, "index_add": 4, "logical_not": 1,
}.items():  # fmt: skip
    same(_name, _count)


def _arithmetic(name: str) -> None:
    """Operators of tensors, numbers and lists alike; `alpha` scales the second operand."""

    def translate(writer: Writer, a: Value, b: Value, alpha: Value = 1) -> Value:
        plain = name.removesuffix("_")
        if scalars.are_numbers(a, b):
            return scalars.two(writer, plain, a, b)
        if plain in ("add", "sub"):
            if not is_tensor(a):
                raise MissingError("of a number and a tensor")
            return writer.core(name, a, b, alpha)
        return writer.core(name, a, b)

    TABLE[name] = translate


for _name in ("add", "sub", "mul", "div", "pow", "floor_divide", "remainder"):
    _arithmetic(_name)
    _arithmetic(f"{_name}_")
for _name in _COMPARING:
    _arithmetic(_name)


def _rounded(name: str) -> None:
    """A quotient, rounded to zero or down where that is asked for."""
    plain = TABLE[name]

    def translate(writer: Writer, a: Value, b: Value, rounding_mode: Value = None) -> Value:
        if rounding_mode is None:
            return plain(writer, a, b)
        if not scalars.are_numbers(a, b):
            rounded = {"trunc": "trunc", "floor": "floor"}[rounding_mode]
            quotient = writer.core(rounded, writer.core("div", a, b))
            return writer.core("copy_", a, quotient) if name.endswith("_") else quotient
        if rounding_mode == "floor":
            return scalars.two(writer, "floordiv", a, b)
        return scalars.truncated(writer, a, b)

    TABLE[name] = translate


_rounded("div")
_rounded("div_")


@register("rsub")
def _rsub(writer: Writer, a: Value, b: Value, alpha: Value = 1) -> Value:
    need(alpha == 1, f"with alpha={alpha}")
    return writer.core("add", writer.core("neg", a), b)


@register("sum")
def _sum(writer: Writer, x: Value, *options: Value) -> Value:
    return _reduced(writer, "sum", x, *options)


@register("mean")
def _mean(writer: Writer, x: Value, *options: Value) -> Value:
    return _reduced(writer, "mean", x, *options)


def _reduced(
    writer: Writer,
    name: str,
    x: Value,
    dim: Value = None,
    keepdim: Value = False,
    dtype: Value = None,
) -> Value:
    return writer.core(name, cast(writer, x, dtype), dim or None, keepdim)


@register("index")
def _index(writer: Writer, x: Value, indices: Value) -> Value:
    """Index tensors for dimensions side by side, or one mask: the run knows which."""
    need(isinstance(indices, list), "by a list that is not known")
    given = [place for place, each in enumerate(indices) if each is not None]
    first = given[0] if given else 0
    need(given == [*range(first, first + len(given))], "of dimensions that are apart")
    tensors = [indices[place] for place in given]
    if len(tensors) != 1 or first != 0:
        return writer.core("index", x, tensors, first)
    (mask,) = tensors
    own = writer.one("py::dtype", [mask], "Dtype")
    is_mask = writer.one("py::eq", [own, writer.dtype("bool")], "bool")
    return _either(
        writer,
        is_mask,
        lambda: _either(
            writer,
            scalars.two(writer, "eq", writer.one("py::dim", [mask], "int"), 1),
            lambda: writer.core(
                "index", x, [writer.core("reshape", writer.core("nonzero", mask), [-1])], 0
            ),
            lambda: writer.core("masked_select", x, mask),
        ),
        lambda: writer.core("index", x, tensors, 0),
    )


def _either(
    writer: Writer, condition: Value, one: Callable[[], Value], other: Callable[[], Value]
) -> Value:
    """One tensor or the other; only that is computed."""
    blocks = []
    for compute in (one, other):
        with writer.block() as block:
            block.results.append(writer.symbol(compute()).name)
        blocks.append(block)
    return writer.conditional(condition, (blocks[0], blocks[1]), ["Tensor"])[0]


@register("fill_")
def _fill(writer: Writer, x: Value, value: Value) -> Value:
    return writer.core("copy_" if is_tensor(value) else "fill_", x, value)


@register("pad constant_pad_nd")
def _pad(writer: Writer, x: Value, widths: Value, *options: Value) -> Value:
    """The last dimensions first, each before and behind, with zeros or a number."""
    mode = options[0] if options and isinstance(options[0], str) else "constant"
    value = options[-1] if options and not isinstance(options[-1], str) else 0
    need(mode == "constant", f"with mode {mode!r}")
    need(is_constant(widths) and min(widths) >= 0, "by widths that are not known, or negative")
    for number, pair in enumerate(zip(widths[::2], widths[1::2], strict=True), 1):
        parts = [x]
        for place, width in enumerate(pair):
            if width > 0:
                sizes = scalars.size(writer, x)
                before = writer.one("py::slice", [sizes, None, -number, 1], "List[int]")
                behind: Value = (
                    writer.one("py::slice", [sizes, 1 - number, None, 1], "List[int]")
                    if number > 1
                    else []
                )
                shape = scalars.two(writer, "add", before, [width])
                shape = scalars.two(writer, "add", shape, behind) if behind else shape
                dtype = writer.one("py::dtype", [x], "Dtype")
                edge = writer.core("full", shape, value or 0, dtype)
                parts.insert(0 if place == 0 else len(parts), edge)
        x = writer.core("cat", parts, -number) if len(parts) > 1 else x
    return x


def _extreme(name: str, over_all: str, of_two: str) -> None:
    """Over all elements, over a dimension (with the indices), of two tensors, or of numbers."""

    def translate(writer: Writer, x: Value, other: Value = None, *options: Value) -> Value:
        if not is_tensor(x):
            need(other is not None, "of a list")
            return scalars.two(writer, name, x, other)
        if other is None:
            return writer.core(over_all, x)
        if is_tensor(other):
            return writer.core(of_two, x, other)
        return writer.core(name, x, other, *options)

    TABLE[name] = translate


_extreme("max", "amax", "maximum")
_extreme("min", "amin", "minimum")


@register("split_with_sizes")
def _split_with_sizes(writer: Writer, x: Value, sizes: Value, dim: Value = 0) -> Value:
    need(isinstance(sizes, list), "of sizes that are not known")
    ends = [0]
    for size in sizes:
        ends.append(scalars.two(writer, "add", ends[-1], size))
    return [writer.core("slice", x, dim, *each, 1) for each in pairwise(ends)]


@register("squeeze")
def _squeeze(writer: Writer, x: Value, dim: Value = None) -> Value:
    return writer.core("squeeze", x, [dim] if isinstance(dim, int) else dim)


@register("slice")
def _slice(
    writer: Writer,
    x: Value,
    dim: Value = 0,
    start: Value = None,
    end: Value = None,
    step: Value = 1,
) -> Value:
    if not is_tensor(x):  # then the arguments are start, end and step
        begin, stop, stride = dim or None, start, end or 1
        if isinstance(x, list) and is_constant([begin, stop, stride]):
            return OwnList(x[begin:stop:stride], writer.here)
        return writer.one("py::slice", [x, begin, stop, stride], type_of(x))
    return writer.core("slice", x, dim, start, end, step)


@register("expand")
def _expand(writer: Writer, x: Value, size: Value, implicit: Value = False) -> Value:
    return writer.core("expand", x, size)


@register("addmm")
def _addmm(
    writer: Writer, x: Value, a: Value, b: Value, beta: Value = 1, alpha: Value = 1
) -> Value:
    need(beta == 1 and alpha == 1, f"with beta={beta}, alpha={alpha}")
    return writer.core("addmm", x, a, b)


@register("baddbmm")
def _baddbmm(
    writer: Writer, x: Value, a: Value, b: Value, beta: Value = 1, alpha: Value = 1
) -> Value:
    need(beta == 1 and alpha == 1, f"with beta={beta}, alpha={alpha}")
    return writer.core("add", x, writer.core("bmm", a, b))


@register("unflatten")
def _unflatten(writer: Writer, x: Value, dim: Value, sizes: Value) -> Value:
    need(dim == -1 and isinstance(sizes, list), "of another dimension than the last")
    before = writer.one("py::slice", [scalars.size(writer, x), None, -1, 1], "List[int]")
    return writer.core("reshape", x, scalars.two(writer, "add", before, sizes))


@register("any")
def _any(writer: Writer, x: Value, *options: Value) -> Value:
    if isinstance(x, list) and is_constant(x):
        return any(x)
    need(is_tensor(x), "of a list")
    return writer.core("any", x, *options[:2])


@register("contiguous alias lift_fresh")
def _contiguous(writer: Writer, x: Value, *memory_format: Value) -> Value:
    return writer.core("contiguous", x)


@register("clone")
def _clone(writer: Writer, x: Value, *memory_format: Value) -> Value:
    return writer.core("clone", x)


@register("to")
def _cast(writer: Writer, x: Value, *options: Value) -> Value:
    """Of dtype, device and dtype, or another tensor; devices do not matter."""
    if options and is_tensor(options[0]):
        return writer.core("to", x, writer.one("py::dtype", [options[0]], "Dtype"))
    dtypes = [each for each in options if isinstance(each, int) and not isinstance(each, bool)]
    return cast(writer, x, dtypes[0] if dtypes else None)
