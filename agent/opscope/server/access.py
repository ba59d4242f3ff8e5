"""Access to the agent's pages: TLS, and names with passwords, both from files.

A password file has a line `NAME:scrypt:N:R:P:SALT:HASH` for each name, with salt and hash in
base64; `opscope agent --make-password NAME` prints such a line. Python includes scrypt, so the
agent needs no further package. Changed files are read again, since certificates are renewed and
passwords revoked. Checking a password is slow by design, so a correct one is remembered (as a keyed
hash, in memory) and accepted at once later. Other passwords are checked one at a time, in turns by
the client's address (fair_queue.py).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import socket
import ssl
import threading
from typing import NamedTuple

from opscope.errors import AgentError
from opscope.server.fair_queue import FairQueue

_N, _R, _P = 1 << 14, 8, 1
_SALT_BYTES, _HASH_BYTES = 16, 32
_MEMORY_LIMIT = 64 << 20
_FILE_BYTES = 1 << 20
_REMEMBERED_LIMIT = 64
_REALM = "opscope"


class _Password(NamedTuple):
    n: int
    r: int
    p: int
    salt: bytes
    hash: bytes

    def matches(self, password: bytes) -> bool:
        return hmac.compare_digest(self.hash, _scrypt(password, *self[:4]))


def _scrypt(password: bytes, n: int, r: int, p: int, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password, salt=salt, n=n, r=r, p=p, dklen=_HASH_BYTES, maxmem=_MEMORY_LIMIT
    )


# An unknown name's password is compared with this, so that the answer takes as long.
_NOBODY = _Password(_N, _R, _P, bytes(_SALT_BYTES), bytes(_HASH_BYTES))


def password_line(name: str, password: str) -> str:
    """The line for that name in a password file. Raises AgentError for an invalid name."""
    if not name.isprintable() or ":" in name or name != name.strip() or name[:1] in ("", "#"):
        raise AgentError(
            f"{name!r} is not a valid name: it must be printable, without a colon, a leading # or "
            "surrounding blanks"
        )
    salt = secrets.token_bytes(_SALT_BYTES)
    found = _scrypt(password.encode(), _N, _R, _P, salt)
    coded = ":".join(base64.b64encode(part).decode() for part in (salt, found))
    return f"{name}:scrypt:{_N}:{_R}:{_P}:{coded}"


class Passwords:
    """The names and passwords of a file. Raises AgentError if the file is unusable."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._turns = FairQueue()
        self._stamp: object = None
        self._known: dict[str, _Password] = {}
        self._good: dict[bytes, None] = {}
        self._read_if_changed()

    @property
    def challenge(self) -> str:
        return f'Basic realm="{_REALM}", charset="UTF-8"'

    def allows(self, authorization: str, share: str = "") -> bool:
        """Whether this Authorization header has a known name and the right password.

        `share`: the share whose turn the check takes. Raises Busy if too many requests wait.
        """
        digest = hmac.digest(self._key, authorization.encode(), "sha256")
        if self._is_remembered(digest):
            return True
        name, password = _credentials(authorization)
        if name is None:
            return False
        with self._turns.turn(share):
            with self._lock:
                known = self._known.get(name)
                stamp = self._stamp
            if not (known or _NOBODY).matches(password) or known is None:
                return False
            with self._lock:
                if self._stamp != stamp:
                    return False  # the file has changed; the client asks again
                if len(self._good) >= _REMEMBERED_LIMIT:
                    self._good.clear()
                self._good[digest] = None
            return True

    def _is_remembered(self, digest: bytes) -> bool:
        with self._lock:
            try:
                self._read_if_changed()
            except AgentError:
                self._known, self._stamp, self._good = {}, None, {}
            return digest in self._good

    def _read_if_changed(self) -> None:
        try:
            stamp = _stamp(self._path)
            if stamp == self._stamp:
                return
            with open(self._path, "rb") as file:
                lines = file.read(_FILE_BYTES).decode().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise AgentError(f"basic_auth_file {self._path}: {_reason(error)}") from error
        known = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                name, password = _parse(self._path, number, line)
                known[name] = password
        if not known:
            raise AgentError(f"basic_auth_file {self._path}: it has no entry")
        self._known, self._stamp, self._good = known, stamp, {}


def _parse(path: str, number: int, line: str) -> tuple[str, _Password]:
    try:
        name, kind, n, r, p, salt, found = line.strip().split(":")
        password = _Password(
            int(n),
            int(r),
            int(p),
            base64.b64decode(salt, validate=True),
            base64.b64decode(found, validate=True),
        )
        if kind != "scrypt" or not name or len(password.hash) != _HASH_BYTES:
            raise ValueError("form")
        password.matches(b"")  # reports unusable parameters now
    except (ValueError, binascii.Error) as error:
        raise AgentError(
            f"basic_auth_file {path}, line {number}: not in the form that "
            "`opscope agent --make-password NAME` prints"
        ) from error
    return name, password


def _credentials(authorization: str) -> tuple[str | None, bytes]:
    kind, _, coded = authorization.partition(" ")
    if kind.lower() != "basic":
        return None, b""
    try:
        name, colon, password = base64.b64decode(coded.strip(), validate=True).partition(b":")
        return (name.decode() if colon else None), password
    except (ValueError, binascii.Error):
        return None, b""


class Certificate:
    """A certificate and its key, in files. Raises AgentError if they are unusable."""

    def __init__(self, cert: str, key: str) -> None:
        self._paths = cert, key
        self._lock = threading.Lock()
        self._stamps: object = None
        self._context: ssl.SSLContext
        self._load_if_changed()

    def wrap(self, connection: socket.socket) -> ssl.SSLSocket:
        """The connection over TLS; the caller performs the handshake."""
        with self._lock:
            try:
                self._load_if_changed()
            except AgentError:
                pass  # renewal in progress: keep the previous certificate
            context = self._context
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def _load_if_changed(self) -> None:
        try:
            stamps = tuple(map(_stamp, self._paths))
            if stamps == self._stamps:
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(*self._paths)
        except (OSError, ssl.SSLError) as error:
            raise AgentError(
                f"tls_cert {self._paths[0]}, tls_key {self._paths[1]}: {_reason(error)}"
            ) from error
        self._context, self._stamps = context, stamps


def _stamp(path: str) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
