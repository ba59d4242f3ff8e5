"""Which of several forms of a page a client likes best, by its Accept header (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Offer(NamedTuple):
    media_type: str
    parameters: Mapping[str, tuple[str, ...]]
    """Values that each may have for this offer to be meant; "" where it may be left out."""


class _Wish(NamedTuple):
    media_type: str
    parameters: dict[str, str]
    quality: float


def chosen(accept: str, offers: Sequence[Offer]) -> tuple[Offer, dict[str, str]]:
    """The offer, and the parameters it was asked for with. The first one where none was: a client
    that asks for something else still understands it best."""
    for wish in sorted(_wishes(accept), key=lambda wish: -wish.quality):
        if wish.quality > 0:
            for offer in offers:
                if _means(wish, offer):
                    return offer, wish.parameters
    return offers[0], {}


def _means(wish: _Wish, offer: Offer) -> bool:
    return wish.media_type == offer.media_type and all(
        wish.parameters.get(name, "") in values for name, values in offer.parameters.items()
    )


def _wishes(accept: str) -> list[_Wish]:
    wishes = []
    for part in accept.split(","):
        media_type, *rest = (piece.strip() for piece in part.split(";"))
        pairs = (piece.partition("=") for piece in rest)
        parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        wishes.append(_Wish(media_type.lower(), parameters, quality))
    return wishes
