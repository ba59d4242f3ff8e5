"""The variables of a function during scripting, and the flags of its control flow."""

from __future__ import annotations

from dataclasses import dataclass

from opscope.tensor.jit.scripting.types import NONE, OptionalOf, Type, plain
from opscope.tensor.jit.scripting.values import Value, type_of

RETURNED, BROKEN, CONTINUED = FLAGS = ("<returned>", "<broken>", "<continued>")
RESULT = "<result>"
"""Variables of the lowering, beside those of the code: whether a return, break or continue ran,
and what was returned. No name of Python looks like them."""


@dataclass(frozen=True)
class Bound:
    """A variable that has a value."""

    value: Value
    line: int
    declared: Type | None = None
    """By an annotation."""
    is_not_none: bool = False
    """A test has shown it."""

    @property
    def excludes_none(self) -> bool:
        """Whether it is not None, by its type or by a test."""
        type_ = type_of(self.value)
        may_be = type_ is not None and (type_ == NONE or isinstance(plain(type_), OptionalOf))
        return self.is_not_none or not may_be


@dataclass(frozen=True)
class Unbound:
    """A variable that has no value, or values that no type joins, with the reason."""

    reason: str
    remedy: str


Variables = dict[str, Bound | Unbound]
