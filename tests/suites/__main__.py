"""The packages' own test suites, bare and attached: `make suites`.

Usage: python -m tests.suites [PACKAGE...]. A package that is not installed is named and left out.
`pandas.tests.frame` is a part of a package's suite. The modes run at once, one per processor.
Prints each test that ends otherwise attached, and exits with 1 if there are any. A test that ends
otherwise runs again, alone, in both modes: some fail now and then by themselves.
"""

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.suites.compare import MODES, differences, run

_LIMIT_S = 7200

# Which tests of each package, as pytest's -m takes it.
SUITES = {
    "numpy": "not slow",
    "scipy": "not slow",
    "pandas": "not slow and not network and not db",
    "sklearn": "",
    "xarray": "",
    "statsmodels": "not slow",
}


def main(packages: list[str]) -> int:
    count = 0
    for package in packages or SUITES:
        if find_spec(package) is None:
            print(f"{package}: not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="opscope-suites-") as directory:
            count += _compare(package, Path(directory))
    return 1 if count else 0


def _compare(package: str, directory: Path) -> int:
    arguments = ("--pyargs", package, "-m", SUITES[package.partition(".")[0]])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        ran = {mode: pool.submit(run, mode, directory, arguments, _LIMIT_S) for mode in MODES}
    bare = ran.pop("bare").result()
    count = 0
    for mode, future in ran.items():
        other = future.result()
        found = [text for text in differences(bare, other) if not _again(text, mode, directory)]
        print(
            f"{package}, {mode}: {len(other.outcomes)} outcomes, {other.operators} operators, "
            f"{len(found)} differ from bare",
            flush=True,
        )
        for text in found:
            print(f"  {text}", flush=True)
        count += len(found)
    return count


def _again(difference: str, mode: str, directory: Path) -> bool:
    """Whether the test, run alone, ends attached as it does bare."""
    test = difference.rpartition(": bare ")[0].rpartition(" ")[0]
    arguments = ("--pyargs", test)
    bare = run("bare", directory, arguments, _LIMIT_S)
    return bool(bare.outcomes) and not differences(bare, run(mode, directory, arguments, _LIMIT_S))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
