"""Make many segments of ended jobs quickly, each with its own service, from one template."""

import os
from pathlib import Path

from opscope.segments import layout
from tests.segments.segment_writer import Process, Range, SegmentWriter

NUMBER = "00000000"
OPS = ("job::load", "job::work", "job::save")
CALLS_OF_A_JOB = 1 + 2 + 3

_CREATED, _START, _RANDOM = 0x2222222222222222, 0x33333333, b"RANDOMID"


class EndedJobs:
    """Job `number` is of the service `job<number>` and ran each of OPS: once, twice and thrice."""

    def __init__(self, service: str = "job") -> None:
        writer = SegmentWriter(
            Process(0x7777777, _START, random_id=_RANDOM * 2),
            liveness=layout.LIVENESS_LOCK,
            created_unix_ns=_CREATED,
        )
        writer.note("service.name", f"{service}{NUMBER}")
        writer.usage("job.api")
        writer.metric("opscope.memory.allocated", "cpu", 7, layout.METRIC_COUNTER)
        writer.add([Range(op, 1e-3, 1 + n, self_s=5e-4) for n, op in enumerate(OPS)])
        self._raw = writer.to_bytes()

    def write(self, place: Path, number: int, created_unix_ns: int) -> None:
        random = number.to_bytes(8, "little")
        process = Process(number % 30_000 + 2, number + 1, random_id=random + bytes(8))
        raw = self._raw.replace(NUMBER.encode(), f"{number:08}".encode())
        for old, new in (
            (_RANDOM * 2, process.random_id),
            ((0x7777777).to_bytes(8, "little"), process.pid.to_bytes(8, "little")),
            (_START.to_bytes(8, "little"), process.process_start.to_bytes(8, "little")),
            (_CREATED.to_bytes(8, "little"), created_unix_ns.to_bytes(8, "little")),
        ):
            raw = raw.replace(old, new, 1)
        fd = os.open(place / process.file_name, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, raw)
        os.close(fd)
