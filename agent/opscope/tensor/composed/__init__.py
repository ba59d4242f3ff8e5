"""Functions and methods composed of the core's operators, under PyTorch's names.

They open no range of their own; their operators do. A module is imported when one of its names is
used first: `find` imports it, and `Later` stands on Tensor until then.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.autograd import is_grad_enabled

# Functions of opscope.tensor that are methods too.
_BOTH = {
    "conversion": ("is_complex is_nonzero is_same_size"),
    "elementwise": (
        "absolute acosh arccos arcsin arctan arctan2 asinh atan2 atanh clamp clamp_max clamp_min "
        "clip copysign deg2rad div divide erfc fix fmax fmin fmod frac greater greater_equal "
        "heaviside hypot isneginf isposinf isreal less less_equal logaddexp2 logit multiply "
        "nan_to_num negative not_equal positive rad2deg round sgn signbit sinc subtract "
        "true_divide where xlogy"
    ),
    "linear": ("addbmm addmv addr baddbmm cross inner kron trace vdot"),
    "reductions": (
        "aminmax bincount corrcoef cov cumprod cumsum diff dist histc kthvalue logcumsumexp median "
        "nanmean nansum norm prod quantile renorm std var"
    ),
    "sampling": "bernoulli multinomial",
    "selection": (
        "argwhere index_copy index_fill masked_scatter msort narrow nonzero scatter_reduce "
        "select_scatter take take_along_dim unique unique_consecutive"
    ),
    "shapes": (
        "adjoint as_strided diag diag_embed diagonal fliplr flipud moveaxis movedim ravel "
        "repeat_interleave rot90 swapaxes swapdims tensor_split tile unflatten"
    ),
}
_FUNCTIONS_ALONE = {
    "conversion": (
        "can_cast get_default_dtype is_floating_point is_storage is_tensor numel promote_types "
        "result_type set_default_dtype"
    ),
    "creation": (
        "BoolTensor ByteTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor as_tensor "
        "asarray logspace meshgrid randint_like scalar_tensor tril_indices triu_indices"
    ),
    "elementwise": "rsub",
    "linear": "cartesian_prod cdist einsum pdist tensordot",
    "reductions": "cosine_similarity std_mean trapezoid var_mean",
    "sampling": "rand randint randn randperm",
    "selection": "bucketize isin searchsorted",
    "shapes": (
        "atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors column_stack concat "
        "concatenate dstack hstack row_stack vstack"
    ),
}
_METHODS_ALONE = {
    "conversion": "get_device ndimension nelement to type",
    "creation": "new_tensor",
    "sampling": "bernoulli_ exponential_ normal_ random_ uniform_",
    "selection": "index_copy_ index_fill_ masked_scatter_",
    "shapes": "squeeze_ unsqueeze_",
}
# Methods that write their tensor, made of the functions without the underscore.
_IN_PLACE = {
    "elementwise": (
        "absolute_ acosh_ asinh_ atan2_ atanh_ clamp_max_ clamp_min_ clip_ copysign_ divide_ erfc_ "
        "fmod_ frac_ hypot_ multiply_ nan_to_num_ negative_ subtract_"
    ),
    "reductions": "cumprod_ cumsum_",
    "linear": "baddbmm_",
}


def _places(*tables: dict[str, str]) -> dict[str, str]:
    """The module of each name."""
    return {
        name: file for table in tables for file, names in table.items() for name in names.split()
    }


FUNCTIONS = _places(_BOTH, _FUNCTIONS_ALONE)
METHODS = _places(_BOTH, _METHODS_ALONE)
WRITERS = _places(_IN_PLACE)


def find(name: str, file: str) -> Any:
    """The function of that name."""
    own = "type_" if name == "type" else name  # which the module needs for Python's
    return getattr(import_module(f"opscope.tensor.composed.{file}"), own)


def in_place(name: str) -> Any:
    """The method `name`, such as "clip_", which writes the result of `clip` into its tensor."""
    function = find(name[:-1], WRITERS[name])

    def write(self: Tensor, *args: Any, **named: Any) -> Tensor:
        # With the tape, of a copy: a node may keep what the write changes.
        on_tape = self.requires_grad and is_grad_enabled()
        return self.copy_(function(self.clone() if on_tape else self, *args, **named))

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"`{name[:-1]}`, in place."
    return write


def stands_for(function: Any) -> Any:
    """The operator that graphs hold for a function with an operator's name; else the function."""
    module = getattr(function, "__module__", None) or ""
    if not module.startswith("opscope.tensor.composed."):
        return function
    return getattr(import_module(module), "STANDS_FOR", {}).get(function, function)


class Later:
    """Stands on Tensor for a method, which replaces it when it is used first."""

    __slots__ = ("_file", "_name")

    def __init__(self, name: str, file: str) -> None:
        self._name = name
        self._file = file

    def __get__(self, owner: Tensor | None, kind: type[Tensor]) -> Any:
        name = self._name
        method = in_place(name) if name in WRITERS else find(name, self._file)
        setattr(Tensor, name, method)
        return getattr(kind if owner is None else owner, name)


def methods() -> dict[str, Any]:
    """What Tensor gets when opscope.tensor is imported."""
    return {name: Later(name, file) for name, file in (METHODS | WRITERS).items()}
