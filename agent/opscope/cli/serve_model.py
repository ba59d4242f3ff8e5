"""`opscope serve-model`: answer requests for compiled models over gRPC and HTTP."""

from __future__ import annotations

import click

from opscope.cli._numbers import duration
from opscope.errors import OpscopeError
from opscope.extras import needed


@click.command("serve-model", short_help="Serve compiled models over gRPC and HTTP.")
@click.argument("models", metavar="NAME[:VERSION]=ARCHIVE...", nargs=-1, required=True)
@click.option(
    "--grpc",
    default="127.0.0.1:8001",
    metavar="HOST:PORT",
    show_default=True,
    help="Address to serve on, or off.",
)
@click.option(
    "--http",
    default="127.0.0.1:8000",
    metavar="HOST:PORT",
    show_default=True,
    help="Address to serve on, or off.",
)
@click.option("--tls-cert", type=click.Path(), help="Certificate (PEM), for both protocols.")
@click.option("--tls-key", type=click.Path(), help="Its key (PEM).")
@click.option("--token-file", type=click.Path(), help="Tokens that clients need, one a line.")
@click.option(
    "--max-message-mib",
    type=click.IntRange(1, 2047),
    default=64,
    show_default=True,
    help="Largest request, in MiB.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="Most requests in the server at a time; further ones are refused.",
)
@click.option(
    "--max-memory-mib",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    help="Most memory of these requests, in MiB.",
)
@click.option(
    "--drain-seconds",
    type=duration(0),
    default=30.0,
    show_default=True,
    help="After SIGTERM, most time to answer the requests in the server.",
)
def command(
    models: tuple[str, ...],
    grpc: str,
    http: str,
    tls_cert: str | None,
    tls_key: str | None,
    token_file: str | None,
    max_message_mib: int,
    max_requests: int,
    max_memory_mib: int,
    drain_seconds: float,
) -> None:
    """Serve models over the Open Inference Protocol, by gRPC and by HTTP.

    ARCHIVE is a file of opscope.tensor.jit.save or torch.jit.save. Its extra file serving.json, or
    ARCHIVE.json beside it, says which inputs and outputs the model has and how to batch requests.

    Observe it as any program: opscope run --labels model_id,model_version -- opscope serve-model
    """
    with needed("opscope serve-model", "serving"):
        from opscope.serving import access, server
        from opscope.serving.limits import Limits
        from opscope.serving.repository import parse_source
    addresses = [None if one == "off" else _address(one) for one in (grpc, http)]
    if addresses == [None, None]:
        raise OpscopeError("both --grpc and --http are off")
    options = server.Options(
        [parse_source(one) for one in models],
        addresses[0],
        addresses[1],
        Limits(
            message_bytes=max_message_mib << 20,
            memory_bytes=max_memory_mib << 20,
            requests=max_requests,
            drain_s=drain_seconds,
        ),
        access.load(tls_cert, tls_key, token_file),
    )
    server.serve(options, lambda text: click.echo(text, err=True))


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise OpscopeError(f"{text!r} is not HOST:PORT")
    return text
