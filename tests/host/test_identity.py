"""Processes of one service are separate if their own identities differ."""

import json
import os
import struct
import zlib
from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.host.identity import attributes, group_of
from opscope.host.snapshot import Snapshot
from opscope.host.state_file import StateFile
from opscope_exporters.otlp.data import CUMULATIVE, Builder, Temporality
from opscope_exporters.prometheus.exporter import Prometheus
from opscope_exporters.resource import service_resource
from tests.segments.segment_writer import Process, Range, SegmentWriter

HEAD = struct.Struct("<16sIIQQ")
POD_A = {"resource.k8s.pod.name": "a", "resource.service.namespace": "shop", "job.id": "7"}
POD_B = {**POD_A, "resource.k8s.pod.name": "b"}


def write(place: Path, notes: dict[str, str], calls: int, *, is_alive: bool = True) -> None:
    process = Process() if is_alive else Process(process_start=1)
    writer = SegmentWriter(process)
    writer.notes({**notes, "service.name": "web"})
    writer.add([Range("numpy::add", 1e-3, calls)]).write(place)


def host(place: Path, **options: object) -> Host:
    return Host([str(place)], consume=False, **options)  # type: ignore[arg-type]


def by_attributes(snapshot: Snapshot) -> dict[tuple[tuple[str, str], ...], float]:
    return {
        snapshot.groups.get(key.group, ()): calls
        for key, calls in zip(snapshot.keys, snapshot.calls.tolist(), strict=True)
    }


def test_processes_with_the_same_attributes_are_one_group_and_others_are_apart(
    place: Path,
) -> None:
    for calls, notes in ((1, POD_A), (2, POD_A), (4, POD_B), (8, {})):
        write(place, notes, calls)
    shared = (("job.id", "7"), ("service.namespace", "shop"))
    assert by_attributes(host(place).collect()) == {
        tuple(sorted((*shared, ("k8s.pod.name", "a")))): 3,
        tuple(sorted((*shared, ("k8s.pod.name", "b")))): 4,
        (): 8,
    }


def test_ranks_are_apart_only_where_asked(place: Path) -> None:
    for rank in range(3):
        write(place, {"rank": str(rank), "world_size": "3", "job.id": "7"}, 1 + rank)
    assert by_attributes(host(place).collect()) == {(("job.id", "7"),): 6}
    assert by_attributes(host(place, ranks=True).collect()) == {
        (("job.id", "7"), ("rank", str(rank)), ("world_size", "3")): 1 + rank for rank in range(3)
    }


def test_a_page_has_one_info_of_each_group_that_joins_its_series(place: Path) -> None:
    write(place, POD_A, 1)
    write(place, {**POD_B, "resource.a.b": "1", "resource.a_b": "2", "resource.job": "x"}, 2)
    write(place, {}, 4)
    snapshot = host(place).collect()
    text = b"".join(Prometheus().page(snapshot, "")[0]).decode()
    infos = [line for line in text.splitlines() if line.startswith("opscope_resource_info{")]
    a, b = (group_of(attributes(notes, ranks=False)) for notes in (POD_A, POD_B))
    assert (
        f'opscope_resource_info{{service_name="web",group="{a}",job_id="7",k8s_pod_name="a",'
        'service_namespace="shop"} 1.0'
    ) in infos
    assert len(infos) == 2
    (other,) = (line for line in infos if f'"{a}"' not in line)
    assert 'a_b="1;2"' in other
    assert 'label_job="x"' in other
    calls = [
        line for line in text.splitlines() if line.startswith("opscope_op_duration_seconds_count{")
    ]
    assert sorted(float(line.rpartition(" ")[2]) for line in calls) == [1, 2, 4]
    assert sum('group="' in line for line in calls) == 2
    assert b not in text


def test_over_otlp_each_group_is_a_resource_with_its_own_attributes(place: Path) -> None:
    write(place, POD_A, 1)
    write(place, POD_B, 2)
    write(place, {}, 4)
    agent = {"OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=agent,k8s.node.name=n,host.name=h,team=t"}
    data = Builder(Temporality(CUMULATIVE, CUMULATIVE), agent).build(host(place).collect(), None)
    found = {}
    for resource in data.resource_metrics:
        facts = resource.resource.attributes
        for metric in resource.scope_metrics[0].metrics:
            if metric.name == "opscope.op.calls":
                (point,) = metric.data.data_points
                found[facts.get("k8s.pod.name")] = point.value  # type: ignore[union-attr]
                assert facts["service.name"] == "web"
                assert (facts["k8s.node.name"], facts["host.name"], facts["team"]) == (
                    "n",
                    "h",
                    "t",
                )
                is_grouped = "k8s.pod.name" in facts
                assert ("group" in (point.attributes or {})) == is_grouped
                assert facts.get("service.namespace") == ("shop" if is_grouped else None)
                assert facts.get("job.id") == ("7" if is_grouped else None)
    assert found == {"a": 1, "b": 2, None: 4}
    (own,) = (
        one.resource.attributes
        for one in data.resource_metrics
        if one.resource.attributes["service.name"] == "opscope-agent"
    )
    assert own["k8s.pod.name"] == "agent"


def test_attributes_of_the_process_override_the_agents() -> None:
    agent = {"service.name": "agent", "host.name": "h", "container.id": "1", "k8s.pod.uid": "2"}
    assert service_resource(agent, "web", (("host.name", "mine"),)) == {
        "service.name": "web",
        "host.name": "mine",
    }


@pytest.mark.usefixtures("unhurried")
def test_the_number_of_groups_and_of_their_attributes_is_bounded(place: Path) -> None:
    many = {f"resource.k{n:02}": "v" * 300 for n in range(40)}
    for number in range(300):
        write(place, {**many, "resource.a": str(number)}, 1)
    snapshot = host(place).collect()
    assert len(snapshot.groups) == len(snapshot.resource_info) == 256
    assert snapshot.calls.sum() == 300
    assert by_attributes(snapshot)[()] == 300 - 256
    assert max(map(len, snapshot.groups.values())) <= 20
    assert max(len(text) for one in snapshot.groups.values() for _, text in one) <= 256


def test_groups_survive_a_restart_and_an_earlier_state_has_none(place: Path) -> None:
    def agent() -> Host:
        state = StateFile(str(place / "agent.state"))
        return Host([str(place)], consume=True, state=state)

    write(place, POD_A, 3, is_alive=False)
    first = agent()
    before = by_attributes(first.collect())
    first.close()
    second = agent()
    assert by_attributes(second.collect()) == before
    assert [len(one) for one in before] == [3]
    second.close()
    path = place / "agent.state"
    raw = path.read_bytes()
    *_, size = HEAD.unpack_from(raw)
    facts = json.loads(raw[HEAD.size : HEAD.size + size])
    for name in ("groups", "group_of", "users", "ended_unix_ns"):
        del facts[name]
    text = json.dumps(facts).encode()
    body = text + raw[HEAD.size + size :]
    path.write_bytes(
        HEAD.pack(b"OPSCOPE STATE\0\0\0", 1, zlib.crc32(body), len(body), len(text)) + body
    )
    third = agent()
    assert by_attributes(third.collect()) == {(): 3}
    third.close()
    assert os.path.exists(path)
