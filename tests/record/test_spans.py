"""OpenTelemetry's active span becomes a label, enabled by OpenTelemetry's own variable."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from opscope.host.host import Host

PREAMBLE = """
import asyncio, json, sys, threading, time
import opscope
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

tracer = TracerProvider().get_tracer("test")
unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test")

def ids(span):
    found = span.get_span_context()
    return {"trace_id": f"{found.trace_id:032x}", "span_id": f"{found.span_id:016x}"}

said = []
def check(expected):
    said.append(opscope.get_debug_info() == expected)
"""


def run(code: str, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + code + "\nprint(json.dumps(said))", *arguments],
        env=os.environ | {"OTEL_PYTHON_CONTEXT": "opscope"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_labels_are_those_of_the_active_span() -> None:
    code = """
with opscope.debug_info(model_id="m"):
    check({"model_id": "m"})
    with tracer.start_as_current_span("outer") as outer:
        check({"model_id": "m", **ids(outer)})
        with tracer.start_as_current_span("inner") as inner:
            check({"model_id": "m", **ids(inner)})
            token = context.attach(context.set_value("mine", 1))
            check({"model_id": "m", **ids(inner)})
            context.detach(token)
        check({"model_id": "m", **ids(outer)})
        with trace.use_span(inner):
            check({"model_id": "m", **ids(inner)})
    check({"model_id": "m"})
check({})
"""
    assert all(run(code))


def test_unsampled_spans_and_other_threads_have_no_labels() -> None:
    code = """
with unsampled.start_as_current_span("unseen"):
    check({})
with tracer.start_as_current_span("outer") as outer:
    thread = threading.Thread(target=check, args=({},))
    thread.start()
    thread.join()
    check(ids(outer))
check({})
"""
    assert all(run(code))


def test_tasks_of_an_event_loop_that_take_turns_have_the_labels_of_their_own_spans() -> None:
    code = """
async def other(outer):
    check(ids(outer))
    with tracer.start_as_current_span("other") as span:
        await asyncio.sleep(0)
        check(ids(span))

async def request():
    with tracer.start_as_current_span("request", context=context.Context()) as span:
        check(ids(span))
        await asyncio.sleep(0)
        check(ids(span))
    check({})

async def work():
    check({})
    with tracer.start_as_current_span("outer") as outer:
        check(ids(outer))
        await asyncio.gather(other(outer), other(outer))
        check(ids(outer))
    await asyncio.gather(*(request() for _ in range(10)))
    check({})

asyncio.run(work())
check({})
"""
    assert all(run(code))


def test_without_an_active_span_the_outer_trace_is_masked() -> None:
    code = """
none = {}
with tracer.start_as_current_span("outer") as outer:
    with unsampled.start_as_current_span("of another trace", context=context.Context()):
        check(none)
        with tracer.start_as_current_span("third", context=context.Context()) as third:
            check(ids(third))
        check(none)
    check(ids(outer))
    token = context.attach(context.Context())
    check(none)
    context.detach(token)
    check(ids(outer))
check({})
"""
    assert all(run(code))


def test_a_span_around_an_event_loop_holds_in_its_tasks_until_they_are_in_another() -> None:
    code = """
async def work(outer):
    check(ids(outer))
    with tracer.start_as_current_span("inner") as inner:
        check(ids(inner))
    other = asyncio.create_task(request(outer))
    await asyncio.sleep(0)
    check(ids(outer))
    await other
    check(ids(outer))

async def request(outer):
    with tracer.start_as_current_span("request", context=context.Context()) as span:
        check(ids(span))
        await asyncio.sleep(0)
        check(ids(span))
    check(ids(outer))

for _ in range(3):
    with tracer.start_as_current_span("outer") as outer:
        with tracer.start_as_current_span("before"):
            pass
        asyncio.run(work(outer))
        check(ids(outer))
        with tracer.start_as_current_span("after") as after:
            check(ids(after))
    check({})
"""
    assert all(run(code))


def test_a_slow_range_in_a_span_is_an_exemplar_of_it(tmp_path: Path) -> None:
    # The one before may have been held up as long by chance: then one is not kept; hardly three.
    code = """
from opscope.record import recorder
recorder.start(sys.argv[1])
for _ in range(3):
    for _ in range(1000):
        with opscope.record_function("core::work"):
            pass
    with tracer.start_as_current_span("outer") as outer:
        with opscope.record_function("core::work"):
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:
                pass
    said.append(ids(outer))
"""
    said = run(code, str(tmp_path))
    snapshot = Host([str(tmp_path)], consume=False).collect()
    (exemplars,) = snapshot.exemplars.values()
    for exemplar in exemplars:
        assert {"trace_id": exemplar.trace_id, "span_id": exemplar.span_id} in said
        assert exemplar.duration_s >= 0.0199
