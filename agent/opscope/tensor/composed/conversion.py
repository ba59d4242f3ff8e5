"""`to` in PyTorch's forms, `type`, and questions about tensors and dtypes."""

from __future__ import annotations

import builtins
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, dtype, functions
from opscope.tensor.places import check, device

_to = functions["to"]
_DTYPE = type(_tensor.float32)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`.

    The tensor itself if it has that dtype, unless `copy`. The only device is the cpu: RuntimeError
    for another. `non_blocking` changes nothing.
    """
    if len(args) == 1 and type(args[0]) is _DTYPE and not kwargs:
        return self if self.dtype is args[0] else _to(self, args[0])
    wanted: Any = kwargs.pop("dtype", None)
    copy = kwargs.pop("copy", False)
    kwargs.pop("non_blocking", None)
    check(kwargs.pop("device", None), "to")
    other = kwargs.pop("other", None)
    kwargs.pop("memory_format", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    flags = []
    for each in (*args, other):
        if isinstance(each, Tensor):
            wanted = each.dtype
        elif isinstance(each, dtype):
            wanted = each
        elif isinstance(each, builtins.bool):
            flags.append(each)
        elif isinstance(each, (str, device)):
            check(each, "to")
        elif each is not None:
            raise TypeError(f"to(): a dtype, a device or a Tensor, not a {type(each).__name__}")
    copy = flags[1] if len(flags) > 1 else copy
    if wanted is None or wanted is self.dtype:
        return self.clone() if copy else self
    return _to(self, wanted)  # type: ignore[no-any-return]


_TYPES = {
    "torch.FloatTensor": _tensor.float32,
    "torch.DoubleTensor": _tensor.float64,
    "torch.HalfTensor": _tensor.float16,
    "torch.BFloat16Tensor": _tensor.bfloat16,
    "torch.LongTensor": _tensor.int64,
    "torch.IntTensor": _tensor.int32,
    "torch.ByteTensor": _tensor.uint8,
    "torch.BoolTensor": _tensor.bool,
}


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The name of the tensor's type, such as "torch.FloatTensor"; with a dtype or such a name, the
    tensor converted to it."""
    if dtype is None:
        return next(name for name, each in _TYPES.items() if each is self.dtype)
    return to(self, _TYPES[dtype] if isinstance(dtype, str) else dtype)


def is_tensor(obj: Any) -> builtins.bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> builtins.bool:
    """Whether `obj` is a tensor's storage."""
    from opscope.tensor.memory import Storage

    return isinstance(obj, Storage)


def is_floating_point(input: Tensor) -> builtins.bool:
    """Whether the elements are floating point numbers."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> builtins.bool:
    """False: the core has no complex numbers."""
    return False


def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the only element is not zero. RuntimeError unless there is one."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero(): the tensor has {input.numel()} elements, not one")
    return builtins.bool(input)


def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether both have the same shape."""
    return input.shape == other.shape


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def nelement(self: Tensor) -> int:
    """The number of elements."""
    return self.numel()


def ndimension(self: Tensor) -> int:
    """The number of dimensions."""
    return self.ndim


def get_device(self: Tensor) -> int:
    """-1, as PyTorch has it for the cpu."""
    return -1


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of an operation on the two, tensors or numbers."""
    made = [
        functions["zeros"]((0,) * builtins.bool(each.ndim) or (), dtype=each.dtype)
        if isinstance(each, Tensor)
        else each
        for each in (tensor1, tensor2)
    ]
    if not any(isinstance(each, Tensor) for each in made):
        made[0] = _tensor.tensor(made[0])
    return functions["where"](_tensor.tensor(True), made[0], made[1]).dtype  # type: ignore[no-any-return]


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype to which both can be converted, as operators promote tensors."""
    zeros = functions["zeros"]
    return (zeros((0,), dtype=type1) + zeros((0,), dtype=type2)).dtype  # type: ignore[no-any-return]


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether the kind of number allows it: floats not to ints, ints not to bools."""
    kinds = [
        0 if each is _tensor.bool else 2 if each.is_floating_point else 1 for each in (from_, to)
    ]
    if kinds == [1, 1] and to is _tensor.uint8 and from_ is not to:
        return True
    return kinds[0] <= kinds[1]


def get_default_dtype() -> dtype:
    """float32: what new tensors of Python floats have."""
    return _tensor.float32


def set_default_dtype(d: dtype) -> None:
    """Accepts float32 alone: the core has one default. RuntimeError for another."""
    if d is not _tensor.float32:
        raise RuntimeError(
            f"set_default_dtype(): the default is float32 and stays; give dtype={d.name} where "
            "tensors and modules are made"
        )
