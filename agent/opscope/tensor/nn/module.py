"""Module and Parameter: weights, their names, and their conversion to and from a state_dict.

Names and behaviour are PyTorch's. Other files have the modules that compute.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from opscope._tensor import Tensor, bfloat16, float16, float32, float64
from opscope._tensor import dtype as DType  # noqa: N812 - a class
from opscope._tensor import tensor as make_tensor
from opscope.record.usage import log_api_usage_once
from opscope.tensor.autograd import no_grad
from opscope.tensor.nn.hooks import Hooks, RemovableHandle
from opscope.tensor.places import check

if TYPE_CHECKING:
    from typing_extensions import Self


class Parameter(Tensor):
    """A tensor that a module trains; it shares `data`'s storage and requires grad."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        return super().__new__(cls, make_tensor([]) if data is None else data)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor of a module's state that is not trained: an attribute that is one is registered as
    by `register_buffer`."""

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        return super().__new__(cls, make_tensor([]) if data is None else data)

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        self.persistent = persistent


class LoadedKeys(NamedTuple):
    """Keys that load_state_dict found on one side only."""

    missing_keys: list[str]
    """In the module, missing in the state."""
    unexpected_keys: list[str]
    """In the state, unknown to the module."""

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"LoadedKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
        )


class Module:
    """A computation with parameters. Subclass, set parameters and modules as attributes, and define
    `forward`; calling the module calls it.
    """

    training: bool = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Not in an __init__, which subclasses may not call.
        log_api_usage_once("opscope.tensor.nn.Module")
        return super().__new__(cls)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooks: Hooks | None = self.__dict__.get("_hooks")
        return self.forward(*args, **kwargs) if hooks is None else hooks.call(self, args, kwargs)

    def _own_hooks(self) -> Hooks:
        hooks: Hooks = vars(self).setdefault("_hooks", Hooks())
        return hooks

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args, result)` after each forward; `with_kwargs`: `hook(module,
        args, kwargs, result)`. A result of the hook that is not None replaces forward's."""
        hooks = self._own_hooks()
        return hooks.add(hooks.after, (hook, with_kwargs), prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before each forward; `with_kwargs`: `hook(module, args,
        kwargs)`. A result that is not None replaces the arguments."""
        hooks = self._own_hooks()
        return hooks.add(hooks.before, (hook, with_kwargs), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the positional
        arguments are computed: tuples, with None for what has no gradient. A result that is not
        None replaces grad_input."""
        hooks = self._own_hooks()
        return hooks.add(hooks.after_backward, hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` when the gradients of the result are computed, before
        the module's backward. A result that is not None replaces them."""
        hooks = self._own_hooks()
        return hooks.add(hooks.before_backward, hook, prepend)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(vars(self).get(name), Parameter) and not (
            value is None or isinstance(value, Parameter)
        ):
            raise TypeError(
                f"{type(self).__name__}.{name} is a parameter: set it to a Parameter or None, not "
                f"to a {type(value).__name__}"
            )
        if isinstance(value, Buffer) and name not in vars(self).get("_buffers", ()):
            vars(self).setdefault("_buffers", {})[name] = value.persistent
        super().__setattr__(name, value)

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """`setattr` under PyTorch's name."""
        setattr(self, name, parameter)

    def register_module(self, name: str, module: Module | None) -> None:
        """`setattr` under PyTorch's name."""
        setattr(self, name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """`setattr` under PyTorch's name."""
        setattr(self, name, module)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Registers an untrained tensor of the module's state; `persistent` ones are in
        `state_dict`."""
        vars(self).setdefault("_buffers", {})[name] = persistent
        setattr(self, name, tensor)

    # ---- contents ---------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, with their names."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one."""
        for _, child in self.named_children():
            yield child

    def get_submodule(self, target: str) -> Module:
        """The module of that dotted name. AttributeError if there is none."""
        found: Any = self
        for name in target.split(".") if target else ():
            found = getattr(found, name)
        if not isinstance(found, Module):
            raise AttributeError(f"{type(self).__name__} has no module {target!r}")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of that dotted name. AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"{type(self).__name__} has no parameter {target!r}")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of that dotted name. AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if name not in vars(owner).get("_buffers", ()):
            raise AttributeError(f"{type(self).__name__} has no buffer {target!r}")
        found: Tensor = getattr(owner, name)
        return found

    @property
    def _modules(self) -> dict[str, Module]:
        return dict(self.named_children())

    @property
    def _parameters(self) -> dict[str, Parameter]:
        return {name: each for name, each in vars(self).items() if isinstance(each, Parameter)}

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = ""
    ) -> Iterator[tuple[str, Module]]:
        """This module, then those below it, by dotted name; each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module, then those below it; each once."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """This module's parameters and its children's, by dotted name; each once."""
        yield from self._named(prefix, recurse, lambda own, _: isinstance(own, Parameter))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters without their names."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and its children, by dotted name; each once."""
        yield from self._named(prefix, recurse, lambda _, persistent: persistent is not None)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers without their names."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named(
        self, prefix: str, recurse: bool, wanted: Callable[[Any, bool | None], bool]
    ) -> Iterator[tuple[str, Any]]:
        """Tensors among the attributes, by dotted name; `wanted` gets each tensor and, for a
        buffer, whether it is persistent, otherwise None."""
        seen: set[Tensor] = set()
        modules = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        for path, module in modules:
            buffers: dict[str, bool] = vars(module).get("_buffers", {})
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or value in seen:
                    continue
                if wanted(value, buffers.get(name)):
                    seen.add(value)
                    yield f"{path}.{name}" if path else name, value

    # ---- state --------------------------------------------------------------------------------

    def _state(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by all their names, including shared ones."""
        own: dict[str, Tensor] = {}
        buffers: dict[str, bool] = vars(self).get("_buffers", {})
        for name, value in vars(self).items():
            if isinstance(value, Parameter) or (isinstance(value, Tensor) and buffers.get(name)):
                own[name] = value
        for name, child in self.named_children():
            own.update({f"{name}.{below}": each for below, each in child._state().items()})
        return own

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """Parameters and persistent buffers by name; the values share their storage. With
        `keep_vars` they are the parameters themselves."""
        state = self._state().items()
        return OrderedDict(
            (prefix + name, tensor if keep_vars else tensor.detach()) for name, tensor in state
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadedKeys:
        """Copies values in: tensors, or anything with the buffer protocol, such as PyTorch's
        tensors and arrays.

        Raises RuntimeError that names all missing and unexpected keys (unless not `strict`), and
        all with other shapes; it then copies nothing.
        """
        own = self._state()
        found = LoadedKeys(
            [name for name in own if name not in state_dict],
            [name for name in state_dict if name not in own],
        )
        wrong = []
        if strict and found.missing_keys:
            wrong.append(f"missing keys: {', '.join(found.missing_keys)}")
        if strict and found.unexpected_keys:
            wrong.append(f"unexpected keys: {', '.join(found.unexpected_keys)}")
        for name, tensor in own.items():
            if name in state_dict and tuple(state_dict[name].shape) != tensor.shape:
                wrong.append(
                    f"{name} has shape {tuple(tensor.shape)} in the module, "
                    f"{tuple(state_dict[name].shape)} in the state"
                )
        if wrong:
            raise RuntimeError(
                f"load_state_dict(): the state is not that of a {type(self).__name__}:\n\t"
                + "\n\t".join(wrong)
            )
        with no_grad():
            for name, tensor in own.items():
                if name in state_dict:
                    tensor.copy_(_as_tensor(state_dict[name]))
        return found

    # ---- changes --------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every module below."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call `function` with every module below, then with this one."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts floating parameters and buffers: `to(dtype)`, `to(device)`, `to(device, dtype)`,
        `to(tensor)`; parameters keep their identity. The only device is the cpu."""
        kwargs.pop("non_blocking", None)
        dtype = kwargs.pop("dtype", None)
        check(kwargs.pop("device", None), "to")
        if kwargs:
            raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
        for each in args:
            if isinstance(each, Tensor):
                dtype = each.dtype
            elif isinstance(each, DType):
                dtype = each
            elif not isinstance(each, bool):
                check(each, "to")
        if dtype is None:
            return self
        if not dtype.is_floating_point:
            raise TypeError(f"to(): a module's dtype is a floating one, not {dtype.name}")
        for module in self.modules():
            buffers = vars(module).get("_buffers", {})
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or not value.is_floating_point():
                    continue
                if isinstance(value, Parameter):
                    gradient = value.grad
                    value.data = value.data.to(dtype)
                    value.grad = None if gradient is None else gradient.to(dtype)
                elif name in buffers:
                    vars(module)[name] = value.to(dtype)
        return self

    def float(self) -> Self:
        """`to(float32)`."""
        return self.to(float32)

    def double(self) -> Self:
        """`to(float64)`."""
        return self.to(float64)

    def half(self) -> Self:
        """`to(float16)`."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """`to(bfloat16)`."""
        return self.to(bfloat16)

    def cpu(self) -> Self:
        """The module itself: there is no other device."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """RuntimeError: modules are on the cpu."""
        raise RuntimeError("cuda(): modules here are on the cpu; cuda.is_available() is False")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether backward computes gradients of the parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the parameters' gradients; with `set_to_none` False, sets them to zero."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach().fill_(0)

    # ---- representation -------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The text between the parentheses of `repr`, before the children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + repr(child).replace("\n", "\n  ")
            for name, child in self.named_children()
        ]
        if not children and len(lines) <= 1:
            return f"{type(self).__name__}({extra})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines + children) + "\n)"


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    from opscope._tensor import from_dlpack, from_numpy

    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    return from_numpy(value)
