"""Parts of torch.nn's transformers, scripted and traced, give PyTorch's results here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tensor.jit.torchscript.compare import assert_close, compiled, loaded, ours, plain

torch: Any = pytest.importorskip("torch")

# PyTorch announces that torch.export replaces TorchScript.
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit", "ignore::UserWarning", "ignore::torch.jit.TracerWarning"
)

WIDTH, HEADS, STEPS = 16, 4, 5


@pytest.fixture(autouse=True)
def one_way() -> Any:
    """PyTorch's fast paths compute the same, but give zeros where a mask hides a whole step."""
    torch.manual_seed(0)
    before = torch.backends.mha.get_fastpath_enabled()
    yield
    torch.backends.mha.set_fastpath_enabled(before)


def check(model: Any, how: str, inputs: tuple[Any, ...], path: Path) -> None:
    model = model.eval()
    for each in model.modules():
        if isinstance(each, torch.nn.LayerNorm):
            torch.nn.init.normal_(each.weight)
            torch.nn.init.normal_(each.bias)
    made = compiled(model, how, *inputs)
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        wanted = plain(model(*inputs))
    assert_close(plain(loaded(made, path / "net.pt")(*ours(*inputs))), wanted)


def layer(**options: Any) -> Any:
    options = {"batch_first": True} | options
    return torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 32, **options)


def encoder(**options: Any) -> Any:
    norm = torch.nn.LayerNorm(WIDTH) if options.get("norm_first") else None
    return torch.nn.TransformerEncoder(layer(**options), 2, norm, enable_nested_tensor=False)


def image(*sizes: int) -> Any:
    return torch.randn(*sizes, WIDTH)


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder(
    activation: str, norm_first: bool, batch_first: bool, how: str, tmp_path: Path
) -> None:
    model = encoder(activation=activation, norm_first=norm_first, batch_first=batch_first)
    check(model, how, (image(2, STEPS),), tmp_path)


def padding() -> Any:
    mask = torch.zeros(2, STEPS, dtype=torch.bool)
    mask[1, 3:] = True
    return mask


def causal() -> Any:
    return torch.nn.Transformer.generate_square_subsequent_mask(STEPS)


MASKS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "padding": lambda: (None, padding()),
    "causal": lambda: (causal(),),
    "causal bool": lambda: (causal().isinf(),),
    "both": lambda: (causal(), padding().float().masked_fill(padding(), float("-inf"))),
    "is_causal": lambda: (causal(), None, True),
    "none": lambda: (None, None, None),
}


@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_a_scripted_encoder(mask: str, tmp_path: Path) -> None:
    """One archive takes all of them."""
    check(encoder(), "script", (image(2, STEPS), *MASKS[mask]()), tmp_path)


def test_a_mask_of_a_traced_encoder(tmp_path: Path) -> None:
    check(encoder(), "trace", (image(2, STEPS), causal()), tmp_path)


def test_an_encoder_with_nested_tensors_computes_without(tmp_path: Path) -> None:
    model = torch.nn.TransformerEncoder(layer(), 2, enable_nested_tensor=True)
    check(model, "script", (image(2, STEPS), None, padding()), tmp_path)


PARTS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "layer": (layer, lambda: (image(2, STEPS),)),
    "one sequence": (encoder, lambda: (image(STEPS),)),
    "attention": (
        lambda: torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True),
        lambda: (image(2, STEPS), memory := image(2, 7), memory),
    ),
    "attention of itself": (
        lambda: torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True),
        lambda: (x := image(2, STEPS), x, x),
    ),
    "other widths": (
        lambda: torch.nn.MultiheadAttention(WIDTH, HEADS, kdim=8, vdim=6, add_bias_kv=True),
        lambda: (image(STEPS, 2), torch.randn(7, 2, 8), torch.randn(7, 2, 6)),
    ),
    "decoder": (
        lambda: torch.nn.TransformerDecoder(
            torch.nn.TransformerDecoderLayer(WIDTH, HEADS, 32, batch_first=True), 2
        ),
        lambda: (image(2, STEPS), image(2, 6)),
    ),
    "both": (
        lambda: torch.nn.Transformer(WIDTH, HEADS, 1, 1, 32, batch_first=True),
        lambda: (image(2, STEPS), image(2, 6)),
    ),
}


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("part", PARTS)
def test_other_parts(part: str, how: str, tmp_path: Path) -> None:
    make, inputs = PARTS[part]
    check(make(), how, inputs(), tmp_path)


@pytest.mark.parametrize("how", ["trace", "script"])
def test_a_classifier_of_tokens(how: str, tmp_path: Path) -> None:
    class Classifier(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(50, WIDTH)
            self.places = torch.nn.Parameter(torch.randn(1, 20, WIDTH))
            self.encoder = encoder()
            self.head = torch.nn.Linear(WIDTH, 3)

        def forward(self, tokens):  # type: ignore[no-untyped-def]
            x = self.embed(tokens) + self.places[:, : tokens.size(1)]
            return self.head(self.encoder(x).mean(dim=1)).softmax(-1)

    check(Classifier(), how, (torch.randint(50, (2, 7)),), tmp_path)
