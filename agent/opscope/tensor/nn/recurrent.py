"""RNN, LSTM and GRU: layers that walk along a sequence, with PyTorch's names and order of gates.

Sizes: L steps, N samples, I inputs, H hidden; D is 2 for bidirectional layers, else 1.
"""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.module import Module, Parameter
from opscope.tensor.nn.utils.rnn import PackedSequence
from opscope.tensor.nn.weights import uniform
from opscope.tensor.places import check

State = tuple[Tensor, ...]


def _lstm(state: State, gates: Any, weight: Tensor, bias: Tensor | None) -> State:
    """One step; `gates` are the inputs' part of input, forget, cell and output gate."""
    hidden, cell = state
    whole = gates + functions["linear"](hidden, weight, bias)
    enter, forget, new, leave = whole.chunk(4, -1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


def _gru(state: State, gates: Any, weight: Tensor, bias: Tensor | None) -> State:
    """One step; `gates` are the inputs' part of reset gate, update gate and new state."""
    hidden = state[0]
    reset, update, new = gates.chunk(3, -1)
    own_reset, own_update, own_new = functions["linear"](hidden, weight, bias).chunk(3, -1)
    candidate = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    share = (update + own_update).sigmoid()
    return (candidate + share * (hidden - candidate),)


def _tanh(state: State, gates: Any, weight: Tensor, bias: Tensor | None) -> State:
    return ((gates + functions["linear"](state[0], weight, bias)).tanh(),)


def _relu(state: State, gates: Any, weight: Tensor, bias: Tensor | None) -> State:
    return ((gates + functions["linear"](state[0], weight, bias)).relu(),)


class _Recurrent(Module):
    """Input (L, N, I), with `batch_first` (N, L, I), (L, I), or packed. `dropout` is between
    layers, in training. Weights are uniform within ±1/sqrt(H)."""

    gates: int
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check(device, type(self).__name__)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        bound = hidden_size**-0.5 if hidden_size else 0.0
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * (1 + bidirectional)
            for end in self._ends():
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, hidden_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{end}", Parameter(uniform(shape, bound, dtype)))

    def _step(self) -> Any:
        """The function of one step."""
        raise NotImplementedError

    def _ends(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def flatten_parameters(self) -> None:
        """Does nothing: weights need no other layout here."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The hidden states of the last layer at each step, (L, N, D H), and the last states of
        all layers, (layers D, N, H); for an LSTM a pair of these: hidden and cell."""
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        batched = input.ndim == 3
        steps = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            steps = steps.transpose(0, 1)
        steps, final = self._layers(steps, self._begin(steps, steps.shape[1], hx, batched), None)
        if not batched:
            steps = steps.squeeze(1)
            final = tuple(each.squeeze(1) for each in final)
        elif self.batch_first:
            steps = steps.transpose(0, 1)
        return steps, final if self.states > 1 else final[0]

    def _packed(self, input: PackedSequence, hx: Any) -> tuple[Any, Any]:
        sizes = input.batch_sizes.tolist()
        begin = self._begin(input.data, sizes[0], hx, True)
        if input.sorted_indices is not None and hx is not None:
            begin = tuple(each.index_select(1, input.sorted_indices) for each in begin)
        data, final = self._layers(input.data, begin, sizes)
        if input.unsorted_indices is not None:
            final = tuple(each.index_select(1, input.unsorted_indices) for each in final)
        return input._replace(data=data), final if self.states > 1 else final[0]

    def _layers(self, steps: Any, begin: State, sizes: list[int] | None) -> tuple[Any, State]:
        """The outputs of the last layer, as `steps` are laid out, and the last states of all. With
        `sizes`, steps are packed: so many samples each."""
        if steps.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: the input has {steps.shape[-1]} features, not "
                f"{self.input_size}"
            )
        ends = self._ends()
        last: list[State] = []
        for layer in range(self.num_layers):
            made = []
            for place, end in enumerate(ends):
                at = layer * len(ends) + place
                state = tuple(each[at] for each in begin)
                outputs, state = self._walk(steps, state, f"_l{layer}{end}", bool(end), sizes)
                made.append(outputs)
                last.append(state)
            steps = made[0] if len(made) == 1 else functions["cat"](made, -1)
            if self.dropout and layer + 1 < self.num_layers:
                steps = functions["dropout"](steps, self.dropout, self.training)
        return steps, tuple(functions["stack"](parts, 0) for parts in zip(*last, strict=True))

    def _begin(self, steps: Tensor, samples: int, hx: Any, batched: bool) -> State:
        if hx is None:
            shape = (self.num_layers * len(self._ends()), samples, self.hidden_size)
            zeros = functions["zeros"](shape, dtype=steps.dtype)
            return (zeros,) * self.states
        given = tuple(hx) if self.states > 1 else (hx,)
        return given if batched else tuple(each.unsqueeze(1) for each in given)

    def _walk(
        self,
        steps: Tensor,
        state: State,
        suffix: str,
        backwards: bool,
        sizes: list[int] | None,
    ) -> tuple[Any, State]:
        """The outputs of one layer in one direction, and its last state."""
        weight = getattr(self, f"weight_hh{suffix}")
        bias = getattr(self, f"bias_hh{suffix}") if self.bias else None
        own_bias = getattr(self, f"bias_ih{suffix}") if self.bias else None
        # The inputs' part of all steps is one product.
        gates = functions["linear"](steps, getattr(self, f"weight_ih{suffix}"), own_bias)
        parts = gates.unbind(0) if sizes is None else gates.split(sizes, 0)
        step = self._step()
        outputs = []
        first, ended = state, []
        if sizes is not None and backwards:
            state = tuple(each[: sizes[-1]] for each in first)
        for part in reversed(parts) if backwards else parts:
            running, rows = state[0].shape[0], part.shape[0]
            if rows < running:  # the shortest sequences have ended
                ended.append(tuple(each[rows:] for each in state))
                state = tuple(each[:rows] for each in state)
            elif rows > running:  # backwards, they begin
                more = zip(state, first, strict=True)
                state = tuple(functions["cat"]([own, new[running:rows]], 0) for own, new in more)
            state = step(state, part, weight, bias)
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        if ended:
            all_rows = zip(state, *reversed(ended), strict=True)
            state = tuple(functions["cat"](list(each), 0) for each in all_rows)
        return functions["stack" if sizes is None else "cat"](outputs, 0), state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        text += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        text += "" if self.bias else f", bias={self.bias}"
        text += f", batch_first={self.batch_first}" if self.batch_first else ""
        text += f", dropout={self.dropout}" if self.dropout else ""
        return text + (f", bidirectional={self.bidirectional}" if self.bidirectional else "")


class LSTM(_Recurrent):
    """Hidden and cell state with input, forget and output gate (Hochreiter and Schmidhuber, 1997).
    `forward(input, (h0, c0))` gives `output, (h_n, c_n)`."""

    gates = 4
    states = 2

    def _step(self) -> Any:
        return _lstm


class GRU(_Recurrent):
    """A state with reset and update gate (Cho et al., 2014). `forward(input, h0)` gives
    `output, h_n`."""

    gates = 3

    def _step(self) -> Any:
        return _gru


class RNN(_Recurrent):
    """A state that is the `nonlinearity`, "tanh" or "relu", of a sum of two products (Elman, 1990).
    `forward(input, h0)` gives `output, h_n`."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN(): nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device,
            dtype,
        )

    def _step(self) -> Any:
        return _tanh if self.nonlinearity == "tanh" else _relu


class _Cell(Module):
    """One step: input (N, I) or (I,), and a state like it of width H (zeros if it is absent)."""

    gates: int
    step: Any
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check(device, type(self).__name__)
        self.input_size = input_size
        self.hidden_size = hidden_size
        bound = hidden_size**-0.5 if hidden_size else 0.0
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(uniform((rows, input_size), bound, dtype))
        self.weight_hh = Parameter(uniform((rows, hidden_size), bound, dtype))
        self.bias_ih = Parameter(uniform((rows,), bound, dtype)) if bias else None
        self.bias_hh = Parameter(uniform((rows,), bound, dtype)) if bias else None

    def forward(self, input: Any, hx: Any = None) -> Any:
        if hx is None:
            shape = (*input.shape[:-1], self.hidden_size)
            state: State = (functions["zeros"](shape, dtype=input.dtype),) * self.states
        else:
            state = tuple(hx) if self.states > 1 else (hx,)
        gates = functions["linear"](input, self.weight_ih, self.bias_ih)
        made = type(self).step(state, gates, self.weight_hh, self.bias_hh)
        return made if self.states > 1 else made[0]

    def extra_repr(self) -> str:
        bias = "" if self.bias_ih is not None else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}"


class LSTMCell(_Cell):
    """One step of an LSTM: `forward(input, (h, c))` gives `(h, c)`."""

    gates = 4
    states = 2
    step = staticmethod(_lstm)


class GRUCell(_Cell):
    """One step of a GRU: `forward(input, h)` gives h."""

    gates = 3
    step = staticmethod(_gru)
