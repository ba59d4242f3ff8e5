"""An AdmissionReview (admission.k8s.io/v1) in, one out. Pure, but for the namespace's annotations.

Every answer admits the pod. A pod that asks to be observed and cannot be has the reason as a
warning, which kubectl shows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from opscope.kubernetes import injection
from opscope.kubernetes.injection import Images, NotObservableError

_WARNING_LIMIT = 250
"""Characters; the API server cuts longer ones."""


class NoReviewError(ValueError):
    """The body is no AdmissionReview, so that it cannot even be answered with one."""


def answered(
    body: bytes,
    images: Images,
    annotations_of: Callable[[str], Mapping[str, Any]],
) -> dict[str, Any]:
    """The answer to a request's body. `annotations_of`: those of a namespace; it must not raise.

    Raises NoReviewError.
    """
    request = _request(body)
    response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    try:
        patch, warnings = _patch(request, images, annotations_of)
    except NotObservableError as error:
        patch, warnings = [], [f"not observed: {error}"]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # A pod of an unknown form: the API server, not this program, judges it.
        patch, warnings = [], [f"not observed: unknown form ({type(error).__name__})"]
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    if warnings:
        response["warnings"] = [f"opscope: {text}"[:_WARNING_LIMIT] for text in warnings]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _request(body: bytes) -> dict[str, Any]:
    try:
        review = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NoReviewError("the body is not JSON") from error
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise NoReviewError("the body is no AdmissionReview with a request")
    return request


def _patch(
    request: Mapping[str, Any],
    images: Images,
    annotations_of: Callable[[str], Mapping[str, Any]],
) -> tuple[list[injection.Operation], list[str]]:
    kind = request.get("kind") or {}
    if (kind.get("group"), kind.get("kind")) != ("", "Pod") or request.get("operation") != "CREATE":
        return [], []
    pod = request["object"]
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    # The annotations of the pod decide alone if they say anything.
    namespace = request.get("namespace") or ""
    of_namespace = {} if injection.INJECT in annotations else annotations_of(namespace)
    if not injection.is_wanted(annotations, of_namespace):
        return [], []
    return injection.operations(pod, images)
