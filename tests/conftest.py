"""Fixtures shared by all folders."""

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from native.cross.build import build_sdist, build_wheel

pytest_plugins = ["tests.time_limit"]

# A busy machine is no failure: no hypothesis test has a time limit.
hypothesis.settings.register_profile(
    "opscope", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("opscope")


# Folders and files whose tests are slow: most of them start programs, or try hundreds of examples.
# Together they take two thirds of the time of all tests that may run side by side.
SLOW = (
    "attachment/test_attach.py",
    "attachment/test_other_agents.py",
    "bridges/test_torch_",
    "dashboards/test_scale.py",
    "dashboards/test_schema.py",
    "e2e/",
    "exporters/test_otlp",
    "host/test_state_file.py",
    "installation/",
    "record/test_processes.py",
    "segments/test_segment_damage.py",
    "server/test_access.py",
    "server/test_blocks.py",
    "server/test_series_filter.py",
    "tensor/data/test_interrupts.py",
    "tensor/data/test_workers.py",
    "tensor/nn/test_transformer.py",
    "tensor/test_archive_damage.py",
    "tensor/test_autograd_twice.py",
    "tensor/test_bad_input.py",
    "tensor/test_convolution.py",
    "tensor/test_index_tensors.py",
    "tensor/test_library.py",
    "tensor/test_memory",
    "tensor/test_properties.py",
    "timeline/test_reader.py",
)
TESTS = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks slow tests. What needs a wheel comes to one process: all processors build it once."""
    for item in items:
        if str(item.path.relative_to(TESTS)).startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        if isinstance(item, pytest.Function) and "wheel" in item.fixturenames:
            item.add_marker(pytest.mark.alone)
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def signals_at_default() -> Iterator[None]:
    """SIGINT and SIGHUP do what they do by default, here and in what is started from here.

    A shell leaves SIGINT ignored in what it starts in the background, and nohup SIGHUP; programs
    inherit that.
    """
    earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in earlier.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the source distribution, which must therefore be complete."""
    source = build_sdist(tmp_path_factory.mktemp("sdist"))
    return build_wheel(source, tmp_path_factory.mktemp("wheel"))
