"""Fixtures shared by all folders."""

import fcntl
import gc
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

from native.cross.build import ROOT, build_sdist, build_wheel, unpack
from tests.examples import examples

pytest_plugins = ["tests.time_limit"]

# Threads of OpenMP that wait do not spin: several processes run tests on each processor.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Threads of OpenBLAS spin after each product, and once when NumPy is imported, which takes as much
# CPU time again as the import; tests start thousands of programs. Those about its threads set them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Each program that uses torch.compile would compile seven libraries to try the compiler's vector
# instructions.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

# Prometheus, promtool and VictoriaMetrics spend two fifths of their CPU time on collecting garbage
# if their heap may only double.
os.environ.setdefault("GOGC", "400")

# A busy machine is no failure: no hypothesis test has a time limit.
hypothesis.settings.register_profile(
    "opscope",
    examples(20),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("opscope")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Makes hundreds of thousands of objects, all of which stay: searching them for garbage would
    take a third of the time, and as long again in each test that collects garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Folders and files whose tests are slow: most of them start programs, or try hundreds of examples.
# Together they take nine tenths of the time of all tests.
SLOW = (
    "attachment/test_attach.py",
    "attachment/test_injection.py",
    "attachment/test_one_thread.py",
    "attachment/test_other_agents.py",
    "attachment/test_stamps.py",
    "bridges/test_blas.py",
    "bridges/test_extension_modules.py",
    "bridges/test_marks.py",
    "bridges/test_outer_ranges.py",
    "bridges/test_packages.py",
    "bridges/test_task_labels.py",
    "bridges/test_torch_",
    "ci/test_pytest_plugin.py",
    "dashboards/test_rules.py",
    "dashboards/test_scale.py",
    "dashboards/test_schema.py",
    "e2e/",
    "exporters/test_in_process.py",
    "exporters/test_otlp",
    "fleet/test_store.py",
    "graphs/test_python_kinds.py",
    "host/test_fuzz_host.py",
    "host/test_state_file.py",
    "host/test_take_back.py",
    "installation/",
    "kubernetes/test_webhook.py",
    "models/test_show.py",
    "record/test_processes.py",
    "server/test_access.py",
    "server/test_live.py",
    "server/test_page.py",
    "server/test_page_trace.py",
    "server/test_pages.py",
    "server/test_series_filter.py",
    "server/test_slots.py",
    "serving/test_grpc_queue.py",
    "tensor/data/test_interrupts.py",
    "tensor/data/test_workers.py",
    "tensor/jit/scripting/test_random.py",
    "tensor/jit/test_everywhere.py",
    "tensor/jit/test_node.py",
    "tensor/jit/torchscript/test_torchscript_models.py",
    "tensor/jit/torchscript/test_torchscript_transformers.py",
    "tensor/nn/test_transformer.py",
    "tensor/test_autograd_twice.py",
    "tensor/test_bad_input.py",
    "tensor/test_convolution.py",
    "tensor/test_index_tensors.py",
    "tensor/test_library.py",
    "tensor/test_memory",
    "tensor/test_properties.py",
    "tensor/test_thread_bits.py",
    "test_demo_cnn.py",
    "timeline/test_frameworks.py",
)
# Files, and single tests, that repeat at length what other tests show in short, or show it with
# programs of others: suites of other projects, trainings, demonstrations, an installed wheel,
# servers of other makers, a day of ten thousand jobs. `make test-long` runs them, as CI does.
LONG = (
    "attachment/test_other_agents.py",
    "attachment/test_program_kinds.py::test_a_frozen_program",
    "attachment/test_stamps.py::test_files_are_stamped_whatever_is_imported_first_until_the_program_"
    "detaches[import onnx",
    "attachment/test_stamps.py::test_files_are_stamped_whatever_is_imported_first_until_the_program_"
    "detaches[import safetensors",
    "bench/test_truth_programs.py::test_children_are_counted_by_the_range_around_them",
    "bench/test_truth_programs.py::test_a_run_that_records_every_range_is_exact[threaded_server]",
    "bridges/test_numpy_suites.py",
    "bridges/test_own_suites.py",
    "bridges/test_packages.py::test_known_calls_are_counted_and_give_their_results[lightgbm]",
    "bridges/test_torch_blocks.py::test_a_program_with_blocks_prints_the_same",
    "bridges/test_torch_compile",
    "bridges/test_torch_layouts.py",
    "bridges/test_torch_own_tests.py",
    "bridges/test_torch_programs.py::test_training_on_digits",
    "bridges/test_torch_programs.py::test_two_ranks_with_gloo",
    "ci/test_pytest_in_an_environment.py",
    "dashboards/test_churn.py",
    "dashboards/test_planted.py::test_without_a_fault",
    "dashboards/test_schema.py",
    "dashboards/test_serving_board.py::test_every_panel_has_data[old_prometheus]",
    "deployment/",
    "e2e/test_agent_life.py::test_the_demonstration",
    "e2e/test_cardinality.py",
    "e2e/test_exactness.py::test_a_scikit_learn_training",
    "e2e/test_packaging.py",
    "e2e/test_process_life.py::test_a_pool_of_multiprocessing[forkserver]",
    "e2e/test_process_life.py::test_a_pool_of_multiprocessing[spawn]",
    "e2e/test_servers.py::test_celery",
    "e2e/test_servers.py::test_uvicorn",
    "e2e/test_shared_memory.py",
    "e2e/test_strange_hosts.py",
    "e2e/test_trace_viewers.py",
    "e2e/test_truth.py",
    "exporters/test_a_day.py",
    "exporters/test_otlp.py::test_a_large_host_is_sent_in_parts_that_receivers_take[20000]",
    "exporters/test_otlp.py::test_a_rejected_part_does_not_stop_the_others",
    "exporters/test_prometheus_peer.py::test_quantiles_and_rates_are_the_programs_own[old_prometheus",
    "host/test_churn.py",
    "host/test_retirement.py",
    "installation/test_bare_package.py",
    "installation/test_payload.py",
    "server/test_page.py::test_the_charts_go_back_to_the_agents_start[-60 min]",
    "server/test_page.py::test_the_charts_go_back_to_the_agents_start[#span=start",
    "tensor/jit/test_everywhere.py::test_a_network_that_pytorch_saved[resnet18]",
    "tensor/jit/torchscript/test_torchscript_transformers.py",
    "test_demo_cnn.py",
    "test_demo_serving.py",
)
TESTS = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks slow and long tests, and puts them first: no process is left with a long file at the
    end."""
    for item in items:
        place = f"{item.path.relative_to(TESTS)}::{item.name}"
        if place.startswith((*SLOW, *LONG)):
            item.add_marker(pytest.mark.slow)
        if place.startswith(LONG):
            item.add_marker(pytest.mark.long)
        if isinstance(item, pytest.Function) and "wheel" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


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


KEPT = ROOT / "build" / "wheel-of-tests"


@contextmanager
def _shared(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A directory of that name for all processes of pytest-xdist. One process at a time is in the
    block, also of other runs, since all use `KEPT`."""
    place = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (place / name).mkdir(exist_ok=True)
        yield place / name


@pytest.fixture(scope="session")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all processes of pytest-xdist."""
    with _shared(tmp_path_factory, "sdist") as place:
        built = [*place.glob("*.tar.gz")]
        return built[0] if built else build_sdist(place)


@pytest.fixture(scope="session")
def wheel(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the source distribution; one for all processes of pytest-xdist.

    What was compiled stays in `KEPT`, so that a later run compiles only what has changed.
    """
    with _shared(tmp_path_factory, "wheel") as place:
        built = [*place.glob("*.whl")]
        if built:
            return built[0]
        unpack(source_distribution, KEPT / "source")
        return build_wheel(KEPT / "source", place, build=KEPT / "build")
