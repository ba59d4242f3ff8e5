"""Script statements of one line: expressions, pass, break and continue."""

from __future__ import annotations

import ast

from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.sequence import set_flag
from opscope.tensor.jit.scripting.variables import BROKEN, CONTINUED


@scripts(ast.Expr)
def _expression(frame: Frame, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):  # not a docstring
        expression(frame, node.value)


@scripts(ast.Pass)
def _pass(frame: Frame, node: ast.Pass) -> None:
    pass


@scripts(ast.Break)
def _break(frame: Frame, node: ast.Break) -> None:
    set_flag(frame, BROKEN, True)


@scripts(ast.Continue)
def _continue(frame: Frame, node: ast.Continue) -> None:
    set_flag(frame, CONTINUED, True)
