"""200 clients that misbehave: no wrong answer, no stuck request, nothing left over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.serving.hostile import LIMITS, attack, left_over
from tests.serving.running import running, save_double, save_table, source
from tests.waiting import until

SECONDS = 4.0


@pytest.mark.slow
def test_what_200_clients_do_harms_nobody(tmp_path: Path) -> None:
    with running(
        source("double", save_double(tmp_path / "double.pt")),
        source("table", save_table(tmp_path / "table.pt")),
        limits=LIMITS,
    ) as server:
        seen = asyncio.run(attack(server, 200, SECONDS))
        assert seen.wrong == []
        assert seen.counts["answered"] > 0
        until(lambda: not any(left_over(server).values()), "the server has nothing left to do")
