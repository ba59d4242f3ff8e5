"""Choose a page's format by the client's Accept header (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Offer(NamedTuple):
    media_type: str
    parameters: Mapping[str, tuple[str, ...]]
    """Permitted values of each parameter; "" permits its absence."""


class _Preference(NamedTuple):
    media_type: str
    parameters: dict[str, str]
    quality: float


def chosen(accept: str, offers: Sequence[Offer]) -> tuple[Offer, dict[str, str]]:
    """The best offer, with the requested parameters. If none matches, the first offer, which any
    client is most likely to understand."""
    for preference in sorted(_preferences(accept), key=lambda preference: -preference.quality):
        if preference.quality > 0:
            for offer in offers:
                if _means(preference, offer):
                    return offer, preference.parameters
    return offers[0], {}


def _means(preference: _Preference, offer: Offer) -> bool:
    return preference.media_type == offer.media_type and all(
        preference.parameters.get(name, "") in values for name, values in offer.parameters.items()
    )


def _preferences(accept: str) -> list[_Preference]:
    preferences = []
    for part in accept.split(","):
        media_type, *rest = (piece.strip() for piece in part.split(";"))
        pairs = (piece.partition("=") for piece in rest)
        parameters = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        preferences.append(_Preference(media_type.lower(), parameters, quality))
    return preferences
