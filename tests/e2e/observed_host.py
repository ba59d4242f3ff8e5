"""A separate host for an end-to-end test: a segment directory, and an agent that reads it."""

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
    """`url` is the agent's address; `environ` is the environment of programs on this host."""

    def __init__(self, url: str, directory: Path, agent: subprocess.Popen[str]) -> None:
        self.url = url
        self.directory = directory
        self.environ = environ_of(directory)
        self.agent = agent

    def start(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """A program, observed with p=1."""
        observed = (str(OPSCOPE), "run", "--sampling", "1", "--", *command)
        program: Any = subprocess.Popen(observed, env=self.environ, **options)
        # Type checkers mistake the options for those of a text stream.
        return cast("subprocess.Popen[bytes]", program)

    def run(self, *command: str) -> str:
        """The output of the program, observed with p=1 until it ends regularly."""
        with self.start(*command, stdout=subprocess.PIPE) as program:
            output, _ = program.communicate(timeout=TIMEOUT_S)
        assert program.returncode == 0
        return output.decode()

    def page(self) -> str:
        """The agent's page now."""
        with urlopen(f"{self.url}/metrics", timeout=TIMEOUT_S) as page:
            return str(page.read().decode())

    def samples(self) -> Iterator[Sample]:
        """The samples on the agent's page now."""
        for family in text_string_to_metric_families(self.page()):
            yield from family.samples

    def calls(self) -> Counter[str]:
        """Calls of each operator, over everything else, once every program's end has been seen.

        The agent removes a segment in the pass that takes in the last of it.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while any(self.directory.glob("*.seg")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            self.page()
        calls: Counter[str] = Counter()
        for sample in self.samples():
            if sample.name == "opscope_op_duration_seconds_count":
                assert sample.value == int(sample.value)
                calls[sample.labels["op"]] += int(sample.value)
        return calls


@contextmanager
def observed_host(directory: Path) -> Iterator[ObservedHost]:
    """Starts an agent over that directory, and ends it afterwards."""
    with subprocess.Popen(
        [OPSCOPE, "agent", "--listen", "127.0.0.1:0"],
        env=environ_of(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as agent:
        try:
            assert agent.stdout is not None
            said = agent.stdout.readline()
            (url,) = (word for word in said.split() if word.startswith("http://"))
            yield ObservedHost(url.removesuffix("/"), directory, agent)
        finally:
            agent.terminate()


def environ_of(directory: Path) -> dict[str, str]:
    """Variables of a program whose segments go to that directory, observed as by default."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
    # One thread for matrix products: on a busy machine, several wait for each other.
    return kept | {"OPSCOPE_DIR": str(directory), "OPENBLAS_NUM_THREADS": "1"}
