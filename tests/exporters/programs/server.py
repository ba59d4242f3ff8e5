"""A threaded HTTP server that ranks with NumPy, and its clients; runs for as many seconds as its
argument."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import numpy as np

CLIENTS, ITEMS, WIDTH, HIDDEN, BEST = 4, 2000, 64, 128, 10

random = np.random.default_rng(0)
items = random.standard_normal((ITEMS, WIDTH)).astype("f4")
items /= np.linalg.norm(items, axis=1, keepdims=True)
inner = random.standard_normal((WIDTH, HIDDEN)).astype("f4")
outer = random.standard_normal((HIDDEN, WIDTH)).astype("f4")


def ranked(history: list[int]) -> dict[str, list[float]]:
    """The best items for a user who has seen those."""
    seen = np.asarray(history)
    user = np.tanh(np.maximum(np.dot(items[seen].mean(axis=0), inner), 0) @ outer)
    user /= np.sqrt(np.sum(np.square(user))) + 1e-6
    scores = np.dot(items, user)
    scores[seen] = -np.inf
    best = np.argpartition(-scores, BEST)[:BEST]
    best = best[np.argsort(-scores[best])]
    chances = np.exp(scores[best] - np.max(scores[best]))
    return {"items": best.tolist(), "chances": np.round(chances / chances.sum(), 4).tolist()}


class Ranking(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = json.dumps(ranked([int(word) for word in self.path[1:].split(",")])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


def client(port: int, number: int, end: float) -> None:
    while time.monotonic() < end:
        history = ",".join(str((number * 7 + step) % ITEMS) for step in range(20))
        with urlopen(f"http://127.0.0.1:{port}/{history}") as answer:
            answer.read()


def main(seconds: float) -> None:
    end = time.monotonic() + seconds
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port
        clients = [
            threading.Thread(target=client, args=(port, number, end)) for number in range(CLIENTS)
        ]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        server.shutdown()


if __name__ == "__main__":
    main(float(sys.argv[1]))
