"""Heads and chunked bodies of HTTP/1.1 requests, by httptools: the parser of Node.js, llhttp.

It refuses what two programs might read differently: bare line feeds, folded lines, two lengths, a
length beside chunks. `parse` refuses in addition what this server does not do.
"""

from __future__ import annotations

import httptools

from opscope.serving.faults import Reason, RequestError

_VERSIONS = ("1.1", "1.0")
_FRAMING_LIMIT = 128 << 10
"""Bytes without a body's: extensions of chunks, and trailers, which are not read."""


class Head:
    """The head of a request. Names of headers are in lower case; of equal ones, the last counts."""

    __slots__ = ("headers", "is_chunked", "keep_alive", "length", "method", "target")

    def __init__(self, method: str, target: str, headers: dict[str, str]) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.keep_alive = True
        self.length = 0
        self.is_chunked = False


class HeadParser:
    """Reads one request: its head, and its body if that is chunked."""

    __slots__ = (
        "_begun",
        "_framing",
        "_has_head",
        "_headers",
        "_hosts",
        "_is_complete",
        "_parser",
        "_target",
        "body",
    )

    def __init__(self) -> None:
        self.body = bytearray()
        """What has come of a chunked body."""
        self._begun = 0
        self._has_head = False
        self._framing = 0
        self._target = b""
        self._headers: dict[str, str] = {}
        self._hosts = 0
        self._is_complete = False
        self._parser = httptools.HttpRequestParser(self)

    def parse(self, data: bytes) -> Head:
        """The head, of the bytes up to the empty line. Raises RequestError."""
        parser = self._parser
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # an offer, which a server may leave
        except httptools.HttpParserError as error:
            raise RequestError(Reason.BAD_REQUEST, f"this is no request of HTTP: {error}") from None
        self._has_head = True
        version = parser.get_http_version()
        if self._begun != 1 or self.body or version not in _VERSIONS:
            raise RequestError(Reason.BAD_REQUEST, "this is no request of HTTP/1.1")
        headers = self._headers
        if self._hosts != 1 and (version == "1.1" or self._hosts):
            raise RequestError(Reason.BAD_REQUEST, "a request names one host")
        method = parser.get_method().decode("latin-1")
        head = Head(method, self._target.decode("latin-1"), headers)
        head.keep_alive = version == "1.1" and headers.get("connection", "").lower() != "close"
        coding = headers.get("transfer-encoding")
        if coding is not None:
            if coding.strip().lower() != "chunked":
                raise RequestError(Reason.BAD_REQUEST, "of transfer codings, chunked alone is read")
            head.is_chunked = True
        else:
            # httptools has checked the digits.
            head.length = int(headers.get("content-length", "0"))
        return head

    def feed(self, data: bytes) -> bool:
        """Adds to `body`; whether it is complete. Raises RequestError for damaged chunks."""
        self._framing += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            # Damage behind the end of this request is ignored: see `has_more`.
            if not self._is_complete:
                raise RequestError(Reason.BAD_REQUEST, "the chunks are damaged") from None
        if self._framing > _FRAMING_LIMIT:
            raise RequestError(Reason.TOO_LARGE, "the chunks have too little in them")
        return self._is_complete

    @property
    def has_more(self) -> bool:
        """Whether bytes of another request followed the chunks. httptools does not say where it
        began, so this one has to be the last of its connection."""
        return self._begun > 1

    # ---- what httptools calls ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begun += 1

    def on_url(self, part: bytes) -> None:
        if self._begun == 1:
            self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            key = name.decode("latin-1").lower()
            self._headers[key] = value.decode("latin-1")
            if key == "host":
                self._hosts += 1

    def on_body(self, part: bytes) -> None:
        if self._begun == 1:
            self.body += part
            self._framing = 0

    def on_message_complete(self) -> None:
        self._is_complete = True
