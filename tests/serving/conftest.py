"""A server that the tests of one file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.running import Running, running, save_double, save_table, source


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serves `double` in versions 1 (twice) and 2 (three times), and `table`."""
    folder = tmp_path_factory.mktemp("models")
    with running(
        source("double", save_double(folder / "double-1.pt")),
        source("double", save_double(folder / "double-2.pt", 3.0), "2"),
        source("table", save_table(folder / "table.pt")),
    ) as found:
        yield found
