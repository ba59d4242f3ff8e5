"""`opscope webhook`: the admission webhook that observes pods by annotation."""

from __future__ import annotations

import signal
import threading

import click

from opscope.errors import OpscopeError


@click.command("webhook", short_help="Observe Kubernetes pods by annotation.")
@click.option(
    "--image",
    required=True,
    metavar="IMAGE",
    help="Image with the payload and the agent, which observed pods get.",
)
@click.option(
    "--pull-policy",
    type=click.Choice(["Always", "IfNotPresent", "Never"]),
    default="IfNotPresent",
    show_default=True,
    help="When a node pulls that image.",
)
@click.option(
    "--listen", metavar="HOST:PORT", default="0.0.0.0:8443", show_default=True, help="Address."
)
@click.option("--tls-cert", metavar="FILE", required=True, help="Certificate, in PEM.")
@click.option("--tls-key", metavar="FILE", required=True, help="Its private key.")
def command(image: str, pull_policy: str, listen: str, tls_cert: str, tls_key: str) -> None:
    """Answer the API server's admission requests: observe pods with the annotation
    opscope.dev/inject: "true", on the pod or on its namespace.

    The Helm chart agent/deploy/chart installs it. It never refuses a pod. A renewed certificate is
    in use from the next connection on.
    """
    from opscope.kubernetes.injection import Images
    from opscope.kubernetes.namespaces import Namespaces
    from opscope.kubernetes.webhook import Certificate, Webhook

    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OpscopeError(f"--listen {listen!r}: must be HOST:PORT")
    server = Webhook(
        (host.strip("[]"), int(port)),
        Certificate(tls_cert, tls_key),
        Images(image, pull_policy),
        Namespaces().annotations,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    click.echo(f"webhook at https://{host}:{server.server_port}/inject")
    with server:
        server.serve_forever()
