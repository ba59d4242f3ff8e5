"""The containers of observed processes are known by their cgroups, as the agent reads them."""

from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.processes import cgroups
from opscope.processes.cgroups import Container
from opscope_exporters.otlp.data import CUMULATIVE, Builder, Temporality
from opscope_exporters.prometheus.exporter import Prometheus
from tests.segments.segment_writer import Process, Range, SegmentWriter

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
