"""Archives of compiled models: what their entries mean, beyond those that all archives have.

| entry | content |
|---|---|
| `graph/FUNCTION.ir` | the text of a function's graph |
| `code/NAME.py` | the source that functions were made of, for people: loading reads it as text |
| `model.json` | the object `model`, and `tensors` as in other archives |

A model without source, such as a traced one, has the Python code of its graphs in `code/ENTRY.py`.
`model` has `entry`, `id`, `name`, `functions`, `attributes` (the numbers of tensors by dotted
names), `parameters` (names of attributes) and `signature` (each parameter's name, and its default
if it has one).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from opscope._tensor import Graph, Program, Tensor
from opscope.tensor.archive import containers, files, storages
from opscope.tensor.jit.parts import ModelParts, Signature
from opscope.tensor.jit.python_code import python_code

_GRAPH = "graph/"
_CODE = "code/"
_TRIALS = 64
"""Functions that are tried for an error's entry; of more, one that calls the culprit is named."""
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.\w+)*", re.ASCII)


# ---- writing ------------------------------------------------------------------------------------


def write(
    parts: ModelParts,
    path: str | os.PathLike[str],
    extra_files: Mapping[str, bytes | str],
    model_id: str | None = None,
) -> None:
    """Replaces the file by an archive of the model. Without `model_id`, a model that has none yet
    gets its name and a digest of its graphs and of its tensors' descriptions."""
    for name in parts.functions:
        if not _FUNCTION.fullmatch(name):
            raise ValueError(f"a function is named by identifiers and dots, not {name!r}")
    tensors = storages.Writer()
    numbers = {name: tensors.add(tensor) for name, tensor in parts.attributes.items()}
    described = tensors.described()
    model = {
        "entry": parts.entry,
        "id": model_id or parts.model_id or _new_id(parts, numbers, described),
        "name": parts.name,
        "functions": list(parts.functions),
        "attributes": numbers,
        "parameters": list(parts.parameters),
        "signature": [
            [name, *(containers.to_tree(value, _no_tensor) for value in default)]
            for name, *default in parts.signature or ()
        ],
    }
    texts = {f"{_GRAPH}{name}.ir": text for name, text in parts.functions.items()}
    code = parts.code or {f"{parts.entry}.py": python_code(parts.functions, parts.entry)}
    texts |= {_CODE + name: text for name, text in code.items()}
    document = {"model": model, "tensors": described}
    files.write(path, {files.MODEL: document}, tensors.contents(), extra_files, texts)


def _no_tensor(tensor: Tensor) -> int:
    raise TypeError("a default of a parameter cannot be a tensor")


def _new_id(parts: ModelParts, numbers: Mapping[str, int], described: Any) -> str:
    content = json.dumps([dict(parts.functions), dict(numbers), described], sort_keys=True)
    return f"{parts.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


# ---- reading ------------------------------------------------------------------------------------


def is_model(archive: files.Archive) -> bool:
    """Whether the archive holds a compiled model."""
    if files.MODEL not in archive.entries:
        return False
    document = archive.json(files.MODEL)
    return isinstance(document, dict) and "model" in document


def read(archive: files.Archive) -> ModelParts:
    """The model in an archive; its tensors are mapped. Runs nothing of it. ValueError names file,
    entry and reason for anything that `write` does not write."""
    if not is_model(archive):
        raise archive.fault(files.MODEL, "no compiled model; opscope.tensor.load may load the file")
    archive.check_format()
    document = archive.json(files.MODEL)
    model = _Fields(archive, document["model"])
    tensors = storages.Reader(archive, archive.field(document, "tensors", files.MODEL))
    attributes = {
        name: tensors.tensor(number) for name, number in model.mapping("attributes").items()
    }
    functions = {name: _graph_text(archive, name) for name in model.texts("functions")}
    entry = model.text("entry")
    if entry not in functions:
        raise model.fault(f"there is no function {entry[:60]!r}, the entry")
    parameters = model.texts("parameters")
    for name in parameters:
        if name not in attributes:
            raise model.fault(f"there is no attribute {name[:60]!r}, a parameter")
    return ModelParts(
        functions,
        attributes,
        parameters,
        model.text("name"),
        model.signature(),
        {
            name.removeprefix(_CODE): archive.text(name)
            for name in archive.entries
            if name.startswith(_CODE)
        },
        entry,
        model.text("id"),
    )


def blame(archive: files.Archive, parts: ModelParts, error: Exception) -> ValueError:
    """The error of a model that cannot run: with the entry of the function whose own nodes are
    wrong, and not those of a function that it calls."""
    graphs = {name: Graph(text) for name, text in parts.functions.items()}
    culprit, tried = parts.entry, {parts.entry}
    while True:
        for name in graphs[culprit].callees():
            if name in graphs and name not in tried and len(tried) < _TRIALS:
                tried.add(name)
                try:
                    Program(graphs, dict(parts.attributes), name)
                except (ValueError, TypeError, RuntimeError, MemoryError) as own:
                    culprit, error = name, own
                    break
        else:
            return archive.fault(f"{_GRAPH}{culprit}.ir", str(error))


def _graph_text(archive: files.Archive, name: str) -> str:
    entry = f"{_GRAPH}{name}.ir"
    if not _FUNCTION.fullmatch(name):
        raise archive.fault(files.MODEL, f"{name[:60]!r} is no name of a function")
    text = archive.text(entry)
    try:
        Graph(text).verify()
    except (ValueError, MemoryError) as error:
        raise archive.fault(entry, str(error)) from None
    return text


class _Fields:
    """The fields of the object `model`."""

    def __init__(self, archive: files.Archive, model: Any) -> None:
        self._archive = archive
        self._model = model
        self.fault = archive.fault_in(files.MODEL)

    def _field(self, name: str) -> Any:
        return self._archive.field(self._model, name, files.MODEL)

    def text(self, name: str) -> str:
        value = self._field(name)
        if not isinstance(value, str):
            raise self.fault(f"{name!r} is no string")
        return value

    def texts(self, name: str) -> list[str]:
        values = self._field(name)
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise self.fault(f"{name!r} is no list of strings")
        return values

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._field(name)
        if not isinstance(value, dict):
            raise self.fault(f"{name!r} is no object")
        return value

    def signature(self) -> Signature:
        parameters = self._field("signature")
        if not isinstance(parameters, list) or not all(
            isinstance(each, list)
            and 1 <= len(each) <= 2
            and isinstance(each[0], str)
            and each[0].isidentifier()
            for each in parameters
        ):
            raise self.fault("'signature' is no list of names and defaults")

        def no_tensor(number: Any) -> Tensor:
            raise self.fault(f"a default in 'signature' is the tensor {str(number)[:40]}")

        return [
            (name, *(containers.from_tree(tree, no_tensor, self.fault) for tree in default))
            for name, *default in parameters
        ]
