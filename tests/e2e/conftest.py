"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.observed_host import ObservedHost, observed_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ObservedHost]:
    """A host with an agent and no observed program yet."""
    with observed_host(tmp_path / "segments") as host:
        yield host
