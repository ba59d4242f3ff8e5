"""Programs with their own exports show Opscope's metrics of themselves there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RECORDING = """
import json, sys
import opscope
from opscope.record import recorder

recorder.start(sys.argv[1])
recorder.note("service.name", "training")
def work(count):
    for _ in range(count):
        with opscope.record_function("mine::work", 1):
            pass
work(3)
"""

REGISTRY = """
import prometheus_client
from opscope_exporters.in_process import Collector

mine = prometheus_client.Counter("mine", "of the program")
mine.inc()
prometheus_client.REGISTRY.register(Collector())
pages = [prometheus_client.generate_latest().decode()]
work(2)
pages.append(prometheus_client.generate_latest().decode())
print(json.dumps(pages))
"""

PROVIDER = """
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opscope_exporters.in_process import observe

reader = InMemoryMetricReader()
provider = MeterProvider([reader])
provider.get_meter("mine").create_counter("mine").add(1)
observe(provider)
found = [json.loads(reader.get_metrics_data().to_json())]
work(2)
found.append(json.loads(reader.get_metrics_data().to_json()))
print(json.dumps(found))
"""

BESIDE = """
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality, MetricExporter, MetricExportResult, PeriodicExportingMetricReader)
from opscope_exporters.otlp.beside import Beside

class Kept(MetricExporter):
    found = []
    def export(self, data, timeout_millis=0, **kwargs):
        self.found.append(json.loads(data.to_json()))
        return MetricExportResult.SUCCESS
    def force_flush(self, timeout_millis=0):
        return True
    def shutdown(self, timeout_millis=0, **kwargs):
        pass

delta = AggregationTemporality[sys.argv[2]]
kept = Kept(preferred_temporality={Counter: delta, Histogram: delta})
provider = MeterProvider([PeriodicExportingMetricReader(Beside(kept), 3_600_000)])
mine = provider.get_meter("mine").create_counter("mine")
mine.add(1)
provider.force_flush()
work(2)
mine.add(1)
provider.force_flush()
print(json.dumps(kept.found))
"""


def run(program: str, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", RECORDING + program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout.splitlines()[0])


def points(data: Any) -> dict[str, Any]:
    """All data points as the SDK writes them, by metric."""
    return {
        metric["name"]: metric["data"]["data_points"]
        for resource in data["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }


def test_a_registry_of_prometheus_client_has_both(tmp_path: Path) -> None:
    for page, calls in zip(run(REGISTRY, str(tmp_path)), (3, 5), strict=True):
        assert "\nmine_total 1.0\n" in page
        labels = 'framework="mine",op="mine::work",phase="other",service_name="training"'
        assert f"\nopscope_op_duration_seconds_count{{{labels}}} {calls}.0\n" in page
        assert (
            f'le="+Inf",op="mine::work",phase="other",service_name="training"}} {calls}.0' in page
        )
        assert "opscope_agent" not in page


EXEMPLARS = """
import time
import prometheus_client
from prometheus_client.openmetrics.exposition import generate_latest
from opscope_exporters.in_process import Collector

# The one before may by chance have been held up for as long: then one is not kept, hardly three.
for _ in range(3):
    work(1000)
    with opscope.debug_info(trace_id="ab" * 16, span_id="cd" * 8):
        with opscope.record_function("mine::work"):
            time.sleep(0.02)
registry = prometheus_client.CollectorRegistry()
registry.register(Collector())
print(json.dumps(generate_latest(registry).decode()))
"""


def test_a_registry_has_exemplars_in_their_buckets(tmp_path: Path) -> None:
    page = run(EXEMPLARS, str(tmp_path))
    lines = [line for line in page.splitlines() if " # {" in line]
    assert lines
    for line in lines:
        labels, value = line.partition(" # ")[::2]
        assert 'op="mine::work"' in labels
        bound = float(labels.partition('le="')[2].partition('"')[0])
        ids, took, _ = value.rsplit(" ", 2)
        assert 'trace_id="' + "ab" * 16 in ids
        assert 'span_id="' + "cd" * 8 in ids
        assert 0.0199 <= float(took) <= bound


def test_a_meter_provider_observes_both(tmp_path: Path) -> None:
    for data, calls in zip(run(PROVIDER, str(tmp_path)), (3, 5), strict=True):
        found = points(data)
        assert found["mine"][0]["value"] == 1
        (point,) = found["opscope.op.calls"]
        assert (point["value"], point["attributes"]["op"]) == (calls, "mine::work")
        assert found["opscope.op.duration.sum"][0]["value"] > 0


@pytest.mark.parametrize(("temporality", "calls"), [("CUMULATIVE", (3, 5)), ("DELTA", (3, 2))])
def test_an_export_of_the_sdk_has_both_in_its_temporality(
    tmp_path: Path, temporality: str, calls: tuple[int, int]
) -> None:
    for data, expected in zip(run(BESIDE, str(tmp_path), temporality), calls, strict=True):
        assert len(data["resource_metrics"]) == 1
        found = points(data)
        assert found["opscope.op.calls"][0]["value"] == expected
        assert found["opscope.op.duration"][0]["count"] == expected
        assert "opscope.agent.cpu.time" not in found
        assert "mine" in found


ALL_WAYS = """
import json, os, sys, urllib.request
os.environ.update(OPSCOPE_DIR=sys.argv[1], OPSCOPE_SAMPLING="1")
import numpy, opscope
opscope.attach()
status = opscope.attach_status()
assert status.bridges["numpy"] == "attached", status

import prometheus_client
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter, InMemoryMetricReader, PeriodicExportingMetricReader)
from opscope_exporters.in_process import Collector, observe
from opscope_exporters.otlp.beside import Beside

with opscope.recording(False):
    numpy.ones(1).tolist()
registry = prometheus_client.CollectorRegistry()
registry.register(Collector())
reader = InMemoryMetricReader()
observe(MeterProvider([reader]))
beside = MeterProvider(
    [PeriodicExportingMetricReader(Beside(ConsoleMetricExporter(open(os.devnull, "w"))), 1e9)])
with opscope.serve(port=0) as page:
    for _ in range(2):
        prometheus_client.generate_latest(registry)
        reader.get_metrics_data()
        beside.force_flush()
        text = urllib.request.urlopen(page.url).read().decode()
print(json.dumps(text))
"""


def test_its_own_work_is_not_the_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALL_WAYS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = json.loads(done.stdout)
    assert "opscope_processes 1.0" in text
    assert [
        line for line in text.splitlines() if line.startswith("opscope_op_duration_seconds_count")
    ] == []
