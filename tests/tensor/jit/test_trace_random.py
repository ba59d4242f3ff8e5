"""Random functions with views, writes in place, `out=` and `no_grad`: traces do what they do."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opscope import tensor as ops
from opscope.tensor import jit, nn

# Each step takes two tensors of shape (3, 3), and gives one.
STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b * 0.5,
    lambda a, b: a.matmul(b) * 0.1,
    lambda a, b: a.tanh(),
    lambda a, b: a.T,
    lambda a, b: a[:],
    lambda a, b: a.flip(0),
    lambda a, b: a[0].expand(3, 3),
    lambda a, b: a.detach(),
    lambda a, b: a.contiguous(),
    lambda a, b: a.reshape(9).view(3, 3),
    lambda a, b: ops.where(a > b, a, b),
    lambda a, b: ops.stack(list(a)),
    lambda a, b: a.sort(1)[0],
    lambda a, b: a.index_select(0, ops.tensor([2, 0, 1])),
]
# These write the first one.
WRITES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a.add_(b, alpha=0.5),
    lambda a, b: a.copy_(b),
    lambda a, b: a[1:].mul_(0.5),
    lambda a, b: a.T[0].add_(1),
    lambda a, b: a.__setitem__(0, b[1]),
    lambda a, b: a.__setitem__(b > 0, 0.25),
    lambda a, b: ops.mul(b, 0.5, out=a),
]


class Random(nn.Module):
    """Runs a list of steps: (number, two operands, with grad mode)."""

    def __init__(self, steps: list[tuple[int, int, int, bool]]) -> None:
        self.steps = steps
        self.weight = nn.Parameter(_numbers(1))
        self.register_buffer("total", _numbers(2))

    total: ops.Tensor

    def forward(self, x: ops.Tensor, y: ops.Tensor) -> Any:
        pool = [x * 1, y, self.total, self.weight * 1, ops.zeros(3, 3)]
        for number, first, second, has_grad in self.steps:
            a, b = pool[first % len(pool)], pool[second % len(pool)]
            if number < len(STEPS):
                with ops.set_grad_enabled(has_grad):
                    pool.append(STEPS[number](a, b))
            else:
                # Autograd refuses writes to views and leaves in ways of its own.
                target = [y, self.total, pool[4]][first % 3]
                with ops.no_grad():
                    WRITES[number - len(STEPS)](target, b.clone())
        return tuple(pool)


def _numbers(seed: int) -> ops.Tensor:
    return (ops.arange(9.0) * 7.3 + seed).sin().reshape(3, 3)


step = st.tuples(
    st.integers(0, len(STEPS) + len(WRITES) - 1),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
)


def _outcome(run: Callable[..., Any], module: Random) -> tuple[list[Any], Any]:
    """Results and written tensors, and the gradients of input and weight."""
    x, y = _numbers(5).requires_grad_(), _numbers(6)
    module.weight.grad = None
    results = run(x, y)
    kept = [each.detach().clone() for each in (*results, y, module.total)]
    try:
        ops.stack([each.sum() for each in results]).sum().backward()
    except RuntimeError:  # a tensor that backward reads was written
        return kept, (None, None)
    return kept, (x.grad, module.weight.grad)


@given(st.lists(step, max_size=12))
def test_a_trace_does_what_the_function_does(steps: list[tuple[int, int, int, bool]]) -> None:
    module, twin = Random(steps), Random(steps)
    model = jit.trace(module, _numbers(3).requires_grad_(), _numbers(4))
    expected, gradients = _outcome(twin, twin)
    actual, of_model = _outcome(model, module)
    for one, other in zip(expected, actual, strict=True):
        assert ops.allclose(one, other, rtol=1e-5, atol=1e-6)
    for one, other in zip(gradients, of_model, strict=True):
        assert one is other is None or ops.allclose(one, other, rtol=1e-5, atol=1e-6)
