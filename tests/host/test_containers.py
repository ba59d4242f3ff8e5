"""The containers of observed processes are known by their cgroups, as the agent reads them."""

import os
import subprocess
from pathlib import Path

import pytest

from opscope.host import pid_namespaces
from opscope.host.containers import Containers
from opscope.host.health import Health
from opscope.host.host import Host
from opscope.host.pid_namespaces import Inner
from opscope.host.snapshot import Process as SeenProcess
from opscope.host.state_file import StateFile
from opscope.processes import cgroups
from opscope.processes.cgroups import Container
from opscope_exporters.otlp.data import CUMULATIVE, Builder, Temporality
from opscope_exporters.prometheus.exporter import Prometheus
from tests.segments.segment_writer import Process, Range, SegmentWriter, start_of

ID, UID = "3f" * 32, "6d8ad8b0-1f5c-4f5e-9d0e-2b9a4f6e7c11"
IN_POD = Container(ID, UID)


def write(place: Path, process: Process, **notes: str) -> None:
    writer = SegmentWriter(process)
    writer.notes({"service.name": "web", **notes})
    writer.add([Range("numpy::add", 1e-3, 1)]).write(place)


def page(host: Host) -> str:
    pieces, _ = Prometheus().page(host.collect(), "text/plain")
    return b"".join(pieces).decode()


@pytest.fixture
def in_a_pod(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every process is in that pod; the pids that were asked for."""
    asked: list[int] = []

    def container_of(pid: int) -> Container:
        asked.append(pid)
        return IN_POD

    monkeypatch.setattr(cgroups, "container_of", container_of)
    return asked


def test_a_container_is_a_metric_to_join(place: Path, in_a_pod: list[int]) -> None:
    process = Process()
    write(place, process)
    host = Host([str(place)], consume=False)
    for _ in range(2):
        (said,) = (one for one in page(host).splitlines() if "opscope_container_info{" in one)
        for label in (f'container_id="{ID}"', f'k8s_pod_uid="{UID}"', 'service_name="web"'):
            assert label in said
    assert in_a_pod == [process.pid]  # Once.
    assert 'numpy::add",group' not in page(host)


def test_on_request_each_container_has_series_and_a_resource(
    place: Path, in_a_pod: list[int]
) -> None:
    write(place, Process())
    host = Host([str(place)], consume=False, containers=True)
    snapshot = host.collect()
    (key,) = snapshot.keys
    assert snapshot.groups[key.group] == (("container.id", ID), ("k8s.pod.uid", UID))
    said = next(one for one in page(host).splitlines() if "opscope_resource_info{" in one)
    assert f'container_id="{ID}"' in said and f'group="{key.group}"' in said
    data = Builder(Temporality(CUMULATIVE, CUMULATIVE), {}).build(snapshot, None)
    of_web = [one.resource.attributes for one in data.resource_metrics]
    assert [
        (one["container.id"], one["k8s.pod.uid"]) for one in of_web if "container.id" in one
    ] == [(ID, UID)]


def test_what_the_program_says_of_itself_wins(place: Path, in_a_pod: list[int]) -> None:
    write(place, Process(), **{"resource.k8s.pod.uid": "mine"})
    snapshot = Host([str(place)], consume=False, containers=True).collect()
    (attributes,) = snapshot.groups.values()
    assert dict(attributes) == {"container.id": ID, "k8s.pod.uid": "mine"}


def test_another_process_of_the_same_pid_is_not_asked(place: Path, in_a_pod: list[int]) -> None:
    write(place, Process(process_start=1))
    assert "opscope_container_info{" not in page(Host([str(place)], consume=False))


def test_a_process_of_another_namespace_that_starts_during_a_pass_is_found(
    in_a_pod: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = 77
    inner: dict[int, Inner] = {}
    monkeypatch.setattr(pid_namespaces, "look_into", inner.get)
    containers = Containers()
    containers.begin_pass()

    def of(start: int) -> Container:
        return containers.of(
            SeenProcess(1, 0, start, True, 0, 1.0, 0, 0, Health(), {}, (), pid_namespace=namespace)
        )

    assert of(start_of(os.getpid())) == Container()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        start = start_of(program.pid)
        inner[program.pid] = Inner(namespace, 1, start)
        assert of(start) == IN_POD
        program.communicate()
    assert in_a_pod == [program.pid]


def test_processes_that_claim_to_have_just_started_cost_few_searches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(pid_namespaces, "look_into", looked.append)
    containers = Containers()
    containers.begin_pass()
    for start in range(100):
        process = SeenProcess(1, 0, 1 << 60 | start, True, 0, 1.0, 0, 0, Health(), {}, ())
        assert containers.of(process._replace(pid_namespace=77)) == Container()
    assert 1 <= looked.count(os.getpid()) < 10


def test_a_process_that_ends_while_no_agent_runs_keeps_its_container(
    place: Path, tmp_path: Path, in_a_pod: list[int]
) -> None:
    """Its counts stay under the same series: otherwise a counter of the container would fall."""

    def collected() -> dict[str, int]:
        state = StateFile(str(tmp_path / "agent.state"))
        host = Host([str(place)], consume=True, containers=True, state=state)
        snapshot = host.collect()
        host.close()
        return {
            key.group: int(calls) for key, calls in zip(snapshot.keys, snapshot.calls, strict=True)
        }

    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        write(place, Process(pid=program.pid, process_start=start_of(program.pid)))
        before = collected()
        program.communicate()
    assert [*before.values()] == [1] and "" not in before
    for _ in range(2):
        assert collected() == before


def test_the_state_forgets_the_containers_of_ended_processes(
    place: Path, tmp_path: Path, in_a_pod: list[int]
) -> None:
    state = StateFile(str(tmp_path / "agent.state"))
    host = Host([str(place)], consume=True, containers=True, state=state)
    for _ in range(3):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
            write(place, Process(pid=program.pid, process_start=start_of(program.pid)))
            host.collect()
            assert (tmp_path / "agent.state").read_bytes().count(ID.encode()) == 2
            program.communicate()
        host.collect()
        assert (tmp_path / "agent.state").read_bytes().count(ID.encode()) == 1
    host.close()
