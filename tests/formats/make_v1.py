"""The script that wrote v1.seg.gz and v1.json, once, with the recorder of version 0.1.0. Do not run
it again: the files stay unchanged as long as Opscope reads segments of version 1.

The program's calls are known. Its times are not; v1.json has them as read field by field with
struct, independently of the reader under test.
"""

import gzip
import json
import struct
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import opscope
from opscope.record import recorder

HERE = Path(__file__).parent
HEADER, CHUNK, CHUNK_HEADER = 4096, 16384, 64


def run() -> None:
    for _ in range(100):
        with opscope.record_function("outer"), opscope.record_function("inner"):
            pass
    for _ in range(7):
        try:
            with opscope.record_function("fails"):
                raise KeyError
        except KeyError:
            pass
    with opscope.debug_info(model_id="größe", user="ignored"):
        for _ in range(30):
            with opscope.record_function("Optimizer.step#SGD.step"), opscope.record_function("a"):
                pass


def cells_of(raw: bytes) -> list[dict[str, Any]]:
    lines: dict[tuple[int, int], tuple[int, ...]] = {}
    cells: list[tuple[int, tuple[int, ...]]] = []
    names: dict[int, str] = {}
    labels: dict[int, list[str]] = {0: []}
    (count,) = struct.unpack_from("<I", raw, 24)
    for index in range(count):
        start = HEADER + index * CHUNK
        kind, table, first, used = struct.unpack_from("<4I", raw, start)
        at = start + CHUNK_HEADER
        if kind == 1:
            end = at + used
            while at < end:
                entry, _, number, size, _ = struct.unpack_from("<HHIII", raw, at)
                texts = raw[at + 16 : at + 16 + size].decode().split("\0")[:-1]
                if entry == 1:
                    names[number] = texts[0]
                elif entry == 2:
                    labels[number] = texts
                at += 16 + (size + 7) // 8 * 8
        elif kind == 2:
            cells += [(table, struct.unpack_from("<8Q64H", raw, at + i * 192)) for i in range(used)]
        elif kind == 3:
            for i in range(used):
                lines[table, first + i] = struct.unpack_from("<8Q", raw, at + i * 64)
    rows: dict[int, dict[str, Any]] = {}
    for table, cell in cells:
        if cell[1] == 0:
            continue
        key = cell[0]
        new = {
            "op": names[key & 0xFFFFFFFF],
            "phase": key >> 32 & 0xFF,
            "labels": labels[key >> 40],
            "values": [0] * 7,
            "buckets": defaultdict(int),
        }
        row = rows.setdefault(key, new)
        row["values"] = [a + b for a, b in zip(row["values"], cell[1:8], strict=True)]
        for octave, line in enumerate(cell[8:]):
            for bucket, weight in enumerate(lines[table, line - 1] if line else ()):
                if weight:
                    row["buckets"][str((octave - 40) * 8 + bucket)] += weight
    return list(rows.values())


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o700)
        opscope.log_api_usage_once("golden.api")
        recorder.start(directory, sampling=1.0, label_keys=("model_id",))
        recorder.note("program", "golden.py")
        recorder.note("service.name", "golden")
        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run()
        path = recorder.status().path
        recorder.stop()
        raw = Path(path).read_bytes()
    (count,) = struct.unpack_from("<I", raw, 24)
    raw = raw[: HEADER + count * CHUNK]
    (HERE / "v1.seg.gz").write_bytes(gzip.compress(raw, mtime=0))
    (ticks_per_second,) = struct.unpack_from("<Q", raw, 104)
    told = {"ticks_per_second": ticks_per_second, "rows": cells_of(raw)}
    (HERE / "v1.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
