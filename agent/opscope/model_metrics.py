"""The part of the table of metrics (metrics.py) that says what served models do."""

from __future__ import annotations

from opscope.metric_definition import Kind, Metric

# Triton's names. A process has one text for all but the first: `digits/1`, `digits/1/BACKEND`.
MODEL_LABELS: tuple[str, ...] = ("service_name", "model", "version")
FAILURE_LABELS: tuple[str, ...] = (*MODEL_LABELS, "reason")


def _of_model(
    name: str, help: str, kind: Kind = Kind.COUNTER, labels: tuple[str, ...] = MODEL_LABELS
) -> Metric:
    """By the name that NVIDIA's Triton gives it, so that queries on Triton's need only `_total`."""
    return Metric(name, kind, "", help, f"served.{name}", labels)


MODEL_METRICS = (
    _of_model("nv_inference_request_success", "Requests that a served model answered."),
    _of_model(
        "nv_inference_request_failure",
        "Requests that failed, by reason: BACKEND (the model raised), REJECTED (overload, or past"
        " the deadline), CANCELED, OTHER (bad requests).",
        labels=FAILURE_LABELS,
    ),
    _of_model("nv_inference_count", "Rows that a served model ran: a batch of n counts n."),
    _of_model("nv_inference_exec_count", "Batches that a served model ran."),
    _of_model(
        "nv_inference_request_duration_us",
        "Total time from a request's arrival to its answer, in microseconds.",
    ),
    _of_model(
        "nv_inference_queue_duration_us",
        "Total time that requests waited for their batch, in microseconds.",
    ),
    _of_model(
        "nv_inference_compute_infer_duration_us",
        "Total time that requests were in the model, in microseconds: that of a batch counts for"
        " each of its requests.",
    ),
    _of_model(
        "nv_inference_pending_request_count",
        "Requests that wait for their batch.",
        Kind.GAUGE,
    ),
)
