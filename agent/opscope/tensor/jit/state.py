"""Copies of the elements of tensors, to compare with and to restore."""

from __future__ import annotations

from collections.abc import Iterable

from opscope._tensor import Tensor
from opscope.tensor.autograd import no_grad


class State:
    """Copies of tensors, each made by `keep` before something may write the tensor."""

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        self._kept: dict[int, tuple[Tensor, Tensor, int]] = {}
        for tensor in tensors:
            self.keep(tensor)

    def keep(self, tensor: Tensor) -> None:
        """Copies the tensor's elements, unless it has been done."""
        if id(tensor) not in self._kept:
            self._kept[id(tensor)] = tensor, tensor.detach().clone(), tensor._version

    def __contains__(self, tensor: Tensor) -> bool:
        return id(tensor) in self._kept

    def written(self) -> list[Tensor]:
        """The tensors written since they were kept."""
        return [kept for kept, _, version in self._kept.values() if kept._version != version]

    def restore(self) -> None:
        """Writes the copies back into the tensors that were written."""
        with no_grad():
            for kept, copy, version in list(self._kept.values()):
                if kept._version != version:
                    kept.detach().copy_(copy)
                    self._kept[id(kept)] = kept, copy, kept._version
