"""Why a request failed, independent of the protocol that carries the answer."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The gRPC status, the HTTP status, and Triton's word in `nv_inference_request_failure`."""

    BAD_REQUEST = ("INVALID_ARGUMENT", 400, "OTHER")
    UNKNOWN_MODEL = ("NOT_FOUND", 404, "OTHER")
    NOT_READY = ("UNAVAILABLE", 503, "REJECTED")
    OVERLOAD = ("RESOURCE_EXHAUSTED", 429, "REJECTED")
    TOO_LARGE = ("RESOURCE_EXHAUSTED", 413, "REJECTED")
    HEAD_TOO_LARGE = ("RESOURCE_EXHAUSTED", 431, "REJECTED")
    DEADLINE = ("DEADLINE_EXCEEDED", 504, "REJECTED")
    CANCELED = ("CANCELLED", 499, "CANCELED")
    MODEL = ("INTERNAL", 500, "BACKEND")
    UNAUTHENTICATED = ("UNAUTHENTICATED", 401, "OTHER")

    def __init__(self, grpc_status: str, http_status: int, word: str) -> None:
        self.grpc_status = grpc_status
        self.http_status = http_status
        self.word = word


class RequestError(Exception):
    """A request's failure: its reason, and a text for the client."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def bad_request(text: str) -> RequestError:
    return RequestError(Reason.BAD_REQUEST, text)
