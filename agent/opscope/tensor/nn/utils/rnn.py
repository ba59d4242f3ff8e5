"""Sequences of different lengths, padded or packed for recurrent layers: torch.nn.utils.rnn.

A packed batch has the steps of all sequences in one tensor, step by step, without padding: of the
longest sequences first, so that those that still run at a step are the first rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opscope._tensor import Tensor, functions, tensor


class PackedSequence(NamedTuple):
    """`data` (steps of all sequences, ...); `batch_sizes`, the number of sequences at each step;
    the sequences' order by length, and back, or None if they came in it."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def _places(lengths: list[int]) -> list[tuple[int, int]]:
    """(step, sequence) of each row of a packed batch, for lengths in descending order."""
    return [
        (step, place)
        for step in range(lengths[0])
        for place, length in enumerate(lengths)
        if length > step
    ]


def _sizes(lengths: list[int]) -> Tensor:
    return tensor([sum(length > step for length in lengths) for step in range(lengths[0])])


def _lengths(sizes: list[int]) -> list[int]:
    return [sum(size > place for size in sizes) for place in range(sizes[0])]


def _integers(numbers: Any) -> list[int]:
    return [
        int(number) for number in (numbers.tolist() if isinstance(numbers, Tensor) else numbers)
    ]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs the first `lengths` steps of sequences (L, N, ...), or (N, L, ...). RuntimeError for
    lengths below 1, and for ascending ones if `enforce_sorted`."""
    wanted = _integers(lengths)
    steps = input.transpose(0, 1) if batch_first else input
    if len(wanted) != steps.shape[1] or min(wanted, default=0) < 1 or max(wanted) > steps.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence(): lengths are {wanted}: expected {steps.shape[1]} numbers from "
            f"1 to {steps.shape[0]}"
        )
    order, back = None, None
    if not enforce_sorted:
        by_length = sorted(range(len(wanted)), key=lambda place: -wanted[place])
        order = tensor(by_length)
        back = tensor(sorted(range(len(wanted)), key=by_length.__getitem__))
        wanted = [wanted[place] for place in by_length]
        steps = steps.index_select(1, order)
    elif wanted != sorted(wanted, reverse=True):
        raise RuntimeError(
            f"pack_padded_sequence(): lengths are {wanted}: expected descending ones, or "
            "enforce_sorted=False"
        )
    count = steps.shape[1]
    rows = tensor([step * count + place for step, place in _places(wanted)])
    data = steps.flatten(0, 1).index_select(0, rows)
    return PackedSequence(data, _sizes(wanted), order, back)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Tensor]:
    """The sequences (L, N, ...), or (N, L, ...), padded to the longest one or to `total_length`,
    and their lengths."""
    lengths = _lengths(_integers(sequence.batch_sizes))
    if total_length is not None and total_length < lengths[0]:
        raise ValueError(
            f"pad_packed_sequence(): total_length is {total_length}, a sequence has {lengths[0]} "
            "steps"
        )
    longest, data = total_length or lengths[0], sequence.data
    padding = functions["full"]((1, *data.shape[1:]), padding_value, dtype=data.dtype)
    # Each place of the result takes a row of the packed batch, or the row of padding after them.
    rows = [data.shape[0]] * (longest * len(lengths))
    for row, (step, place) in enumerate(_places(lengths)):
        rows[step * len(lengths) + place] = row
    whole = functions["cat"]([data, padding], 0).index_select(0, tensor(rows))
    padded = whole.reshape((longest, len(lengths), *data.shape[1:]))
    numbers = tensor(lengths)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        numbers = numbers.index_select(0, sequence.unsorted_indices)
    return padded.transpose(0, 1) if batch_first else padded, numbers


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Sequences (steps, ...) as one tensor (L, N, ...), or (N, L, ...), padded to the longest."""
    if padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence(): padding_side is {padding_side!r}: 'left' or 'right'")
    longest = max(len(each) for each in sequences)
    padded = []
    for each in sequences:
        shape = (longest - len(each), *each.shape[1:])
        if shape[0]:
            padding = functions["full"](shape, padding_value, dtype=each.dtype)
            each = functions["cat"](
                [each, padding] if padding_side == "right" else [padding, each], 0
            )
        padded.append(each)
    return functions["stack"](padded, 0 if batch_first else 1)


def unpad_sequence(padded: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, each with its length."""
    rows = padded if batch_first else padded.transpose(0, 1)
    return [rows[place][:length] for place, length in enumerate(_integers(lengths))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (steps, ...)."""
    lengths = [len(each) for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(sequence: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch."""
    return unpad_sequence(*pad_packed_sequence(sequence))
