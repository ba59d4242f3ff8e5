"""What an agent sees of a server: ranges with model and version, exemplars, Triton's metrics."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from opscope import tensor as ot
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.record import recorder
from opscope.serving.batcher import Rule
from opscope.serving.executor import Executor
from opscope.serving.loaded_model import LoadedModel
from opscope.serving.model_config import TensorSpec
from opscope.serving.request import InferRequest
from opscope.serving.trace_context import TraceContext, parse
from tests.serving.running import config_of, running, save_double, save_table, source, triton_client

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """40 requests to `observed` in two versions, and 3 bad ones to `rows`."""
    folder = tmp_path_factory.mktemp("observed")
    recorder.start(str(folder), label_keys=("model_id", "model_version"))
    try:
        with (
            running(
                source("observed", save_double(folder / "1.pt")),
                source("observed", save_double(folder / "2.pt", 3.0), "2"),
                source("rows", save_table(folder / "table.pt")),
            ) as server,
            triton_client(server.grpc) as client,
        ):
            x = triton.InferInput("x", [1, 4], "FP32")
            x.set_data_from_numpy(np.ones((1, 4), np.float32))
            traced = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            for number in range(40):
                client.infer("observed", [x], "12"[number % 2], headers=traced)
            ids = triton.InferInput("ids", [1, 2], "INT64")
            ids.set_data_from_numpy(np.array([[1, 99]], np.int64))
            for _ in range(3):
                with pytest.raises(InferenceServerException, match="INTERNAL"):
                    client.infer("rows", [ids])
        return Host((str(folder),), consume=False, max_series=2000).collect()
    finally:
        recorder.stop(discard=True)


def calls(seen: Snapshot) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for key, count in zip(seen.keys, seen.calls, strict=True):
        labels = dict(key.labels)
        found[key.op, labels.get("model_id", ""), labels.get("model_version", "")] = float(count)
    return found


def test_each_stage_is_a_range_with_model_and_version(seen: Snapshot) -> None:
    found = calls(seen)
    for version in "12":
        for op in ("serving::queue", "serving::batch", "serving::infer", "core::mul"):
            assert found[op, "observed", version] == 20, (op, version)


def test_metrics_have_tritons_names_and_labels(seen: Snapshot) -> None:
    served = seen.served

    def of(name: str) -> dict[tuple[str, ...], int]:
        values: dict[tuple[str, ...], int] = getattr(served, name)
        return {key[1:]: value for key, value in values.items() if key[1] in ("observed", "rows")}

    assert of("nv_inference_request_success") == {
        ("observed", "1"): 20,
        ("observed", "2"): 20,
        ("rows", "1"): 0,
    }
    assert of("nv_inference_request_failure") == {("rows", "1", "BACKEND"): 3}
    assert of("nv_inference_count")["observed", "1"] == 20
    assert of("nv_inference_exec_count")["observed", "1"] == 20
    assert of("nv_inference_pending_request_count")["observed", "1"] == 0
    whole = of("nv_inference_request_duration_us")["observed", "1"]
    assert 0 < of("nv_inference_queue_duration_us")["observed", "1"] < whole
    assert 0 < of("nv_inference_compute_infer_duration_us")["observed", "1"] < whole


def test_a_page_of_prometheus_has_them(seen: Snapshot) -> None:
    from opscope_exporters.prometheus.exporter import create

    page: Any = b"".join(create({"octaves": 1.0}).page(seen, "text/plain")[0]).decode()
    lines = [line for line in page.splitlines() if line.startswith("nv_inference_request_success")]
    assert any('model="observed",version="1"} 20' in line for line in lines), lines


def test_slow_ranges_carry_the_requests_own_trace(tmp_path: Path) -> None:
    """A range becomes an exemplar if few of its kind took as long."""
    config = config_of(Rule(max_batch_size=2_000_000))
    config = replace(config, inputs=(TensorSpec("x", "FP32", (-1, -1)),))
    config = replace(config, outputs=(TensorSpec("y", "FP32", (-1, -1)),))

    def request(rows: int, width: int, trace: TraceContext | None = None) -> InferRequest:
        return InferRequest([ot.ones(rows, width)], (), None, trace)

    has_begun, is_queued = threading.Event(), threading.Event()

    def model(x: Any) -> Any:
        if x.shape[0] > 1:
            has_begun.set()
            is_queued.wait(60)
            time.sleep(0.3 if x.shape[0] > 2 else 0.05)
        return x * 2.0

    async def main() -> None:
        executor = Executor(LoadedModel("traced", "1", model, config))
        for _ in range(400):
            await executor.infer(request(1, 4))
        slow = asyncio.ensure_future(executor.infer(request(2, 4)))
        traced = request(2_000_000, 4, TraceContext(TRACE, SPAN))
        await asyncio.to_thread(has_begun.wait, 60)  # it runs, and the next one waits for it
        answer = asyncio.ensure_future(executor.infer(traced))
        await asyncio.sleep(0)
        is_queued.set()
        await answer
        await slow
        await executor.close()

    recorder.start(str(tmp_path), label_keys=("model_id", "model_version"))
    try:
        asyncio.run(main())
        seen = Host((str(tmp_path),), consume=False, max_series=2000).collect()
    finally:
        recorder.stop(discard=True)
    ops = {
        seen.keys[row].op
        for row, exemplars in seen.exemplars.items()
        for one in exemplars
        if (one.trace_id, one.span_id) == (TRACE, SPAN)
    }
    assert {"serving::queue", "serving::batch", "serving::infer"} <= ops


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceContext(TRACE, SPAN)),
        (f"cc-{TRACE}-{SPAN}-03-what-comes-later", TraceContext(TRACE, SPAN)),
        (f"00-{TRACE}-{SPAN}-00", None),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        ("", None),
        (None, None),
    ],
)
def test_the_header_is_read_as_the_standard_says(
    header: str | None, found: TraceContext | None
) -> None:
    assert parse(header) == found
