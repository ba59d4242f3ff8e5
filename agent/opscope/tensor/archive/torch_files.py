"""Files of `torch.save`: tensors and plain containers, as PyTorch loads with `weights_only=True`.

The pickle in the file runs nothing: it may name only the globals below, whose objects this module
makes. The layout of the file and the arguments of the rebuilding functions are those of
PyTorch 2.13 (torch/serialization.py, torch/_utils.py).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

from opscope._tensor import Tensor, read_pickle, strided
from opscope.tensor.archive.containers import DTYPES
from opscope.tensor.archive.files import Archive
from opscope.tensor.nn.module import Parameter

PICKLE = "data.pkl"
_REBUILD = "torch._utils._rebuild_"

_STORAGES = {
    "torch.FloatStorage": "float32",
    "torch.DoubleStorage": "float64",
    "torch.IntStorage": "int32",
    "torch.LongStorage": "int64",
    "torch.ByteStorage": "uint8",
    "torch.BoolStorage": "bool",
    "torch.BFloat16Storage": "bfloat16",
    "torch.HalfStorage": "float16",
}
_FOREIGN_STORAGES = {
    "torch.CharStorage": "int8",
    "torch.ShortStorage": "int16",
    "torch.ComplexFloatStorage": "complex64",
    "torch.ComplexDoubleStorage": "complex128",
}
_UNTYPED = "torch.storage.UntypedStorage"
_FOREIGN_DTYPES = tuple(
    f"torch.{name}"
    for name in "uint16 uint32 uint64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu".split()
)
"""Dtypes whose storages are untyped."""
_DTYPES = {f"torch.{name}": DTYPES[name] for name in _STORAGES.values()}

GLOBALS = (
    "collections.OrderedDict",
    "collections.Counter",
    "builtins.bytes",
    "builtins.set",
    "builtins.complex",
    "builtins.bytearray",
    "_codecs.encode",
    "torch.Size",
    "torch.device",
    *(f"{_REBUILD}{what}" for what in ("tensor", "tensor_v2", "tensor_v3", "parameter")),
    f"{_REBUILD}parameter_with_state",
    *_STORAGES,
    *_FOREIGN_STORAGES,
    _UNTYPED,
    *_DTYPES,
    *_FOREIGN_DTYPES,
)


# What the functions of a Reader raise for arguments that torch.save never writes.
_FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError, MemoryError)


class Name(str):
    """The name of a global that tensors here do not have: a class of storages, or a dtype."""

    __slots__ = ()


def load(archive: Archive) -> Any:
    """The object in the file. ValueError, naming file, entry and reason, for any other file."""
    if PICKLE not in archive.entries:
        raise ValueError(
            f"{archive.path}: a zip file, but not one of opscope.tensor.save (which has "
            f"model.json) or torch.save (which has {PICKLE})"
        )
    if "constants.pkl" in archive.entries:
        raise ValueError(
            f"{archive.path}: a TorchScript program, which has no containers of tensors to load"
        )
    return read(archive, Reader(archive))


def dtype_name(kind: Name) -> str:
    """The dtype of a class of storages."""
    return _STORAGES.get(kind) or _FOREIGN_STORAGES.get(kind, "")


def read(archive: Archive, reader: Reader, prefixes: tuple[str, ...] = ()) -> Any:
    """The object in the file, as `reader` makes its tensors.

    Its pickle may also name globals that begin with one of `prefixes`.
    """
    archive.check_byteorder()
    content = archive.read(PICKLE)
    try:
        return read_pickle(
            content, GLOBALS, prefixes, reader.call, reader.global_of, reader.storage
        )
    except _FAULTS as error:
        if str(error).startswith(f"{archive.path}: "):
            raise
        reason = str(error) or type(error).__name__
        raise archive.fault(PICKLE, reason) from None


def _bytes(name: str, content: Any = b"", encoding: Any = "latin1") -> bytes | bytearray:
    """A number as `content` would ask for that much memory."""
    if isinstance(content, str):
        content = content.encode(str(encoding))
    if not isinstance(content, bytes | bytearray):
        raise ValueError(f"{name} of a {type(content).__name__}")
    return bytes(content) if name == "builtins.bytes" else bytearray(content)


class Reader:
    """Makes the objects that the globals of a file name."""

    def __init__(self, archive: Archive, folder: str = "data/") -> None:
        """`folder` has the storages."""
        self._archive = archive
        self._folder = folder

    def global_of(self, name: str) -> object:
        return _DTYPES.get(name, Name(name))

    def storage(self, key: Any) -> Any:
        """The storage of a persistent id, as a tensor of one dimension over the mapping.

        An id is ("storage", class, number, device, count of elements).
        """
        match key:
            case ("storage", Name() as kind, str() as number, str(), int()):
                pass
            case _:
                raise ValueError(f"a persistent id that torch.save does not write: {key!r:.80}")
        name = f"{self._folder}{number}"
        if kind == _UNTYPED:
            return self._archive.tensor(name, DTYPES["uint8"])
        if kind not in _STORAGES:
            raise self._archive.fault(name, f"{kind} holds a dtype that tensors here do not have")
        return self._archive.tensor(name, DTYPES[_STORAGES[kind]])

    def call(self, name: str, arguments: tuple[Any, ...], state: Any, pairs: dict[Any, Any]) -> Any:
        """What calling this global would make."""
        if name == "collections.OrderedDict":
            made: OrderedDict[Any, Any] = OrderedDict(*arguments)
            made.update(pairs)
            if isinstance(state, dict) and "_metadata" in state:
                made._metadata = state["_metadata"]  # type: ignore[attr-defined]
            return made
        if name.startswith(_REBUILD):
            return self.rebuild(name.removeprefix(_REBUILD), *arguments)
        if name == "torch.Size":
            return tuple(*arguments)
        if name == "torch.device":
            return "cpu" if not arguments else str(arguments[0])
        if name == "_codecs.encode":
            return str(arguments[0]).encode("latin1")
        if name in ("builtins.bytes", "builtins.bytearray"):
            return _bytes(name, *arguments)
        plain = {"Counter": Counter, "set": set, "complex": complex}
        return plain[name.rpartition(".")[2]](*arguments)

    def rebuild(self, what: str, *arguments: Any) -> Any:
        """The tensor of `torch._utils._rebuild_<what>(*arguments)`."""
        if what in ("parameter", "parameter_with_state"):
            data, requires_grad, *_ = arguments
            return Parameter(data, bool(requires_grad))
        storage, offset, sizes, strides, *rest = arguments
        if not isinstance(storage, Tensor):
            raise ValueError("a tensor whose storage is none")
        if what == "tensor_v3":
            raise ValueError(f"{rest[2]} is a dtype that tensors here do not have")
        made = strided(storage, tuple(sizes), tuple(strides), offset)
        if rest and rest[0]:
            made.requires_grad = True
        return made
