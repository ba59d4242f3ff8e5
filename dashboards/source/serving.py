"""Serving: what clients of a model server see, its queue and batches, and its operators."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import (
    EVENTS,
    NEUTRAL,
    THREADS,
    Query,
    Steps,
    board,
    graph,
    number,
    question,
    up_to,
)
from dashboards.source.choices import OF_SERVICE, SERVING
from dashboards.source.queries import name, quantile_now, rate

_OF_MODEL = f'{OF_SERVICE}, model=~"$served", version=~"$version"'
_OP = f'{OF_SERVICE}, model_id=~"$served"'
_BY = "{{model}} {{version}}"


def _sum(metric: str, by: str = "model, version", more: str = "") -> str:
    return f"sum by ({by}) ({rate(metric, _OF_MODEL + more)})"


def _mean_s(metric: str) -> str:
    """Seconds a request that was answered."""
    return f"{_sum(metric)} / 1e6 / {_sum('nv_inference_request_success')}"


def _latency(title: str, description: str, op: str, limits: Steps = ()) -> timeseries.Panel:
    where = f'{_OP}, op="{op}"'
    queries = (
        Query(
            quantile_now(p, where, "model_id, model_version"),
            f"{{{{model_id}}}} {{{{model_version}}}} p{p[2:]}",
        )
        for p in ("0.50", "0.95", "0.99")
    )
    return graph(title, description, "s", *queries, limits=limits)


def make() -> Dashboard:
    failures = _sum("nv_inference_request_failure", "model, version, reason")
    failed = "sum by (model) (" + rate("nv_inference_request_failure", _OF_MODEL) + ")"
    answered = "sum by (model) (" + rate("nv_inference_request_success", _OF_MODEL) + ")"
    self_time = rate("opscope.op.self_time", f'{_OP}, op!~"serving::.*"')
    return (
        board(
            SERVING,
            "Opscope / Serving",
            "Served models: latency, queue, batches, errors.",
            *choices.where(),
            choices.served(),
            choices.served_version(),
        )
        .with_panel(
            question(
                "Do clients get their answers, in time, and if not: queue or model?",
                "Red in the first row: clients notice. A long queue with short batches needs"
                " another server; long batches are the model, and its operators are at the bottom.",
            )
        )
        .with_panel(
            number(
                "Answered",
                "Requests answered per second.",
                EVENTS,
                f"sum({rate('nv_inference_request_success', _OF_MODEL)})",
                NEUTRAL,
                width=6,
            )
        )
        .with_panel(
            number(
                "Failed",
                "Share of requests that failed: above 1 % clients notice, above 5 % is an outage.",
                "percentunit",
                f"sum({failed}) / (sum({failed}) + sum({answered}))",
                up_to(0.01, 0.05),
                width=6,
                decimals=2,
            )
        )
        .with_panel(
            number(
                "Waiting in the queue",
                "Mean time of a request in the queue.",
                "s",
                f"sum({rate('nv_inference_queue_duration_us', _OF_MODEL)}) / 1e6"
                f" / sum({rate('nv_inference_request_success', _OF_MODEL)})",
                up_to(0.1, 1.0),
                width=6,
            )
        )
        .with_panel(
            number(
                "Requests that wait",
                "In the queues now. A queue refuses requests at 1,000 by default.",
                "short",
                f"max({name('nv_inference_pending_request_count')}{{{_OF_MODEL}}})",
                up_to(500, 900),
                width=6,
            )
        )
        .with_panel(
            graph(
                "Requests answered",
                "Per second, by model and version.",
                EVENTS,
                Query(_sum("nv_inference_request_success"), _BY),
                stacked=True,
            )
        )
        .with_panel(
            graph(
                "Share of requests that failed",
                "Of all requests, by model. Above 1 % clients notice; above 5 % is an outage.",
                "percentunit",
                Query(f"{failed} / ({failed} + {answered})", "{{model}}"),
                limits=up_to(0.01, 0.05),
            )
        )
        .with_panel(
            graph(
                "Failures by reason",
                "BACKEND: the model raised. REJECTED: overload, or past the deadline. CANCELED: by"
                " the client. OTHER: bad requests.",
                EVENTS,
                Query(failures, "{{model}} {{version}} {{reason}}"),
                stacked=True,
            )
        )
        .with_panel(
            graph(
                "Requests that wait",
                "In the queue now. A queue refuses requests at 1,000 by default.",
                "short",
                Query(
                    f"sum by (model, version) ({name('nv_inference_pending_request_count')}"
                    f"{{{_OF_MODEL}}})",
                    _BY,
                ),
                limits=up_to(500, 900),
            )
        )
        .with_panel(
            graph(
                "Mean time of a request",
                "From its arrival to its answer, and the part of it in the queue.",
                "s",
                Query(_mean_s("nv_inference_request_duration_us"), f"{_BY} all"),
                Query(_mean_s("nv_inference_queue_duration_us"), f"{_BY} queue"),
            )
        )
        .with_panel(
            graph(
                "Mean batch size",
                "Rows in a batch. 1 under load: requests do not meet; allow a delay.",
                "short",
                Query(f"{_sum('nv_inference_count')} / {_sum('nv_inference_exec_count')}", _BY),
                decimals=1,
            )
        )
        .with_panel(
            _latency(
                "Time in the queue",
                "Quantiles of serving::queue: exact, whatever is sampled. Above 100 ms the"
                " model is overloaded.",
                "serving::queue",
                limits=up_to(0.1, 1.0),
            )
        )
        .with_panel(
            _latency(
                "Time of a batch",
                "Quantiles of serving::batch: making the batch, the model, splitting the result.",
                "serving::batch",
            )
        )
        .with_panel(
            graph(
                "Operators by model and version",
                "The fifteen with the most self time. Needs OPSCOPE_LABELS=model_id,model_version"
                " for versions.",
                THREADS,
                Query(
                    f"topk(15, sum by (op, model_id, model_version) ({self_time}))",
                    "{{op}} {{model_id}} {{model_version}}",
                ),
                width=24,
                stacked=True,
            )
        )
        .build()
    )
