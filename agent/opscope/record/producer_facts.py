"""Who made a model: a file in every TorchScript archive that the process saves.

The setting ``producer`` (``OPSCOPE_PRODUCER=host,user,image,git``) has it there in every process
that is observed, from the import of PyTorch on; a program may ask for it, and more, by itself:

>>> from opscope.bridges import torch_producer
>>> torch_producer.add()
>>> torch.jit.script(model).save("model.pt")
>>> files = {"producer_info.json": ""}
>>> torch.jit.load("model.pt", _extra_files=files)
>>> json.loads(files["producer_info.json"])["host"]
'trainer-7'

Saving with an ``_extra_files`` that has a file of the same name keeps that one. A fact that cannot
be told is left out.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Collection, Mapping

from opscope._native import lib
from opscope.errors import BridgeError, check

FILE = "producer_info.json"

_FACTS = {"host": "host", "user": "user", "image": "image", "git": "git_revision"}
"""By the setting's words."""

_IMAGE_VARIABLES = ("OPSCOPE_IMAGE", "CONTAINER_IMAGE", "IMAGE_NAME")
_REVISION_VARIABLES = ("OPSCOPE_GIT_REVISION", "GIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")


def add(files: Mapping[str, str] | None = None) -> None:
    """Have these files, by default ``producer_info.json`` with :func:`facts`, in every archive.

    PyTorch must have been imported. BridgeError where its version is not known.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise BridgeError("torch is not imported")
    version = str(torch.__version__).encode()
    for name, content in (files or {FILE: json.dumps(facts())}).items():
        status = lib.opscope_torch_add_file(version, name.encode(), content.encode())
        check(status, f"cannot add {name} to the archives of torch {version.decode()}", BridgeError)


def add_facts(words: Collection[str]) -> None:
    """Have ``producer_info.json`` with these facts, by the words of the setting ``producer``."""
    names = {_FACTS[word] for word in words}
    add({FILE: json.dumps({key: value for key, value in facts().items() if key in names})})


def clear() -> None:
    """Archives saved from now on have none of these files."""
    lib.opscope_torch_clear_files()


def facts() -> dict[str, str]:
    """Host, user, program, time, and where they can be told image and git revision."""
    found = {
        "host": socket.gethostname(),
        "user": _user(),
        "program": sys.argv[0] if sys.argv else "",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "image": _first(_IMAGE_VARIABLES),
        "git_revision": _first(_REVISION_VARIABLES) or _git_revision(os.getcwd()),
    }
    return {key: value for key, value in found.items() if value}


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _first(variables: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in variables if os.environ.get(name)), "")


def _git_revision(directory: str) -> str:
    """Of the checkout that holds the directory: read from its files, no git is run."""
    while not os.path.isdir(os.path.join(directory, ".git")):
        directory, below = os.path.dirname(directory), directory
        if directory == below:
            return ""
    try:
        head = _read(os.path.join(directory, ".git", "HEAD"))
        reference = head.removeprefix("ref: ")
        if reference == head:
            return head
        path = os.path.join(directory, ".git", reference)
        if os.path.exists(path):
            return _read(path)
        packed = _read(os.path.join(directory, ".git", "packed-refs")).splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), "")
    except OSError:
        return ""


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()
