"""What callbacks see of PyTorch's inputs and outputs: of tensors, what they are like."""

from typing import NamedTuple

from opscope._native import ffi, lib
from opscope.record.values import register_object

# c10::ScalarType, in order; PyTorch names the rest by their numbers here.
_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
    "qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 "
    "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()

# c10::DeviceType, as far as it is likely.
_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 14: "meta", 15: "hpu"}


class TorchTensor(NamedTuple):
    """A tensor that an operator took or gave. The tensor itself is not kept."""

    shape: tuple[int, ...]
    dtype: str
    """As torch.dtype without its ``torch.``: ``float32``."""
    device_type: str
    """``cpu``, ``cuda``, ..."""


class TorchOther:
    """An input or output that is none of None, bool, int, float and tensor: a list, a text."""

    def __repr__(self) -> str:
        return "<of PyTorch>"


_OTHER = TorchOther()


def _tensor(address: int) -> TorchTensor | None:
    """None for an undefined tensor; of a nested one, not even the shape is known."""
    out = ffi.new("opscope_torch_tensor *")
    if lib.opscope_torch_tensor_read(ffi.cast("void *", address), out) != lib.OPSCOPE_OK:
        return None
    dtype = _DTYPES[out.dtype] if out.dtype < len(_DTYPES) else f"dtype {out.dtype}"
    return TorchTensor(
        tuple(out.sizes[i] for i in range(out.dim)),
        dtype,
        _DEVICES.get(out.device_type, f"device {out.device_type}"),
    )


def _other(address: int) -> TorchOther:
    return _OTHER


register_object("torch.tensor", _tensor)
register_object("torch.other", _other)
