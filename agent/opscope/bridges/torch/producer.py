"""Record the producer of a model: a file in every TorchScript archive that the process saves.

The setting `producer` (`OPSCOPE_PRODUCER=host,user,image,git`) enables it in every observed
process, from the import of PyTorch on. A program may enable it, with more facts, by itself:

>>> from opscope.bridges.torch import producer
>>> producer.add()
>>> torch.jit.script(model).save("model.pt")
>>> files = {"producer_info.json": ""}
>>> torch.jit.load("model.pt", _extra_files=files)
>>> json.loads(files["producer_info.json"])["host"]
'trainer-7'

A file of the same name in the `_extra_files` of a save takes precedence. Unknown facts are left
out.
"""

import json
import sys
from collections.abc import Collection, Mapping

from opscope._native import lib
from opscope.errors import BridgeError, check
from opscope.record.extra_files import PRODUCER_FILE
from opscope.record.producer_facts import facts, select


def add(files: Mapping[str, str] | None = None) -> None:
    """Add these files to every archive; default: `producer_info.json` with `facts`.

    PyTorch must have been imported. Raises BridgeError if it has no place for such files.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise BridgeError("torch is not imported")
    version = torch.__version__
    for name, content in (files or {PRODUCER_FILE: json.dumps(facts())}).items():
        status = lib.opscope_torch_add_file(name.encode(), content.encode())
        check(status, f"cannot add {name} to the archives of torch {version}", BridgeError)


def add_facts(words: Collection[str]) -> None:
    """Add `producer_info.json` with the facts that these words of the setting select."""
    add({PRODUCER_FILE: json.dumps(select(words))})


def clear() -> None:
    """Stop adding these files to archives."""
    lib.opscope_torch_clear_files()
