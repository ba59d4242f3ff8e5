"""Script reading and writing `t[1, :, None, ..., rows]` of tensors, as eager indexing does it.

Ints, slices and None make views one after another. Tensors of indices and masks, which must be
neighbours, are applied at the end.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from opscope.tensor.jit.scripting.branches import choose
from opscope.tensor.jit.scripting.convert import convert, need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
    INT,
    TENSOR,
    ListOf,
    Type,
    optional,
    plain,
)
from opscope.tensor.jit.scripting.values import (
    Constant,
    Items,
    Object,
    SliceValue,
    Value,
    describe,
    type_of,
)

_TENSORS = ListOf(TENSOR)


def _is_ellipsis(value: Value) -> bool:
    return isinstance(value, Object) and value.object is ...


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


@dataclass
class _Walk:
    """The view so far, and the tensors of indices."""

    frame: Frame
    at: ast.AST
    view: GraphValue
    dim: int = 0
    """Of the view: the dimension of the next item; after an ellipsis from the end, and negative."""
    is_from_end: bool = False
    indices: GraphValue | None = None
    """A List[Tensor]."""
    index_dim: int = 0
    """The dimension of the first of them."""
    may_index: bool = True
    """Whether a tensor of indices may be next: all are neighbours."""

    def number(self, value: int) -> GraphValue:
        return self.frame.constant(value, INT, self.at)

    def items(self, items: tuple[Value, ...]) -> None:
        if sum(map(_is_ellipsis, items)) > 1:
            self.frame.fail(self.at, "an index may contain only one ellipsis", "one ...")
        for place, item in enumerate(items):
            if _is_ellipsis(item):
                self.is_from_end = True
                self.dim = -sum(not _is_none(each) for each in items[place + 1 :])
                self.may_index = self.indices is None
            else:
                self.item(item, place == len(items) - 1)

    def item(self, item: Value, is_last: bool) -> None:
        type_ = type_of(item)
        if type_ == TENSOR:
            self.tensor(self.frame.graph_value(item, self.at), is_last)
            return
        if isinstance(item, Items) or isinstance(type_ and plain(type_), ListOf):
            self.tensor(self.listed(item), is_last)
            return
        self.may_index = self.indices is None
        if _is_none(item):
            self.view = self.core("unsqueeze", [self.number(self.dim - self.is_from_end)])
            self.step(1, 0)
        elif isinstance(item, SliceValue):
            self.slice(item)
            self.step(1, 1)
        elif type_ == INT:
            place = self.frame.graph_value(item, self.at)
            self.view = self.core("select", [self.number(self.dim), place])
            self.step(0, 1)
        else:
            self.frame.fail(
                self.at,
                "an index may contain ints, slices, None, ..., tensors and lists of ints, not "
                f"{describe(item)}",
                "one of these",
            )

    def step(self, made: int, consumed: int) -> None:
        """The item gave the view dimensions in place of those that it consumed."""
        if not self.is_from_end:
            self.dim += made
            return
        self.dim += consumed
        if self.indices is not None and self.index_dim < 0:
            self.index_dim += consumed - made

    def core(self, name: str, arguments: list[GraphValue]) -> GraphValue:
        return self.frame.emit_one(f"core::{name}", [self.view, *arguments], TENSOR, self.at)

    def slice(self, item: SliceValue) -> None:
        bounds = [
            need(self.frame, each, optional(INT), self.at, "the bound of a slice")
            for each in (item.start, item.stop)
        ]
        step = Constant(1) if _is_none(item.step) else item.step
        made = need(self.frame, step, INT, self.at, "the step of a slice")
        if not (_is_none(item.start) and _is_none(item.stop) and step == Constant(1)):
            self.view = self.core("slice", [self.number(self.dim), *bounds, made])

    def listed(self, item: Value) -> GraphValue:
        """A list of ints or bools as a tensor."""
        made = None
        for part in (INT, BOOL):
            made = made or convert(self.frame, item, ListOf(part), self.at)
        if made is None:
            self.frame.fail(self.at, f"{describe(item)} is no index", "a list of ints")
        none = self.frame.constant(None, optional(DTYPE), self.at)
        return self.frame.emit_one("py::tensor", [made, none], TENSOR, self.at)

    def tensor(self, index: GraphValue, is_last: bool) -> None:
        """A tensor of indices, or a mask: which of both is known when the graph runs."""
        frame, at = self.frame, self.at
        if not self.may_index:
            frame.fail(
                at,
                "tensors of indices with something between them cannot be scripted",
                "the dimensions in another order, by permute()",
            )
        dtype = frame.emit_one("py::dtype", [index], DTYPE, at)
        is_mask = frame.emit_one("py::eq", [dtype, frame.constant("bool", DTYPE, at)], BOOL, at)

        def positions() -> Value:
            found = frame.emit_one("core::nonzero", [index], TENSOR, at)
            parts = frame.emit_one("core::unbind", [found, self.number(1)], _TENSORS, at)
            if is_last:
                return parts
            # The items after it count on a mask of one dimension.
            [only] = frame.emit("prim::ListUnpack", [parts], [TENSOR], at)
            return frame.list_of([only], at)

        new = choose(frame, is_mask, positions, lambda: frame.list_of([index], at), at)
        made = frame.graph_value(new, at)
        if self.indices is None:
            self.indices, self.index_dim = made, self.dim
        else:
            self.indices = frame.emit_one("py::add", [self.indices, made], _TENSORS, at)
        self.dim += 1  # to the end, or away from the start


def _walk(frame: Frame, owner: Value, key: Value, at: ast.AST) -> _Walk:
    walk = _Walk(frame, at, frame.graph_value(owner, at))
    is_tuple = isinstance(key, Items) and not key.is_list
    walk.items(key.items if is_tuple and isinstance(key, Items) else (key,))
    return walk


def get_tensor_item(frame: Frame, owner: Value, key: Value, at: ast.AST) -> GraphValue:
    """owner[key]"""
    walk = _walk(frame, owner, key, at)
    if walk.indices is None:
        return walk.view
    return walk.core("index", [walk.indices, walk.number(walk.index_dim)])


def set_tensor_item(frame: Frame, owner: Value, key: Value, value: Value, at: ast.AST) -> None:
    """owner[key] = value"""
    type_: Type | None = type_of(value)
    if isinstance(value, Items) or isinstance(type_ and plain(type_), ListOf):
        frame.fail(at, "a list cannot be assigned to a tensor", "opscope.tensor.tensor(...) of it")
    made = frame.graph_value(value, at)
    walk = _walk(frame, owner, key, at)
    if walk.indices is not None:
        walk.core("index_put_", [made, walk.indices, walk.number(walk.index_dim)])
    elif made.type == TENSOR:
        walk.core("copy_", [made])
    else:
        walk.core("fill_", [made])
