"""The number of series of a host in Prometheus: `python -m tests.exporters.series_counts`.

Two real programs run one after another for some seconds each, with every range recorded: a PyTorch
training and a threaded HTTP server that computes with NumPy. The output has the rows of the table
in exporters/METRICS.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope_exporters.prometheus.exporter import Prometheus

PROGRAMS = {
    "PyTorch training": "trainer.py",
    "NumPy server": "server.py",
}
OCTAVES = (4.0, 2.0, 1.0, 0.5, 0.125)
SECONDS = 10.0
_RUN = [
    sys.executable,
    "-c",
    "from opscope.cli import main; main()",
    "run",
    "--sampling",
    "1",
    "--",
]


def observed(program: str, seconds: float, directory: str) -> Snapshot:
    """A host on which that program has run."""
    path = Path(__file__).parent / "programs" / program
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPSCOPE_")}
    environ = kept | {"OPSCOPE_DIR": directory}
    subprocess.run([*_RUN, sys.executable, str(path), str(seconds)], env=environ, check=True)
    return Host([directory], consume=False).collect()


def lines(snapshot: Snapshot, octaves: float) -> list[str]:
    """The number of samples of the text page, which is the number of series in Prometheus."""
    page = b"".join(Prometheus(octaves).page(snapshot, "")[0]).decode()
    return [line for line in page.splitlines() if not line.startswith("#")]


def classic(snapshot: Snapshot, octaves: float) -> int:
    return len(lines(snapshot, octaves))


def native(snapshot: Snapshot) -> int:
    """Each histogram is one series, and the calls are another."""
    page = lines(snapshot, 1.0)
    histograms = [line for line in page if line.startswith("opscope_op_duration_seconds_")]
    return len(page) - len(histograms) + 2 * sum("_count{" in line for line in histograms)


def row(what: str, snapshot: Snapshot) -> str:
    page = lines(snapshot, 1.0)
    operators = sum(line.startswith("opscope_op_duration_seconds_count{") for line in page)
    numbers = [operators, native(snapshot), *(classic(snapshot, octaves) for octaves in OCTAVES)]
    return f"| {what} | {' | '.join(f'{number:,}' for number in numbers)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that each program runs")
    seconds = parser.parse_args().seconds
    for what, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as directory:
            print(row(what, observed(program, seconds, directory)), flush=True)


if __name__ == "__main__":
    main()
