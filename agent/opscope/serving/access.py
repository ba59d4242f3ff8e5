"""Who may call: TLS, and a token that requests carry as `Authorization: Bearer TOKEN`."""

from __future__ import annotations

import hmac
import ipaddress
import ssl
from dataclasses import dataclass

from opscope.errors import OpscopeError

_SCHEME = "bearer "


@dataclass(frozen=True)
class Access:
    """Encryption and tokens; without any, everyone who reaches the address may call the server."""

    certificate: bytes | None = None
    key: bytes | None = None
    certificate_path: str = ""
    key_path: str = ""
    tokens: tuple[bytes, ...] = ()

    def allows(self, authorization: str | bytes | None) -> bool:
        """Whether the header has one of the tokens; the time of comparing says nothing."""
        if not self.tokens:
            return True
        if isinstance(authorization, bytes):
            authorization = authorization.decode("latin-1")
        if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
            return False
        given = authorization[len(_SCHEME) :].strip().encode()
        return any(hmac.compare_digest(given, token) for token in self.tokens)

    def ssl_context(self) -> ssl.SSLContext | None:
        """For HTTP; None without TLS."""
        if not self.certificate_path:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate_path, self.key_path)
        except (OSError, ssl.SSLError) as error:
            raise OpscopeError(f"{self.certificate_path}: {error}") from None
        return context


def load(certificate: str | None, key: str | None, token_file: str | None) -> Access:
    """Reads the files. A token is a line; empty lines and those from `#` on do not count.

    Raises OpscopeError for an unreadable file, and one without a token.
    """
    if (certificate is None) != (key is None):
        raise OpscopeError("TLS needs both a certificate and its key")
    tokens: tuple[bytes, ...] = ()
    if token_file is not None:
        lines = (line.split(b"#")[0].strip() for line in _read(token_file).splitlines())
        tokens = tuple(filter(None, lines))
        if not tokens:
            raise OpscopeError(f"{token_file} has no token")
    return Access(
        _read(certificate) if certificate else None,
        _read(key) if key else None,
        certificate or "",
        key or "",
        tokens,
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OpscopeError(f"{path}: {error.strerror}") from None
