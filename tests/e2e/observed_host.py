"""A host of one's own for an end-to-end test: a segment directory, and an agent that reads it."""

import os
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

OPSCOPE = Path(sysconfig.get_path("scripts")) / "opscope"
TIMEOUT_S = 300


class ObservedHost:
    """``url`` is the agent's; ``environ`` is what programs on this host run with."""

    def __init__(self, url: str, directory: Path, agent: subprocess.Popen[str]) -> None:
        self.url = url
        self.directory = directory
        self.environ = _environ(directory)
        self.agent = agent

    def start(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """A program, observed with p=1."""
        observed = (str(OPSCOPE), "run", "--sampling", "1", "--", *command)
        program: Any = subprocess.Popen(observed, env=self.environ, **options)
        # Type checkers take the options for those of a text stream.
        return cast("subprocess.Popen[bytes]", program)

    def run(self, *command: str) -> str:
        """What the program printed, observed with p=1 to its good end."""
        with self.start(*command, stdout=subprocess.PIPE) as program:
            output, _ = program.communicate(timeout=TIMEOUT_S)
        assert program.returncode == 0
        return output.decode()

    def samples(self) -> Iterator[Sample]:
        """What the agent's page says now."""
        with urlopen(f"{self.url}/metrics", timeout=TIMEOUT_S) as page:
            text = page.read().decode()
        for family in text_string_to_metric_families(text):
            yield from family.samples

    def calls(self) -> Counter[str]:
        """Calls of each operator, over everything else, once every program's end has been seen.

        The agent removes a segment in the pass that takes in the last of it.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while any(self.directory.glob("*.seg")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            list(self.samples())
        calls: Counter[str] = Counter()
        for sample in self.samples():
            if sample.name == "opscope_op_calls_total":
                assert sample.value == int(sample.value)
                calls[sample.labels["op"]] += int(sample.value)
        return calls


@contextmanager
def observed_host(directory: Path) -> Iterator[ObservedHost]:
    """Starts an agent over that directory, and ends it afterwards."""
    with subprocess.Popen(
        [OPSCOPE, "agent", "--listen", "127.0.0.1:0"],
        env=_environ(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as agent:
        try:
            assert agent.stdout is not None
            said = agent.stdout.readline()
            (url,) = (word for word in said.split() if word.startswith("http://"))
            yield ObservedHost(url.removesuffix("/metrics"), directory, agent)
        finally:
            agent.terminate()


def _environ(directory: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
    # One thread for matrix products: many would wait for each other where the machine is busy.
    return kept | {"OPSCOPE_DIR": str(directory), "OPENBLAS_NUM_THREADS": "1"}
