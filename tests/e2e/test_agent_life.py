"""The end of the agent, and the demonstration as a whole; other files test its page."""

import os
import signal
import subprocess
import sys
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.e2e.observed_host import ObservedHost


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_agent_cleanly(host: ObservedHost, number: signal.Signals) -> None:
    list(host.samples())
    host.agent.send_signal(number)
    said, _ = host.agent.communicate(timeout=300)
    assert host.agent.returncode == 0
    assert "Traceback" not in said
    with pytest.raises(URLError):
        urlopen(host.url, timeout=300)


@pytest.mark.slow
def test_the_demonstration_works_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opscope.demo", "4"],
        env={key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "MLPClassifier accuracy 0.9" in done.stdout
    assert "numpy::matmul" in done.stdout
    assert (
        'opscope_op_duration_seconds_count{service_name="demo_digits.py",op="numpy::' in done.stdout
    )
