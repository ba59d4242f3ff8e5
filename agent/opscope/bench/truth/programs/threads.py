"""PyTorch programs that start a thread for each request, which lives for milliseconds."""

import socket
import socketserver
import threading
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from opscope.bench.truth.programs import Done, Drive, with_threads

_CLIENTS = 2
_REQUESTS_ALONE = 51


def _request() -> Callable[[], None]:
    layer, inputs = nn.Linear(64, 64), torch.randn(8, 64)

    def work() -> None:
        with torch.inference_mode():
            for _ in range(200):
                layer(inputs)

    work()
    return work


def thread_per_request() -> Drive:
    work = _request()

    def step() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    return with_threads(step)


def _seconds_alone(work: Callable[[], None]) -> float:
    """CPU time of a request while no other thread runs."""
    taken = []
    for _ in range(_REQUESTS_ALONE):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return median(taken)


def server() -> Drive:
    """A threaded server on this host's own address, and clients in this process.

    A request counts as the time that one takes alone. How long it waits for Python's GIL, and what
    handing it over costs, is another figure in runs that record every range: their threads take
    turns otherwise, and a request took 1.9 ms there and 2.8 ms in other runs.
    """
    work = _request()
    alone_s = _seconds_alone(work)
    answered: list[None] = []

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            work()
            answered.append(None)
            self.wfile.write(b"done\n")

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        daemon_threads = True
        request_queue_size = 64

    listening = Server(("127.0.0.1", 0), Answer)
    _, port = listening.server_address[:2]
    threading.Thread(target=listening.serve_forever, daemon=True).start()

    def ask(end: float) -> None:
        while time.monotonic() < end:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"work\n")
                connection.recv(16)

    def drive(seconds: float) -> Done:
        answered.clear()
        end = time.monotonic() + seconds
        clients = [threading.Thread(target=ask, args=(end,)) for _ in range(_CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        listening.shutdown()
        listening.server_close()
        return Done(len(answered), alone_s * len(answered))

    return drive
