"""What each pass gains: a program for which it pays, as it is written and after the pass alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

_Call = Callable[[], object]

_CHAIN = ("mul", "add", "relu", "mul", "sub", "abs", "maximum", "add")


def chain_text() -> str:
    """Eight elementwise operators, of %x and %y."""
    lines, last = ["graph(%x : Tensor, %y : Tensor):"], "x"
    for number, name in enumerate(_CHAIN):
        given = f"%{last}" if name in ("relu", "abs") else f"%{last}, %y"
        lines.append(f"  %v{number} : Tensor = core::{name}({given})")
        last = f"v{number}"
    return "\n".join([*lines, f"  return (%{last})"])


def _repeated(first: str, line: str, count: int, last: str) -> str:
    """A graph of %x whose line `{here}` is made of `{before}`; `last` is made of `{before}` too."""
    names = [first, *(f"%v{i}" for i in range(count))]
    made = [line.format(before=a, here=b) for a, b in pairwise(names)]
    head = "graph(%x : Tensor):\n  %one : int = prim::Constant[value=1]()\n"
    return head + "\n".join(made) + f"\n{last.format(before=names[-1])}\n  return (%z)\n"


def _constants() -> str:
    line = "  {here} : int = py::add({before}, %one)"
    return _repeated("%one", line, 30, "  %z : Tensor = core::mul(%x, {before})")


def _transposed_twice() -> str:
    line = "  {here}t : Tensor = core::t({before})\n  {here} : Tensor = core::t({here}t)"
    return _repeated("%x", line, 10, "  %z : Tensor = core::neg({before})")


def _equal() -> str:
    made = [f"  %e{i} : Tensor = core::exp(%x)" for i in range(8)]
    line = "  {here} : Tensor = core::add({before}, %e0)"
    text = _repeated("%x", line, 8, "  %z : Tensor = core::neg({before})")
    head, rest = text.split("\n", 1)
    for i in range(8):
        rest = rest.replace(", %e0)", f", %e{i}) ", 1)
    return "\n".join([head, *made, rest])


def _unused() -> str:
    line = "  {here} : Tensor = core::exp(%x)"
    return _repeated("%x", line, 8, "  %z : Tensor = core::neg(%x)")


def _loop() -> str:
    return """graph(%x : Tensor):
  %most : int = prim::Constant[value=8]()
  %yes : bool = prim::Constant[value=True]()
  %z : Tensor = prim::Loop(%most, %yes, %x)
    block0(%round : int, %last : Tensor):
      %next : int = py::mul(%round, %most)
      %sum : Tensor = core::add(%last, %next)
      -> (%yes, %sum)
  return (%z)
"""


_PROGRAMS: dict[str, tuple[Callable[[], str], list[int]]] = {
    "fold_constants": (_constants, [1]),
    "peephole": (_transposed_twice, [1, 1]),
    "merge_equal": (_equal, [1000]),
    "dead_code": (_unused, [1000]),
    "unroll_loops": (_loop, [1]),
}


def _of_pass(name: str) -> tuple[_Call, _Call]:
    from opscope import tensor
    from opscope._tensor import Graph, Program

    make, sizes = _PROGRAMS[name]
    before = Graph(make())
    after = before.copy()
    for each in (name, "dead_code"):  # most passes leave nodes that nothing uses
        after.run_pass(each)
    x = tensor.ones(sizes)
    written, changed = (Program({"forward": g}, {}, optimize=False) for g in (before, after))
    return partial(written, x), partial(changed, x)


def _of_memory() -> tuple[_Call, _Call]:
    from opscope import tensor
    from opscope._tensor import Graph, Program

    graph, size = Graph(chain_text()), [1_000_000]
    x, y = tensor.randn(size), tensor.randn(size)
    kept, reused = (
        Program({"forward": graph}, {}, optimize=False, reuse_memory=is_new)
        for is_new in (False, True)
    )
    return partial(kept, x, y), partial(reused, x, y)


def _of_batch_norm() -> tuple[_Call, _Call]:
    from opscope import tensor
    from opscope.tensor import jit, nn

    layers: list[Any] = [nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)]
    net = nn.Sequential(*layers).eval()
    x = tensor.randn([1, 8, 32, 32])
    with tensor.no_grad():
        model = jit.trace(net, x)
    frozen = jit.freeze(model)

    def call(compiled: Any) -> object:
        with tensor.no_grad():
            return compiled(x)

    return partial(call, model), partial(call, frozen)


CASES: dict[str, Callable[[], tuple[_Call, _Call]]] = {
    **{f"pass_{name}": partial(_of_pass, name) for name in _PROGRAMS},
    "pass_reuse_memory": _of_memory,
    "pass_fold_batch_norm": _of_batch_norm,
}
"""By the case: the program as it is written, and after the pass."""
