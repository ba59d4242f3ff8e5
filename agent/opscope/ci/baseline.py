"""The baseline file: what the operators of each block took when the baseline was last updated.

JSON, sorted, one operator a line, so that a change is readable in a review:
`{"format": "opscope baseline", "version": 1, "blocks": {NAME: {OPERATOR: [calls, self ms]}}}`.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any

from opscope.ci.budgets import Used
from opscope.errors import OpscopeError
from opscope.replace_file import replace_file

_FORMAT = "opscope baseline"
_VERSION = 1


def load(path: str) -> dict[str, dict[str, Used]]:
    """Operators by block; empty if there is no file. Raises OpscopeError if it is no baseline."""
    try:
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        return _blocks(whole)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise OpscopeError(
            f"{path} is not a baseline ({error}); pytest --opscope-update writes one"
        ) from error


def update(path: str, block: str, used: Mapping[str, Used]) -> None:
    """Replaces one block in the file. Processes that update it at the same time take turns, by a
    lock on the directory. Raises OpscopeError."""
    directory = os.path.dirname(os.path.abspath(path))
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            replace_file(path, _text(load(path) | {block: dict(used)}).encode(), mode=0o644)
        finally:
            os.close(lock)
    except OSError as error:
        raise OpscopeError(f"cannot write {path}: {error.strerror}") from error


def _blocks(whole: Any) -> dict[str, dict[str, Used]]:
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise ValueError("it has no mark of one")
    if whole.get("version") != _VERSION:
        raise ValueError(f"its version is {whole.get('version')!r}, not {_VERSION}")
    return {
        str(block): {str(name): _used(*values) for name, values in operators.items()}
        for block, operators in whole["blocks"].items()
    }


def _used(calls: object, self_ms: object) -> Used:
    if not isinstance(calls, int) or not isinstance(self_ms, (int, float)):
        raise ValueError(f"{[calls, self_ms]!r} is not [calls, self ms]")
    return Used(calls, float(self_ms))


def _text(blocks: Mapping[str, Mapping[str, Used]]) -> str:
    lines = []
    for block, operators in sorted(blocks.items()):
        of_block = [
            f"   {json.dumps(name)}: [{one.calls}, {one.self_ms:.6f}]"
            for name, one in sorted(operators.items())
        ]
        inner = ",\n".join(of_block)
        lines.append(
            f"  {json.dumps(block)}: {{\n{inner}\n  }}"
            if of_block
            else f"  {json.dumps(block)}: {{}}"
        )
    body = ",\n".join(lines)
    return (
        f'{{\n "format": {json.dumps(_FORMAT)},\n "version": {_VERSION},\n'
        f' "blocks": {{\n{body}\n }}\n}}\n'
    )
