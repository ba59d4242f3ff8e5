"""A server that answers each connection with given bytes, at any speed."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Hostile:
    def __init__(self) -> None:
        self.requests = 0
        self.url = ""


@contextmanager
def hostile(answer: Callable[[socket.socket, threading.Event], object]) -> Iterator[Hostile]:
    """`answer` gets a connection whose request has been read, and an event that is set at the
    end."""
    found, ended = Hostile(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    found.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            with connection.makefile("rb") as file:
                size = 0
                while (line := file.readline()).strip():
                    name, _, value = line.partition(b":")
                    size = int(value) if name.lower() == b"content-length" else size
                file.read(size)
            found.requests += 1
            answer(connection, ended)

    def run() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=serve, args=(connection,))
                thread.start()
                threads.append(thread)

    accepting = threading.Thread(target=run)
    accepting.start()
    try:
        yield found
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        for thread in threads:
            thread.join()
        listener.close()


def said(head: bytes, body: bytes = b"") -> Callable[[socket.socket, threading.Event], object]:
    """Sends one answer and ends the connection."""
    whole = head.replace(b"\n", b"\r\n") + b"\r\nConnection: close\r\n\r\n" + body
    return lambda connection, _: connection.sendall(whole)


def dribbling(
    head: bytes, piece: bytes, pause_s: float = 0.02
) -> Callable[[socket.socket, threading.Event], object]:
    """An answer that repeats that piece for ever."""

    def answer(connection: socket.socket, ended: threading.Event) -> None:
        connection.sendall(head.replace(b"\n", b"\r\n"))
        while not ended.wait(pause_s):
            connection.sendall(piece)

    return answer
