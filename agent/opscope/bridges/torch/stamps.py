"""Add the process's extra files to what `torch.save` and `torch.export.save` write.

The setting `stamp` enables it (`OPSCOPE_STAMP=torch.save,torch.export`); by default these files
stay as PyTorch writes them. Python writes both formats through `torch._C.PyTorchFileWriter`, whose
last call ends the archive: just before it, the files are added below `extra/`. `torch.load` does
not look at them; `opscope model show` shows them. A file that the program itself has put there
takes precedence. `torch.save` to a buffer is stamped too. What fails while the files are written is
the save's own failure, as with a full disk.

`torch.export.load` and the loader of AOTInductor's packages read everything below `extra/` as
UTF-8, and fail if it is not: files that are not get left out there.

TorchScript archives need no setting: PyTorch has a hook for theirs. Releases of PyTorch without
`torch.export.pt2_archive` write exported programs in another way, and are not stamped.
"""

from collections.abc import Callable, Collection
from typing import Any

from opscope.record import extra_files

_FOLDER = "extra/"
_FORMATS = {"archive_format": "torch.export", "data.pkl": "torch.save"}
"""The formats by a record that only they have."""

_original: "Callable[[Any], object] | None" = None


def follow(torch: Any, formats: Collection[str]) -> None:
    """From now on, stamps archives of these formats: `torch.save`, `torch.export`."""
    global _original
    writer = torch._C.PyTorchFileWriter
    end = _original = _original or writer.write_end_of_file
    wanted = frozenset(formats)

    def write_end_of_file(self: Any) -> object:
        _add_files(self, wanted)
        return end(self)

    writer.write_end_of_file = write_end_of_file


def leave(torch: Any) -> None:
    """Restores PyTorch's writer."""
    global _original
    if _original is not None:
        torch._C.PyTorchFileWriter.write_end_of_file = _original
        _original = None


def _add_files(writer: Any, formats: Collection[str]) -> None:
    records = writer.get_all_written_records()
    found = next((name for record, name in _FORMATS.items() if record in records), None)
    if found not in formats:
        return
    for name, content in extra_files.hook_files().items():
        is_readable = found != "torch.export" or _is_text(content)
        if _FOLDER + name not in records and is_readable:
            writer.write_record(_FOLDER + name, content, len(content))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
