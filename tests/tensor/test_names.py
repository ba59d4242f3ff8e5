"""PyTorch's names outside of operators: device, Size, limits, generators, files, missing names."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch

from opscope import tensor as ot


@pytest.mark.parametrize("args", [("cpu",), ("cuda",), ("cuda", 1), ("cuda:1",), ("cpu", 0)])
def test_devices_are_pytorchs(args: Any) -> None:
    own, their = ot.device(*args), torch.device(*args)
    assert (repr(own), str(own)) == (repr(their), str(their))
    assert (own.type, own.index) == (their.type, their.index)
    assert own == ot.device(*args)
    assert hash(own) == hash(ot.device(*args))
    assert own != "cpu"
    assert pickle.loads(pickle.dumps(own)) == own


def test_the_device_of_a_tensor_can_be_passed_on() -> None:
    x = ot.zeros(2)
    assert repr(x.device) == "device(type='cpu')"
    assert ot.ones(2, device=x.device).device == x.device
    assert ot.tensor(1, device=ot.device("cpu", 0)).item() == 1
    with pytest.raises(RuntimeError, match=r"cuda.*on the cpu"):
        ot.ones(2, device=ot.device("cuda:1"))
    with pytest.raises(RuntimeError, match="'tpu' is no device"):
        ot.device("tpu")


def test_sizes_are_pytorchs() -> None:
    own, their = ot.zeros(2, 3, 4).shape, torch.zeros(2, 3, 4).shape
    for run in (
        repr,
        str,
        lambda s: repr(s[1:]),
        lambda s: s[1],
        lambda s: s.numel(),
        lambda s: repr(s + s),
        lambda s: s == (2, 3, 4),
        lambda s: f"{s}",
        len,
    ):
        assert run(own) == run(their)
    assert isinstance(own, tuple)
    assert pickle.loads(pickle.dumps(own)) == own
    assert type(ot.zeros(2).size()) is ot.Size
    assert ot.zeros(own).shape == own


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_limits_of_floats_are_pytorchs(name: str) -> None:
    own, their = ot.finfo(getattr(ot, name)), torch.finfo(getattr(torch, name))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(own, field) == getattr(their, field), field


@pytest.mark.parametrize("name", ["uint8", "int32", "int64"])
def test_limits_of_integers_are_pytorchs(name: str) -> None:
    own, their = ot.iinfo(getattr(ot, name)), torch.iinfo(getattr(torch, name))
    assert (own.bits, own.min, own.max) == (their.bits, their.min, their.max)


def test_generators_repeat_and_leave_the_process_sequence_alone() -> None:
    ot.manual_seed(5)
    expected = ot.rand(3).tolist()
    ot.manual_seed(5)
    generator = ot.Generator().manual_seed(1)
    first = ot.rand(4, generator=generator).tolist()
    assert ot.rand(3).tolist() == expected
    assert ot.rand(4, generator=generator).tolist() != first
    state = generator.get_state()
    later = ot.randn(4, generator=generator).tolist()
    assert ot.randn(4, generator=generator.set_state(state)).tolist() == later
    assert ot.rand(4, generator=ot.Generator().manual_seed(1)).tolist() == first
    assert generator.initial_seed() == 1
    kept = ot.get_rng_state()
    drawn = ot.randperm(9).tolist()
    ot.set_rng_state(kept)
    assert ot.randperm(9).tolist() == drawn


def test_multinomial_draws_with_its_weights() -> None:
    ot.manual_seed(0)
    weights = ot.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])
    drawn = ot.multinomial(weights, 2000, replacement=True)
    counts = drawn[0].bincount(minlength=3)
    assert counts[0].item() == 0
    assert counts[2].item() / counts[1].item() == pytest.approx(3, rel=0.2)
    assert drawn[1].unique().tolist() == [0]
    assert sorted(ot.multinomial(weights[0], 2).tolist()) == [1, 2]
    with pytest.raises(RuntimeError, match="fewer than 3"):
        ot.multinomial(weights[0], 3)


def test_modules_are_there_without_importing_them() -> None:
    code = (
        "import opscope.tensor as torch\n"
        "torch.nn.functional.relu; torch.optim.lr_scheduler.StepLR; torch.utils.data.DataLoader\n"
        "torch.nn.utils.clip_grad_norm_; torch.nn.init.zeros_; torch.linalg.svd; torch.jit.trace\n"
        "assert not torch.cuda.is_available(); torch.backends.cudnn.benchmark = True\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_importing_the_core_imports_none_of_them() -> None:
    code = (
        "import sys, opscope.tensor\n"
        "late = ['nn', 'optim', 'data', 'utils', 'linalg', 'composed.linear', 'archive', 'jit']\n"
        "assert not [n for n in late if 'opscope.tensor.' + n in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("run", "nearest"),
    [
        (lambda: ot.einsm, "einsum"),
        (lambda: ot.nn.Conv2D, "Conv2d"),
        (lambda: ot.nn.functional.cross_entropi, "cross_entropy"),
        (lambda: ot.optim.Adamw, "AdamW"),
        (lambda: ot.nn.utils.clip_grad_norm, "clip_grad_norm_"),
        (lambda: ot.FloatTensr, "FloatTensor"),
    ],
)
def test_a_missing_name_names_the_nearest(run: Any, nearest: str) -> None:
    with pytest.raises(AttributeError, match=f"nearest spelling is '{nearest}'"):
        run()


def test_asking_for_a_name_does_not_search_for_the_nearest() -> None:
    code = (
        "import sys, pickle, opscope.tensor as ot\n"
        "assert not hasattr(ot, 'einsm')\n"
        "assert 'difflib' not in sys.modules\n"
        "try: ot.einsm\n"
        "except AttributeError as error:\n"
        "    assert str(pickle.loads(pickle.dumps(error))) == str(error)\n"
        "    assert repr(error).startswith('AttributeError(') and 'difflib' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_method_names_the_nearest_in_the_traceback() -> None:
    code = "import opscope.tensor as torch; torch.zeros(2).argmaxx()"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Did you mean: 'argmax'?" in found.stderr


def test_open_files_are_saved_to_and_loaded_from() -> None:
    file = io.BytesIO()
    ot.save({"x": ot.arange(3)}, file)
    file.seek(0)
    loaded = ot.load(file, map_location="cpu", weights_only=True)
    assert loaded["x"].tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="'cuda'"):
        ot.load(file, map_location="cuda")


def test_inference_mode_is_a_block_and_a_decorator() -> None:
    leaf = ot.ones(1, requires_grad=True)

    @ot.inference_mode()
    def off() -> Any:
        return leaf * 2

    off_too: Any = ot.inference_mode(lambda: leaf * 2)
    with ot.inference_mode():
        within = leaf * 2
    with ot.inference_mode(mode=False):
        on = leaf * 2
    found = [each.requires_grad for each in (off(), off_too(), within, on)]
    assert found == [False, False, False, True]
