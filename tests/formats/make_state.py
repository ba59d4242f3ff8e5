"""The script that wrote the stored states: run it in a worktree of an earlier commit, with that
commit's environment.

    git worktree add --detach OLD COMMIT; cd OLD; (install it); PYTHONPATH=. python THIS_FILE OUT

Writes OUT/COMMIT.state.gz, the state of an agent that ended between saving and removing, and
OUT/COMMIT.json, the numbers that the agent of that commit reported. Works with commits since
afb1283.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from opscope.host.host import Host
from opscope.host.state_file import StateFile
from tests.segments.segment_writer import Process, Range, SegmentWriter

BOOT_ID = bytes(range(16))


def dead(number: int) -> Process:
    # A fixed random id, so that the file's name is the same each time.
    return Process(100 + number, 1 + number, BOOT_ID, 4026531836, bytes([number + 1]) * 16)


def main(out: Path) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="opscope-golden-") as directory:
        for number in range(3):
            writer = SegmentWriter(dead(number), created_unix_ns=10**18 + number)
            writer.note("service.name", f"service{number % 2}")
            writer.note("bridge.numpy", "attached")
            writer.usage("golden.api")
            writer.add(
                [
                    Range("numpy::add", 1e-3, 2 + number, self_s=5e-4),
                    Range("größe", 2e-6, 7, labels=(("model_id", "a"),), failed=True),
                ]
            )
            writer.write(Path(directory))
        state = Path(directory) / "agent.state"
        host = Host([directory], consume=True, state=StateFile(str(state)))
        snapshot = host.collect()
        raw = state.read_bytes()
        host.close()
    # The state belongs to the boot in which it was written.
    (out / f"state-{commit}.gz").write_bytes(gzip.compress(raw, mtime=0))
    told = {
        "directory": directory,
        "taken": sorted(dead(number).file_name for number in range(3)),
        "series": [
            [key.service, key.op, key.phase, [list(pair) for pair in key.labels]]
            for key in snapshot.keys
        ],
        "counters": snapshot.counters.tolist(),
        "buckets": [int(line.sum()) for line in snapshot.buckets],
        "created_unix_ns": snapshot.created_unix_ns.tolist(),
    }
    text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    (out / f"state-{commit}.json").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
