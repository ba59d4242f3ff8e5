"""Bad input raises an exception that names the operator, the bad value and a valid one, and never
ends the interpreter."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot

BEYOND = 2**62


def ones(*sizes: int, **options: Any) -> ot.Tensor:
    made: ot.Tensor = ot.ones(sizes, **options)
    return made


def leaf(*values: float) -> ot.Tensor:
    return ot.tensor([float(value) for value in values or (1,)], requires_grad=True)


def index(*values: int) -> ot.Tensor:
    return ot.tensor(list(values))


def _any(wrongly_used: Any) -> Any:
    """Hides a type, so that type checkers let it be misused."""
    return wrongly_used


Bad = tuple[Callable[[], Any], type[Exception], str]

SHAPES: dict[str, Bad] = {
    "broadcast": (lambda: ones(2) + ones(3), RuntimeError, r"core::add: sizes \[2\] and \[3\]"),
    "matmul": (lambda: ones(2, 3) @ ones(2, 3), RuntimeError, r"core::matmul: .*\(3\).*\(2\)"),
    "mm": (lambda: ot.mm(ones(2, 3), ones(2, 3)), RuntimeError, r"core::mm: .*3 columns, but 2"),
    "bmm": (lambda: ot.bmm(ones(2, 2, 3), ones(3, 3, 2)), RuntimeError, r"core::bmm: .*2 and 3"),
    "cat": (
        lambda: ot.cat([ones(2, 3), ones(2, 4)]),
        RuntimeError,
        r"core::cat: sizes \[2, 3\] and \[2, 4\]",
    ),
    "cat of nothing": (lambda: ot.cat([]), RuntimeError, "core::cat: at least one"),
    "reshape": (lambda: ones(2, 3).reshape(4, 2), RuntimeError, r"core::reshape: .*\[4, 2\].*6"),
    "two inferred": (lambda: ones(6).reshape(-1, -1), RuntimeError, "core::reshape: .*one may be"),
    "view": (lambda: ones(2, 3).t().view(6), RuntimeError, "core::view: .*use reshape"),
    "expand": (lambda: ones(2, 3).expand(4, 3), RuntimeError, r"core::expand: .*\[4, 3\]"),
    "permute": (lambda: ones(2, 3).permute(0, 0), RuntimeError, "core::permute: .*twice"),
    "linear": (
        lambda: ot.linear(ones(2, 3), ones(4, 5)),
        RuntimeError,
        r"core::linear: .*\[4, 5\]",
    ),
    "nothing to reduce": (lambda: ones(0).amax(), RuntimeError, r"core::amax: .*\[0\]"),
    "copy": (lambda: ones(2).copy_(ones(3)), RuntimeError, r"core::copy_: .*\[2\] and \[3\]"),
    "in place": (lambda: ones(3).add_(ones(5, 3)), RuntimeError, r"core::add_: .*\[5, 3\].*\[3\]"),
    "out": (
        lambda: ot.add(ones(6), 1, out=ones(7)),
        RuntimeError,
        r"core::add: .*\[6\], but out has \[7\]",
    ),
}

KINDS: dict[str, Bad] = {
    "dtype as text": (
        lambda: ones(2, dtype="float32"),
        TypeError,
        "core::ones.*opscope.tensor.dtype",
    ),
    "index dtype": (
        lambda: ot.index_select(ones(3), 0, ones(1)),
        TypeError,
        "core::index_select: indices are integers, not float32",
    ),
    "dtype in place": (
        lambda: index(1).add_(1.5),
        TypeError,
        "core::add_: a float32 result .* int64 tensor",
    ),
    "storage only": (lambda: ones(2, dtype=ot.bfloat16) + 1, TypeError, "core::add: .*bfloat16"),
    "no number": (
        lambda: _any(ot).full([2], "a"),
        TypeError,
        "core::full.*'fill_value' must be a number",
    ),
    "out of another kind": (
        lambda: _any(ot).add(ones(1), 1, out=3),
        TypeError,
        "core::add.*out must be",
    ),
    "grad of integers": (lambda: index(1).requires_grad_(), RuntimeError, "floating.*int64"),
    "device": (lambda: ones(2, device="cuda"), RuntimeError, "core::ones.*'cuda'.*on the cpu"),
    "device of tensor()": (lambda: ot.tensor([1.0], device="cuda"), RuntimeError, "'cuda'.*cpu"),
    "to a device": (
        lambda: _any(ones(2)).to("cuda"),
        RuntimeError,
        "to.*'cuda'.*on the cpu",
    ),
    "from_dlpack": (lambda: ot.from_dlpack(3), TypeError, "from_dlpack.*__dlpack__, not .*int"),
    "from_numpy": (lambda: ot.from_numpy([1]), TypeError, "from_numpy.*array.*, not list"),
    "strings": (lambda: ot.from_numpy(np.array(["a"])), TypeError, "no dtype here"),
    "foreign byte order": (lambda: ot.from_numpy(np.ones(2).astype(">f8")), TypeError, "'>d'"),
    "tensor of text": (lambda: ot.tensor("abc"), TypeError, "must be numbers, not str"),
    "ragged": (lambda: ot.tensor([[1], [1, 2]]), ValueError, "length 1 at dim 1, found one of 2"),
    "Node()": (lambda: ot.Node(), TypeError, "cannot create"),
    "Operator()": (lambda: ot.Operator(), TypeError, "cannot create"),
    "dtype()": (lambda: ot.dtype(), TypeError, "cannot create"),
    "Tensor()": (lambda: _any(ot.Tensor)("3"), TypeError, r"opscope.tensor.tensor\(\)"),
    "Node by object": (lambda: object.__new__(ot.Node), TypeError, "not safe"),
    "method of a number": (lambda: _any(ot.Tensor).add(3, 4), TypeError, "doesn't apply to"),
}

INDICES: dict[str, Bad] = {
    "dimension": (lambda: ones(2, 3).sum(dim=4), IndexError, "core::sum: dimension 4 .*-2 to 1"),
    "transpose": (lambda: ones(2, 3).transpose(0, 5), IndexError, "core::transpose: dimension 5"),
    "softmax": (lambda: ones(2).softmax(3), IndexError, "core::softmax: dimension 3"),
    "[]": (lambda: ones(2, 3)[5], IndexError, r"core::select: index 5 .*size 2 \(sizes \[2, 3\]\)"),
    "too many": (lambda: ones(2)[0, 0], IndexError, r"too many indices \(2\).* 1 dimension"),
    "index_select": (
        lambda: ot.index_select(ones(3), 0, index(5)),
        IndexError,
        "core::index_select: index 5 .*size 3",
    ),
    "embedding": (lambda: ot.embedding(ones(3, 2), index(9)), IndexError, "core::embedding: .*9"),
    "nll_loss": (lambda: ot.nll_loss(ones(2, 3), index(0, 7)), IndexError, "target 7 .*3 classes"),
}

SIZES: dict[str, Bad] = {
    "negative": (lambda: ot.zeros([-1]), ValueError, "core::zeros: size -1 of dimension 0"),
    "negative eye": (lambda: ot.eye(-1), ValueError, "core::eye: size -1"),
    "beyond 64 bits": (lambda: ot.zeros([2**63]), OverflowError, "core::zeros.*beyond 64 bits"),
    "fill beyond": (lambda: ot.full([1], 10**30), OverflowError, "core::full.*beyond 64 bits"),
    "bytes overflow": (
        lambda: ot.zeros([BEYOND, 4]),
        MemoryError,
        r"core::zeros: sizes \[46.*, 4\]",
    ),
    "too much": (lambda: ot.zeros([2**50]), MemoryError, "core::zeros: out of memory: 45.* bytes"),
    "count overflow": (
        lambda: ones(1).expand(BEYOND, 4),
        ValueError,
        "core::expand: .*too many elements to count",
    ),
    "copy of an expanded one": (
        lambda: ones(1).expand(2**50).clone(),
        MemoryError,
        "core::clone: out of memory",
    ),
    "65 dims": (lambda: ot.zeros([1] * 65), ValueError, "core::zeros: .*at most 16 .*not 65"),
    "reshape to 65": (lambda: ones(1).reshape([1] * 65), ValueError, "core::reshape: at most 16"),
    "None times 70": (lambda: ones(1)[(None,) * 70], ValueError, "core::unsqueeze: at most 16"),
    "arange": (lambda: ot.arange(0, 10, 0), ValueError, "core::arange: .*step must not be 0"),
    "arange to nan": (lambda: ot.arange(0, float("nan")), ValueError, "core::arange: .*finite"),
    "linspace": (lambda: ot.linspace(0, 1, BEYOND), MemoryError, "core::linspace: "),
    "nested in itself": (lambda: ot.tensor(_in_itself()), ValueError, "more than 16 levels"),
    "number beyond": (lambda: ot.tensor([300], dtype=ot.uint8), OverflowError, "300 .*uint8"),
    "int of nan": (lambda: int(ot.tensor([float("nan")])), ValueError, "NaN"),
    "number of many": (lambda: ones(2).item(), ValueError, "one element .* has 2"),
    "truth of many": (lambda: bool(ones(2)), ValueError, r"any\(\) or all\(\)"),
}


def _in_itself() -> list[Any]:
    outer: list[Any] = []
    outer.append(outer)
    return outer


def _twice() -> None:
    y = leaf().exp()
    y.backward()
    y.backward()


def _changed_since() -> None:
    y = leaf() * 2
    z = y * y
    y.add_(1)
    z.backward()


def _set_item_of_a_leaf() -> None:
    leaf()[0] = 2.0


GRADIENTS: dict[str, Bad] = {
    "twice": (
        _twice,
        RuntimeError,
        "core::ExpBackward: backward a second time.*retain_graph=True",
    ),
    "not a scalar": (
        lambda: leaf(1, 2).exp().backward(),
        RuntimeError,
        r"backward: .*one element.*\[2\]; pass gradient=",
    ),
    "no tape": (lambda: ones(1).backward(), RuntimeError, "backward: root 0 does not require grad"),
    "gradient's sizes": (
        lambda: leaf(1, 2).exp().backward(ones(3)),
        RuntimeError,
        r"core::ExpBackward: .*\[3\] .*\[2\]; they must be equal",
    ),
    "gradient's kind": (
        lambda: _any(leaf().exp()).backward(3),
        TypeError,
        "must be a Tensor, not int",
    ),
    "leaf in place": (
        lambda: leaf().add_(1),
        RuntimeError,
        "core::add_: .* a leaf .*no_grad.*clone",
    ),
    "item of a leaf": (_set_item_of_a_leaf, RuntimeError, "write in place .* a leaf"),
    "expanded in place": (
        lambda: ones(1).expand(5).add_(1),
        RuntimeError,
        r"core::add_: several elements .*strides \[0\].*clone it first",
    ),
    "out expanded": (
        lambda: ot.add(ones(5), 1, out=ones(1).expand(5)),
        RuntimeError,
        "core::add: several elements .*clone it first",
    ),
    "changed since": (_changed_since, RuntimeError, "core::MulBackward: .*version 1, expected 0"),
    "unrelated": (
        lambda: ot.grad(leaf().exp(), leaf()),
        RuntimeError,
        "do not depend on input 0; pass allow_unused=True",
    ),
    "grad of other sizes": (
        lambda: setattr(ones(1), "grad", ones(2)),
        RuntimeError,
        r"grad: .*\[2\].*\[1\]; they must be equal",
    ),
    "numpy()": (lambda: leaf().numpy(), RuntimeError, r"use tensor.detach\(\).numpy\(\)"),
}

TABLE = {
    f"{title}: {name}": bad
    for title, part in (
        ("shapes", SHAPES),
        ("kinds", KINDS),
        ("indices", INDICES),
        ("sizes", SIZES),
        ("gradients", GRADIENTS),
    )
    for name, bad in part.items()
}


@pytest.mark.parametrize("case", TABLE)
def test_bad_input_is_an_exception_that_says_what_would_be_right(case: str) -> None:
    call, error, text = TABLE[case]
    with pytest.raises(error, match=text):
        call()
    # The failed call has left nothing behind.
    assert (ones(2) + 1).tolist() == [2.0, 2.0]


def test_a_device_that_there_is_may_be_named() -> None:
    assert ones(2, device="cpu").device == ot.tensor([1.0], device="cpu").device == ot.device("cpu")


# ---- DLPack ------------------------------------------------------------------------


def test_a_capsule_can_be_consumed_once() -> None:
    source = ot.tensor([1.0, 2.0])
    capsule = source.__dlpack__()
    taken = ot.from_dlpack(capsule)
    for _ in range(2):
        with pytest.raises(
            (ValueError, RuntimeError, BufferError), match=r"(?i)capsule|consumed|dltensor"
        ):
            ot.from_dlpack(capsule)
    del capsule, source
    gc.collect()
    assert taken.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("consumed", [True, False])
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_dropped_capsule_frees_its_memory_exactly_once(
    consumed: bool, version: tuple[int, int] | None
) -> None:
    before = ot.memory_allocated("cpu")
    for _ in range(100):
        capsule = ot.tensor([1.0] * 1000).__dlpack__(max_version=version)
        taken = ot.from_dlpack(capsule) if consumed else None
        del capsule, taken
    gc.collect()
    assert ot.memory_allocated("cpu") == before


# ---- overlapping memory ------------------------------------------------------------


def test_a_write_over_its_own_input_gives_what_separate_memory_gives() -> None:
    for shift in (1, 2, 3):
        x = ot.arange(0, 8)
        expected = x[shift:] + x[:-shift]
        x[shift:].add_(x[:-shift])
        assert x[shift:].tolist() == expected.tolist()
        x = ot.arange(0, 8)
        expected = x[:-shift] * 2
        ot.mul(x[:-shift], 2, out=x[shift:])
        assert x[shift:].tolist() == expected.tolist()


# ---- inputs that could end a process, in separate processes ------------------------

ENDURED = {
    "a long chain is freed without recursion": """
        x = ot.tensor([1.0], requires_grad=True)
        y = x
        for _ in range(200_000):
            y = y + 1
        y.backward()
        assert x.grad.tolist() == [1.0]
        y = x
        for _ in range(200_000):
            y = y + 1
        del y
    """,
    "backward within backward": """
        class Inner(ot.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                with ot.enable_grad():
                    z = ot.tensor([3.0], requires_grad=True)
                    (z * z).backward()
                return g * z.grad
        x = ot.tensor([1.0], requires_grad=True)
        Inner.apply(x).backward()
        assert x.grad.tolist() == [6.0]
    """,
    "integer division by zero and of the least by minus one": """
        for dtype in (ot.int32, ot.int64, ot.uint8):
            a, zero = ot.tensor([7], dtype=dtype), ot.tensor([0], dtype=dtype)
            a // zero, a % zero
        least = ot.tensor([-2**63])
        least // -1, least % -1, -least, abs(least), least - 1, least * least
    """,
    "what is no number becomes an integer": """
        for value in (float("nan"), float("inf"), -float("inf"), 1e300):
            for dtype in (ot.int32, ot.int64, ot.uint8, ot.bool):
                ot.tensor([value] * 9, dtype=ot.float64).to(dtype)
                ot.tensor([value] * 9).to(dtype)
    """,
    "tensors outlive the interpreter's end": """
        import atexit, threading
        kept = ot.tensor([1.0], requires_grad=True).exp()
        atexit.register(lambda: kept.backward())
        threading.Thread(target=lambda: (kept * 2).sum()).start()
    """,
}


@pytest.mark.parametrize("what", ENDURED)
def test_a_process_endures(what: str) -> None:
    code = "from opscope import tensor as ot\nif True:" + ENDURED[what]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_of_threads_are_their_own() -> None:
    wrong: list[str] = []

    def work(size: int) -> None:
        for _ in range(300):
            try:
                ones(size) + ones(size + 2)
            except RuntimeError as error:
                if f"[{size}] and [{size + 2}]" not in str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(size,)) for size in (2, 5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_operator_made_of_others_names_itself_first() -> None:
    scores = ot.zeros(2, 3)
    with pytest.raises(IndexError, match=r"^core::cross_entropy: core::nll_loss: target 5"):
        ot.cross_entropy(scores, ot.tensor([0, 5]))
    with pytest.raises(
        RuntimeError, match=r"^core::dot: expected .* float32 \[2\] and float32 \[3\]"
    ):
        ot.dot(ot.zeros(2), ot.zeros(3))
    with pytest.raises(
        RuntimeError, match=r"^core::mv: expected .* float32 \[2, 3\] and float32 \[2\]"
    ):
        ot.mv(scores, ot.zeros(2))
    with pytest.raises(ValueError, match=r"input of sizes \[2, 3\], target of \[2, 1\]"):
        ot.binary_cross_entropy_with_logits(scores, ot.zeros(2, 1))


def test_an_unsuitable_dtype_is_reported_with_suitable_ones() -> None:
    with pytest.raises(
        TypeError, match=r"core::exp: not defined for float16; it is for float32, float64$"
    ):
        ot.exp(ot.zeros(2, dtype=ot.float16))


@pytest.mark.parametrize("value", ["a", None, [1]])
def test_elements_are_searched_by_number(value: object) -> None:
    with pytest.raises(TypeError, match="in: elements are compared with numbers and Tensors, not"):
        value in ot.tensor([1, 2])  # noqa: B015
