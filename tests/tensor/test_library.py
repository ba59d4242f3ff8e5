"""Operators and an allocator of a C shared library: compiled separately, then called, recorded,
differentiated and counted like the built-in ones."""

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opscope
from opscope import tensor as ot
from opscope.record.function import RecordFunction
from opscope.tensor import Operator
from tests.tensor.compiled import HERE, compile_library

Library = dict[str, Operator]

ONE_OPERATOR = """
#include <opscope/operator.h>
static const opscope_core *core;
static int forward(opscope_operator_call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    outputs[0] = core->tensor_retain(arguments[0].as.tensor);
    return 0;
}
OPSCOPE_OPERATOR_LIBRARY(given)
{
    core = given;
    BEFORE
    return core->operator_register(&(opscope_operator_spec){
        .struct_bytes = sizeof(opscope_operator_spec), .schema = SCHEMA, .forward = forward});
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(
        tmp_path_factory.mktemp("library") / "mine.so", HERE / "operator_library.c", "-Wconversion"
    )


@pytest.fixture(scope="module")
def mine(path: Path) -> Library:
    return ot.load_library(path)


@pytest.fixture
def ranges() -> Iterator[list[tuple[str, str]]]:
    """Names and scopes of the ranges of this thread, as they start."""
    found: list[tuple[str, str]] = []

    def start(fn: RecordFunction) -> None:
        found.append((fn.name, fn.scope.name))

    handle = opscope.add_global_callback(start)
    yield found
    opscope.remove_callback(handle)


def one_operator(place: Path, schema: str, before: str = "") -> Path:
    number = len(list(place.iterdir()))
    source = ONE_OPERATOR.replace("SCHEMA", f'"{schema}"').replace("BEFORE", before)
    return compile_library(place / f"{number}.so", source)


def test_its_operators_are_called_by_name(mine: Library) -> None:
    x = ot.tensor([1.0, 2.0], dtype=ot.float64)
    assert mine["mine::scale"](x, 3).tolist() == [3.0, 6.0]
    assert mine["mine::scale"](x, factor=0.5).tolist() == [0.5, 1.0]
    assert mine["mine::scale"](self=x).tolist() == [2.0, 4.0]
    assert ot.operators["mine::square"](x).tolist() == [1.0, 4.0]
    assert mine["mine::scale"].doc == "Each element times factor."
    assert mine["mine::scale"].parameters == ("self", "factor")


def test_each_call_is_a_range_and_each_node_of_its_backward(
    mine: Library, ranges: list[tuple[str, str]]
) -> None:
    x = ot.tensor([1.0, 2.0], dtype=ot.float64, requires_grad=True)
    y = mine["mine::scale"](x, 3)
    y.backward(ot.tensor([1.0, 10.0], dtype=ot.float64))
    assert x.grad is not None and x.grad.tolist() == [3.0, 30.0]
    assert ranges.count(("mine::scale", "FUNCTION")) == 1
    assert ranges.count(("mine::ScaleBackward", "BACKWARD_FUNCTION")) == 1
    assert ("core::mul", "FUNCTION") in ranges


def test_its_gradients_are_those_of_finite_differences(mine: Library) -> None:
    values = [0.3, -1.2, 2.5]
    x = ot.tensor(values, dtype=ot.float64, requires_grad=True)
    (mine["mine::square"](mine["mine::scale"](x, 3)) * 0.5).sum().backward()
    step = 1e-6

    def loss(at: list[float]) -> float:
        return sum(0.5 * (3 * value) ** 2 for value in at)

    for i in range(3):
        up, down = list(values), list(values)
        up[i] += step
        down[i] -= step
        assert x.grad is not None
        assert x.grad[i].item() == pytest.approx((loss(up) - loss(down)) / (2 * step), rel=1e-6)


def test_its_errors_are_exceptions_of_their_kind(mine: Library) -> None:
    with pytest.raises(TypeError, match="mine::scale: takes contiguous float64, not float32"):
        mine["mine::scale"](ot.tensor([1.0]))
    with pytest.raises(TypeError, match=r"mine::scale.*self"):
        mine["mine::scale"]()
    with pytest.raises(RuntimeError, match="mine::nothing: its library returned 0 and no output 0"):
        mine["mine::nothing"](ot.tensor([1.0]))


def test_loading_it_again_gives_the_same_operators(mine: Library, path: Path) -> None:
    again = ot.load_library(str(path))
    assert list(again) == list(mine)
    assert all(again[name] is mine[name] is ot.operators[name] for name in mine)


def test_the_peak_reported_is_what_the_allocator_saw(mine: Library) -> None:
    counts = mine["mine::counts"]()
    before = ot.get_allocator()
    ot.set_allocator("counting")
    try:
        assert ot.get_allocator() == "counting"
        kept = [ot.zeros([n, 3], dtype=ot.float64) for n in range(1, 50)]
        x = ot.tensor(np.ones(100), requires_grad=True)
        (x.exp() * x).sum().backward()
        with pytest.raises((RuntimeError, ValueError), match="sizes"):
            kept[1] + kept[2]
        stats = ot.memory_stats()
    finally:
        ot.set_allocator(before)
    assert [
        stats["allocated_bytes.all.allocated"],
        stats["allocated_bytes.all.current"],
        stats["allocated_bytes.all.peak"],
    ] == counts.tolist()
    assert stats["allocated_bytes.all.current"] >= sum(n * 24 for n in range(1, 50))
    del kept, x
    gc.collect()
    assert ot.memory_allocated("counting") == counts[1].item() == 0
    assert ot.max_memory_allocated("counting") == counts[2].item() > 0
    ot.reset_peak_memory_stats("counting")
    assert ot.max_memory_allocated("counting") == 0


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        ("nonamespace(Tensor self) -> Tensor", ValueError, "begins with a name"),
        ("core::mine(Tensor self) -> Tensor", ValueError, "the namespace core is reserved"),
        ("mine::scale(Tensor self) -> Tensor", ValueError, "the operator mine::scale already"),
        ("bad::ReluBackward(Tensor self) -> Tensor", ValueError, "reserved for nodes"),
        ("bad::type(Matrix self) -> Tensor", ValueError, "not a valid schema: bad::type"),
        ("bad::open(Tensor self -> Tensor", ValueError, "not a valid schema: bad::open"),
        ("bad::list(Tensor self) -> Tensor[]", ValueError, "not a list"),
        ("bad::a::b(Tensor self) -> Tensor", ValueError, "begins with a name"),
    ],
)
def test_what_cannot_be_registered_is_refused_with_the_reason(
    mine: Library, tmp_path: Path, schema: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ot.load_library(one_operator(tmp_path, schema))
    assert mine["mine::scale"] is ot.operators["mine::scale"]


def test_a_library_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    first = (
        "(void)core->operator_register(&(opscope_operator_spec){.struct_bytes = "
        'sizeof(opscope_operator_spec), .schema = "half::one(Tensor self) -> Tensor", '
        ".forward = forward});"
    )
    with pytest.raises(ValueError, match="the operator half::one already"):
        ot.load_library(one_operator(tmp_path, "half::one(Tensor self) -> Tensor", first))
    assert "half::one" not in ot.operators
    # The name can be used again.
    whole = ot.load_library(one_operator(tmp_path, "half::one(Tensor self) -> Tensor"))
    assert whole["half::one"](ot.tensor([1.0])).tolist() == [1.0]


def test_an_entry_point_that_says_no_has_registered_nothing(tmp_path: Path) -> None:
    library = one_operator(tmp_path, "never::one(Tensor self) -> Tensor", "if (core) return 7;")
    with pytest.raises(RuntimeError, match=r"the entry point of .* failed"):
        ot.load_library(library)
    assert "never::one" not in ot.operators


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no .*nothing\.so"):
        ot.load_library(tmp_path / "nothing.so")
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(RuntimeError, match=r"load_library: .*text\.so"):
        ot.load_library(text)
    empty = compile_library(tmp_path / "empty.so", "int nothing_here;")
    with pytest.raises(RuntimeError, match="has no entry point"):
        ot.load_library(empty)


def test_a_library_for_another_version_is_refused(tmp_path: Path) -> None:
    source = ONE_OPERATOR.replace("SCHEMA", '"later::one(Tensor self) -> Tensor"')
    source = source.replace("BEFORE", "").replace(
        "#include <opscope/operator.h>",
        "#include <opscope/operator.h>\n#define OPSCOPE_OPERATOR_ABI 99",
    )
    with pytest.raises(RuntimeError, match=r"version 99 of opscope/operator\.h, not 1"):
        ot.load_library(compile_library(tmp_path / "later.so", source))


def test_libraries_load_on_many_threads_while_operators_run(mine: Library, tmp_path: Path) -> None:
    paths = [one_operator(tmp_path, f"many::op{n}(Tensor self) -> Tensor") for n in range(6)]
    x = ot.tensor([2.0], dtype=ot.float64)
    failures: list[BaseException] = []
    gate = threading.Barrier(4)

    def work(seed: int) -> None:
        try:
            gate.wait()
            for n in range(len(paths)):
                found = ot.load_library(paths[(n + seed) % len(paths)])
                for op in found.values():
                    assert op(x).tolist() == [2.0]
                assert mine["mine::square"](x).tolist() == [4.0]
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [name for name in ot.operators if name.startswith("many::")] != []


def test_each_header_of_the_installation_compiles_alone_as_c_and_as_cpp() -> None:
    headers = Path(opscope.get_include())
    assert (headers / "opscope" / "operator.h").is_file()
    options = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{headers}", "-"]
    for language in ("c", "c++"):
        for header in sorted((headers / "opscope").glob("*.h")):
            subprocess.run(
                ["cc", "-x", language, *options],
                input=f"#include <opscope/{header.name}>\n",
                text=True,
                check=True,
                timeout=300,
            )


def test_a_fresh_process_loads_it_before_anything_else(path: Path) -> None:
    code = (
        "import sys; from opscope import tensor as ot;"
        "ops = ot.load_library(sys.argv[1]);"
        "print(ops['mine::scale'](ot.ones([2], dtype=ot.float64)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[2.0, 2.0]\n"
