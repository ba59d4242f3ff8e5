"""Models as graphs, in one thread: what a node costs, and how fast they are next to other runtimes.

`node_overhead` is the time of a node beyond that of the same operator called in a loop in C, in a
chain of 100 additions of tensors with one element. The second operands have another shape than the
first, so that the nodes stay apart; `node_fused` is the same for equal shapes, which run in one
pass. The others are ratios of times: the peer's, or the slower way's, over the graph's. `pass_*`
are the gains of single passes (passes.py). Peers that are not installed are left out: onnxruntime
and executorch are not dependencies of anything here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

from opscope.bench import RATIO, Effort, Result, interleaved, median_interval
from opscope.bench.graph import passes, peers
from opscope.errors import OpscopeError

_ROUNDS = 41
_ROUND_NS = 3_000_000
_NODES = 100
_FUSED_SIZE = 1_000_000
_MIB = 1 << 20
_LIBRARY_MIB = 3.0

_Call = Callable[[], object]


def measure(effort: Effort) -> Iterator[Result]:
    try:
        from opscope import tensor
    except ImportError as error:
        raise OpscopeError(f"this bench needs the tensor core: {error}") from None
    before = tensor.get_num_threads()
    tensor.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
            yield from _cases(effort, Path(folder))
    finally:
        tensor.set_num_threads(before)


def _cases(effort: Effort, folder: Path) -> Iterator[Result]:
    rounds = effort.rounds_of(_ROUNDS)
    for case, second in (("node_overhead", False), ("node_fused", True)):
        if effort.wants(case):
            yield _node(case, rounds, is_fusible=second)
    if effort.wants("eager_vs_graph"):
        yield _ratio("eager_vs_graph", "Python modules", 2.0, rounds, *_small_mlp())
    if effort.wants("fusion"):
        yield _ratio("fusion", "the operators one by one", 3.0, rounds, *_fused_chain())
    for case, of_pass in passes.CASES.items():
        if effort.wants(case):
            yield _ratio(case, "the graph as it is written", None, rounds, *of_pass())
    for name, make in peers.CHAINS.items():
        case = f"chain_vs_{name}"
        chain = make(_NODES, folder) if effort.wants(case) else None
        if chain is not None:
            yield _ratio(case, name, 1.0, rounds, chain, _chain_call(is_fusible=True))
    for case, bound in (("resnet18_vs_torchscript", 0.8), ("load_ms", 10.0)):
        sides = peers.RESNET[case](folder) if effort.wants(case) else None
        if sides is not None:
            yield _ratio(case, "torch.jit", bound, rounds, *sides)
    if effort.wants("library_size"):
        yield _library_size()


# ---- times ---------------------------------------------------------------------------------------


def _ns(call: _Call, count: int) -> float:
    start = perf_counter_ns()
    for _ in range(count):
        call()
    return (perf_counter_ns() - start) / count


def _count(call: _Call) -> int:
    """How many calls take about as long as a round."""
    call()
    return max(1, int(_ROUND_NS / max(1.0, min(_ns(call, 1) for _ in range(3)))))


def _in_turns(rounds: int, sides: dict[str, _Call]) -> dict[str, list[float]]:
    return interleaved(
        rounds, {name: partial(_ns, call, _count(call)) for name, call in sides.items()}
    )


def _ratio(
    case: str, against: str, bound: float | None, rounds: int, slow: _Call, own: _Call
) -> Result:
    ns = _in_turns(rounds, {"slow": slow, "own": own})
    ratios = [a / b for a, b in zip(ns["slow"], ns["own"], strict=True)]
    return Result(
        "graph",
        case,
        median(ratios),
        RATIO,
        against,
        bound,
        rounds,
        more_is_better=True,
        interval=median_interval(ratios),
        detail={"own_ns": median(ns["own"]), "against_ns": median(ns["slow"])},
    )


# ---- a node --------------------------------------------------------------------------------------


def _chain_text(nodes: int) -> str:
    lines = ["graph(%x : Tensor, %y : Tensor):"]
    last = "x"
    for number in range(nodes):
        lines.append(f"  %v{number} : Tensor = core::add(%{last}, %y)")
        last = f"v{number}"
    return "\n".join([*lines, f"  return (%{last})"])


def _chain_operands(is_fusible: bool) -> tuple[Any, Any]:
    from opscope import tensor

    return tensor.ones([1]), tensor.ones([1] if is_fusible else [])


def _chain_call(*, is_fusible: bool, nodes: int = _NODES, reuse: bool = True) -> _Call:
    from opscope._tensor import Graph, Program

    program = Program({"forward": Graph(_chain_text(nodes))}, {}, reuse_memory=reuse)
    return partial(program, *_chain_operands(is_fusible))


def _node(case: str, rounds: int, *, is_fusible: bool) -> Result:
    """The difference of two chains leaves out what a call of a program costs. The nodes allocate
    memory as the operator does that is called in a loop."""
    from opscope._tensor import repeat_call

    sides: dict[str, _Call] = {
        "one": _chain_call(is_fusible=is_fusible, nodes=1, reuse=False),
        "chain": _chain_call(is_fusible=is_fusible, nodes=_NODES + 1, reuse=False),
        "calls": partial(repeat_call, "core::add", *_chain_operands(is_fusible), _NODES),
    }
    ns = _in_turns(rounds, sides)
    over = [
        (chain - one - calls) / _NODES
        for chain, one, calls in zip(ns["chain"], ns["one"], ns["calls"], strict=True)
    ]
    return Result(
        "graph",
        case,
        median(over),
        "ns",
        "the operator called from C",
        50.0 if case == "node_overhead" else None,
        rounds,
        interval=median_interval(over),
        detail={"call_ns": median(ns["calls"]) / _NODES},
    )


# ---- eager, fused --------------------------------------------------------------------------------


def _small_mlp() -> tuple[_Call, _Call]:
    from opscope import tensor
    from opscope.tensor import jit, nn

    net = nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8)
    )
    x = tensor.randn([1, 16])
    model = jit.freeze(jit.trace(net, x))

    def eager() -> object:
        with tensor.no_grad():
            return net(x)

    return eager, partial(model, x)


def _fused_chain() -> tuple[_Call, _Call]:
    from opscope import tensor
    from opscope._tensor import Graph, Program

    graph = Graph(passes.chain_text())
    x, y = tensor.randn([_FUSED_SIZE]), tensor.randn([_FUSED_SIZE])
    sides = [
        Program({"forward": graph}, {}, optimize=is_new, reuse_memory=is_new)
        for is_new in (False, True)
    ]
    return partial(sides[0], x, y), partial(sides[1], x, y)


# ---- size ----------------------------------------------------------------------------------------


def _library_size() -> Result:
    """The libraries that a C program links, as they are installed."""
    import opscope

    folder = Path(opscope.get_include()).parent
    names = ("libopscope.so", "libopscope_tensor.so")
    size = sum(os.path.getsize(folder / name) for name in names) / _MIB
    return Result("graph", "library_size", size, "MiB", None, _LIBRARY_MIB, 1)
