"""Convert PyTorch's inputs and outputs for callbacks: tensors become descriptions."""

from typing import NamedTuple

from opscope._native import ffi, lib
from opscope.record.values import register_object

# c10::ScalarType, in order; later types appear as `dtype NUMBER`.
_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
    "qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 "
    "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()

# The common values of c10::DeviceType.
_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 14: "meta", 15: "hpu"}


class TorchTensor(NamedTuple):
    """A description of a tensor that an operator took or returned. It does not keep the tensor."""

    shape: tuple[int, ...]
    dtype: str
    """The dtype without `torch.`: `float32`."""
    device_type: str
    """`cpu`, `cuda`, ..."""


class TorchOther:
    """An input or output of an unsupported kind: a device, a generator, a complex number, a tuple;
    also lists and strings if their layout in this PyTorch is not the known one."""

    def __repr__(self) -> str:
        return "<of PyTorch>"


_OTHER = TorchOther()


def _tensor(address: int) -> TorchTensor | None:
    """None for an undefined tensor; a nested tensor has no known shape either."""
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
