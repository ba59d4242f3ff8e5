"""Try the bridge with each version of PyTorch: `make torch-matrix`, or for some of them
`make torch-matrix VERSIONS="2.9.1 2.12.1"`.

For one version after another: makes an environment with it, runs the bridge's tests there,
compares a training loop's calls with torch.profiler's, writes the row in native/bridges/VERSIONS.md
and removes the environment. build/torch-matrix has the output of the tests. It takes the network,
2 GB of disk and some ten minutes for each version, so it is no part of `make test`.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TextIO

from tests.torch_versions import environment, table
from tests.torch_versions.findings import Outcomes, Trial, read_report

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "torch-matrix"
_NEED_GPU = "test_torch_cuda.py"
TESTS = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.glob("tests/bridges/test_torch_*.py")
    if path.name != _NEED_GPU
)
RELEASES = (
    *("2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0"),
    *("2.14.0", "2.14.1", "2.15.0"),
)
"""The last of each minor version, and what other projects pin."""
_TESTS_FAILED = 1
"""pytest's exit status."""
_FILE_LIMIT_S = 3600.0
"""For the tests of one file."""


def try_version(version: str, environments: Path | None, marks: str) -> list[str]:
    """Its row. Its environment is removed, unless it is in the folder of `environments`."""
    folder = (environments or FOLDER) / version
    python = folder / "bin" / "python"
    try:
        try:
            if not python.exists():
                environment.make(version, folder)
        except subprocess.CalledProcessError:
            return table.not_tried(version, "no environment with it could be made")
        trial = _trial(python, version)
        if trial.reason:
            return table.refused(trial)
        with (FOLDER / f"{version}.txt").open("w") as output:
            found = [_tests(python, path, marks, output) for path in TESTS]
        return table.row(trial, Outcomes.of_all(found), marks)
    finally:
        if environments is None:
            shutil.rmtree(folder, ignore_errors=True)


def _trial(python: Path, version: str) -> Trial:
    command = [str(python), "-W", "ignore", "-m", "tests.torch_versions.trial"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:  # by a signal if it is negative
        return Trial(reason=f"the process that attaches ends with {done.returncode}", torch=version)
    return Trial(**json.loads(done.stdout.splitlines()[-1]))


def _tests(python: Path, path: str, marks: str, output: TextIO) -> Outcomes:
    """Of one file. What failed runs a second time, by itself, as in `make test`."""
    found = Outcomes()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["-m", marks, f"--junitxml={report}", "-o", f"cache_dir={folder}/cache", path]
        command = [str(python), "-m", "pytest", *options]
        for again in ([], ["--last-failed", "--last-failed-no-failures=none"]):
            report.unlink(missing_ok=True)
            print(f"$ {' '.join([*command, *again])}", file=output, flush=True)
            try:
                status = subprocess.run(
                    [*command, *again],
                    cwd=ROOT,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_FILE_LIMIT_S,
                ).returncode
            except subprocess.TimeoutExpired:
                return Outcomes(failed=frozenset({f"{path}, which did not end"}))
            if not report.exists():  # a crash ends pytest before it writes one
                return Outcomes(failed=frozenset({f"{path}, which ended with {status}"}))
            run = read_report(report.read_text())
            found = found.again(run) if again else run
            if status != _TESTS_FAILED:
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Try the bridge with each version of PyTorch.")
    parser.add_argument("versions", nargs="*", default=RELEASES, help="all that we try by default")
    parser.add_argument("--environments", type=Path, help="a folder that keeps them")
    parser.add_argument("--marks", default="", help="pytest's -m, for fewer tests")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for version in options.versions:
        row = try_version(version, options.environments, options.marks)
        table.update(row)
        print(" | ".join(row), flush=True)


if __name__ == "__main__":
    main()
