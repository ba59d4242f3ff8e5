"""The server that hostile.py attacks, in a process of its own.

Prints its addresses as JSON; for each line on its input, what it holds, once that has settled; ends
with its input.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import sleep

from tests.serving.hostile import LIMITS, left_over
from tests.serving.running import Running, running, save_double, save_table, source

_SETTLE_S = 60.0
_TURN_S = 1.0


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    with (
        tempfile.TemporaryDirectory() as folder,
        running(
            source("double", save_double(Path(folder) / "double.pt")),
            source("table", save_table(Path(folder) / "table.pt")),
            limits=LIMITS,
        ) as server,
    ):
        print(json.dumps({"grpc": server.grpc, "http": server.http}), flush=True)
        for _ in sys.stdin:
            print(json.dumps(_settled(server)), flush=True)


def _settled(server: Running) -> dict[str, int]:
    """What it holds when it has held the same for some turns, but for its memory."""
    seen: list[dict[str, int]] = []
    for _ in range(int(_SETTLE_S / _TURN_S)):
        sleep(_TURN_S)
        seen.append(_held(server))
        last = [{**one, "resident bytes": 0} for one in seen[-5:]]
        if len(last) == 5 and all(one == last[0] for one in last):
            break
    return seen[-1]


def _held(server: Running) -> dict[str, int]:
    # What the C library keeps for later requests is no leak: without this, it changes by 100 MiB.
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        **left_over(server),
        "tasks": server.call(_tasks()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "resident bytes": pages * resource.getpagesize(),
    }


async def _tasks() -> int:
    return len(asyncio.all_tasks())


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
