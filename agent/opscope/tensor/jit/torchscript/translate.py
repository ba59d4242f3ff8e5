"""Translate TorchScript code to one graph, by walking methods with values as arguments.

It computes constants: configurations, branches on `training`, loops over known ranges. The rest
becomes nodes of the core. It inlines calls of methods and functions, since TorchScript has no
recursion. No code of the archive runs. This file alone defines the meaning of a syntax tree.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.archive.files import Archive
from opscope.tensor.jit.nodes import to_text
from opscope.tensor.jit.parts import ModelParts
from opscope.tensor.jit.torchscript import archive as archives
from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.control import Control, bound_names
from opscope.tensor.jit.torchscript.operators import TABLE, MissingError, lacks
from opscope.tensor.jit.torchscript.syntax import (
    RefusedError,
    annotation,
    declared,
    defaults,
    final,
)
from opscope.tensor.jit.torchscript.values import (
    UNKNOWN,
    Function,
    Module,
    OwnList,
    Symbol,
    UnknownError,
    Value,
    has_unknown,
    type_of,
)
from opscope.tensor.jit.torchscript.writer import Writer

_CALL_DEPTH = 100
_STEPS = 100_000
"""Statements of all calls and known loops: hostile code could walk for ever and write nothing."""
_NUMBERS = {"inf": math.inf, "nan": math.nan, "True": True, "False": False, "None": None}
# Functions of the file whose result is known. The fast paths of nn.Transformer's parts call fused
# operators; without them the same is computed one by one.
_KNOWN = {"__torch__.torch.backends.mha.get_fastpath_enabled": False}
# What has no effect on results.
_IGNORED = frozenset({"ops.prim.SetAttr", "torch.warn", "ops.prim.Print"})


def translate(opened: Archive) -> ModelParts:
    """The model in a TorchScript archive. ValueError names the file and what is wrong, or all
    operators that are missing."""
    program = archives.read(opened)
    walk = _Walk(program)
    try:
        results, inputs = walk.entry()
        signature = [(name, *default) for name, default in inputs]
    except (
        RefusedError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{opened.path}: {walk.place}{reason}{walk.missing_text('; ')}") from None
    if walk.missing:
        raise ValueError(f"{opened.path}: {walk.missing_text('')}")
    walk.writer.body.results = results
    return ModelParts(
        {"forward": to_text(walk.writer.body)},
        walk.attributes,
        tuple(name for name in walk.parameters if name in walk.attributes),
        program.root.class_name.rpartition(".")[2],
        tuple(signature),
        {},
        "forward",
        "",
    )


class _Walk(Control):
    def __init__(self, program: archives.TorchScript) -> None:
        self.program = program
        self.writer = Writer()
        self.attributes: dict[str, Tensor] = {}
        self.parameters: list[str] = []
        self.missing: dict[str, None] = {}
        self.place = ""
        self._depth = self._steps = 0
        self._running = ""
        self._paths: dict[int, str] = {}

    def missing_text(self, before: str) -> str:
        if not self.missing:
            return ""
        return f"{before}the tensor core lacks {', '.join(sorted(self.missing))}"

    # ---- functions ---------------------------------------------------------------------------

    def entry(self) -> tuple[list[str], list[tuple[str, tuple[Any, ...]]]]:
        """Walks `forward` of the root. The names of the results; the inputs with defaults."""
        root = Module("", self.program.root)
        method = self.program.method(root.instance, "forward")
        if method is None:
            raise ValueError("the module has no forward")
        inputs, values = [], []
        given = defaults(method)
        for number, argument in enumerate(method.args.args[1:], 1):
            made = self.writer.new(annotation(argument.annotation))
            self.writer.body.inputs.append((made.name, made.type))
            values.append(made)
            default = (self._expression(given[number], {}),) if number in given else ()
            inputs.append((argument.arg, default))
        result = self._call(method, [root, *values], {})
        return [] if has_unknown(result) else [self.writer.symbol(result).name], inputs

    def _call(
        self, function: ast.FunctionDef, arguments: Sequence[Value], named: dict[str, Value]
    ) -> Value:
        parameters = [each.arg for each in function.args.args]
        names: dict[str, Value] = dict(zip(parameters, arguments, strict=False)) | named
        for number, default in defaults(function).items():
            if parameters[number] not in names:
                names[parameters[number]] = self._expression(default, names)
        if names.keys() != {*parameters} or len(arguments) > len(parameters):
            raise RefusedError(f"a call of {function.name} with other arguments than it takes")
        self._depth += 1
        if self._depth > _CALL_DEPTH:
            raise RefusedError("calls nested too deeply")
        before = self.writer.scope
        owner = arguments[0] if arguments and isinstance(arguments[0], Module) else None
        if owner is not None:
            self.writer.scope = owner.path or None
        outer, self._running = self._running, function.name
        result = self._body(function.body, names)
        self._running = outer
        self.writer.scope = before
        self._depth -= 1
        return result

    # ---- statements --------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt], names: dict[str, Value]) -> Value:
        """Runs them; what a `return` gives, None without one."""
        for statement in statements:
            self.place = f"{self._running}, line {statement.lineno}: "
            if isinstance(statement, ast.Return):
                return None if statement.value is None else self._expression(statement.value, names)
            self._statement(statement, names)
        return None

    def _statement(self, statement: ast.stmt, names: dict[str, Value]) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            raise RefusedError(f"more than {_STEPS} steps")
        try:
            self._walk_statement(statement, names)
        except UnknownError:
            if not self.missing:
                raise
            names.update(dict.fromkeys(bound_names([statement]), UNKNOWN))

    def _walk_statement(self, statement: ast.stmt, names: dict[str, Value]) -> None:
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self._expression(value, names), names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._expression(value, names), names)
            case ast.Expr(value=value):
                self._expression(value, names)
            case ast.If(test=test, body=body, orelse=otherwise):
                self._if(self._expression(test, names), body, otherwise, names)
            case ast.For(target=ast.Name(id=name), iter=iterable, body=body):
                self._for(name, self._iterated(iterable, names), body, names)
            case ast.While(test=test, body=body):
                self._while(test, body, names)
            case ast.Pass():
                pass
            case _:
                raise RefusedError(f"{type(statement).__name__.lower()} is not translated")

    def _assign(self, target: ast.expr, value: Value, names: dict[str, Value]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = self._parts(value, len(target.elts))
            for each, part in zip(target.elts, parts, strict=True):
                self._assign(each, part, names)
        else:
            raise RefusedError("an assignment to an attribute or an item")

    def _parts(self, value: Value, count: int) -> Sequence[Value]:
        if isinstance(value, list | tuple):
            if len(value) != count:
                raise RefusedError(f"{len(value)} values for {count} names")
            return value
        if has_unknown(value):
            return [UNKNOWN] * count
        kind = type_of(value)
        if not kind.startswith("List["):
            raise RefusedError(f"parts of {kind}")
        item = kind.removeprefix("List[")[:-1]
        return self.writer.add("prim::ListUnpack", [value], [item] * count)

    # ---- expressions ---------------------------------------------------------------------------

    def _expression(self, node: ast.expr, names: dict[str, Value]) -> Value:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.Name(id=name):
                return self._name(name, names)
            case ast.Attribute():
                return self._attribute(node, names)
            case ast.List(elts=items):
                return OwnList((self._expression(each, names) for each in items), self.writer.here)
            case ast.Tuple(elts=items):
                return tuple(self._expression(each, names) for each in items)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._operator("neg", [self._expression(operand, names)])
            case ast.Subscript(value=value, slice=index):
                given = [self._expression(value, names), self._expression(index, names)]
                return UNKNOWN if has_unknown(given) else scalars.item(self.writer, *given)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                condition = self._expression(test, names)
                if has_unknown(condition):
                    self._expression(body, names)
                    self._expression(otherwise, names)
                    return UNKNOWN
                if isinstance(condition, Symbol):
                    raise RefusedError("a conditional expression on what the input decides")
                return self._expression(body if condition else otherwise, names)
            case ast.Call():
                return self._called(node, names)
            case _:
                raise RefusedError(f"{type(node).__name__.lower()} is not translated")

    def _name(self, name: str, names: dict[str, Value]) -> Value:
        if name in names:
            return names[name]
        if name in _NUMBERS:
            return _NUMBERS[name]
        if name in ("torch", "ops", "__torch__", "CONSTANTS", "int", "float", "bool", "range"):
            return Function(name)
        if name in ("annotate", "unchecked_cast", "uninitialized", "getattr", "list", "str"):
            return Function(name)
        raise RefusedError(f"the name {name}")

    def _attribute(self, node: ast.Attribute, names: dict[str, Value]) -> Value:
        owner = self._expression(node.value, names)
        if isinstance(owner, Function):
            if owner.name == "CONSTANTS":
                return self._constant(node.attr)
            return Function(f"{owner.name}.{node.attr}")
        if isinstance(owner, Module):
            return self._member(owner, node.attr)
        raise RefusedError(f"the attribute {node.attr}")

    def _constant(self, name: str) -> Value:
        number = int(name.removeprefix("c"))
        value = self.program.constants[number]
        return self._tensor(f"constants.{number}", value) if isinstance(value, Tensor) else value

    def _member(self, owner: Module, name: str) -> Value:
        if name not in owner.instance.attributes:
            declared_value = final(self.program, owner.instance, name)
            if declared_value is None:
                raise RefusedError(f"the attribute {name} of {owner.path or 'the model'}")
            return self._expression(declared_value, {})
        value = owner.instance.attributes[name]
        path = f"{owner.path}.{name}" if owner.path else name
        if isinstance(value, archives.Instance):
            return Module(self._paths.setdefault(id(value), path), value)
        if isinstance(value, Tensor):
            is_parameter = name in declared(self.program, owner.instance, "__parameters__")
            return self._tensor(path, value, is_parameter)
        return value

    def _tensor(self, path: str, value: Tensor, is_parameter: bool = False) -> Symbol:
        if path not in self.attributes and is_parameter:
            self.parameters.append(path)
        self.attributes.setdefault(path, value)
        return self.writer.attribute(path)

    # ---- calls -----------------------------------------------------------------------------------

    def _called(self, node: ast.Call, names: dict[str, Value]) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id in ("annotate", "unchecked_cast"):
            return self._cast(node, names)
        if isinstance(node.func, ast.Name) and node.func.id == "uninitialized":
            return None
        arguments = [self._expression(each, names) for each in node.args]
        named = {each.arg or "": self._expression(each.value, names) for each in node.keywords}
        if isinstance(node.func, ast.Attribute):
            owner = self._expression(node.func.value, names)
            if isinstance(owner, Module):
                method = self.program.method(owner.instance, node.func.attr)
                if method is None:
                    raise RefusedError(
                        f"the method {node.func.attr} of {owner.path or 'the model'}"
                    )
                return self._call(method, [owner, *arguments], named)
        called = self._expression(node.func, names)
        if not isinstance(called, Function):
            raise RefusedError("a call of what is no function")
        return self._function(called.name, arguments, named)

    def _cast(self, node: ast.Call, names: dict[str, Value]) -> Value:
        value = self._expression(node.args[1], names)
        if isinstance(value, OwnList):
            value.kind = annotation(node.args[0])
        if not isinstance(value, Symbol) or not value.type.startswith("Optional["):
            return value
        # Not of the type that stands there: a dtype is declared as an int.
        if not annotation(node.args[0]).startswith("Optional["):
            return self.writer.one("prim::Unwrap", [value], value.type[len("Optional[") : -1])
        return value

    def _function(self, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        if name in _KNOWN:
            return _KNOWN[name]
        if name in self.program.functions:
            return self._call(self.program.functions[name], arguments, named)
        if name in ("int", "float", "bool"):
            if has_unknown(arguments):
                return UNKNOWN
            return scalars.convert(self.writer, name, *arguments)
        if name == "getattr":
            return self._member(arguments[0], arguments[1])
        if name == "ops.prim.RaiseException":
            return self._raise(*arguments)
        if name in _IGNORED:
            return None
        plain = name.removeprefix("torch.").removeprefix("ops.aten.")
        if name in ("ops.prim.NumToTensor", "ops.prim.unchecked_unwrap_optional", "ops.prim.data"):
            return arguments[0]
        if name in ("torch.list", "list"):
            plain = "list"
        return self._operator(
            plain, arguments, named, f"aten::{plain}" if "ops." not in name else name
        )

    def _raise(self, text: Value, kind: Value = None) -> None:
        """Without a class, the text begins with its name: "AssertionError: ..."."""
        shown = text if isinstance(text, str) else "an error"
        name = str(kind or "RuntimeError").removeprefix("builtins.")
        if kind is None and shown.startswith("AssertionError: "):
            name, shown = "AssertionError", shown.removeprefix("AssertionError: ")
        self.writer.add("prim::RaiseException", [shown, name], [])

    def _operator(
        self,
        name: str,
        arguments: list[Value],
        named: dict[str, Value] | None = None,
        shown: str = "",
    ) -> Value:
        shown = shown or f"aten::{name}"
        translation = TABLE.get(name)
        if translation is None:
            self.missing[shown] = None
            return UNKNOWN
        if has_unknown([arguments, list((named or {}).values())]):
            if name == "append":
                if isinstance(arguments[0], OwnList):
                    arguments[0].append(arguments[1])
                return arguments[0]
            lack = lacks(translation, arguments, named or {})
            if lack:
                self.missing[f"{shown} {lack}"] = None
            return UNKNOWN
        try:
            return translation(self.writer, *arguments, **(named or {}))
        except MissingError as error:
            self.missing[f"{shown} {error}"] = None
            return UNKNOWN
