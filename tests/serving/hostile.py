"""Clients that misbehave: they cancel, stall, send garbage, break limits and vanish.

Each kind runs until a time; every answer that comes is compared with the model. As a program,
`python -m tests.serving.hostile SECONDS` runs 200 of them against a server in a process of its own
for a fifth of the time, then for the rest, and compares what the server holds after either. It
ends with status 1 if an answer was wrong, or if anything is left over or has grown:

| of the server | at the end at most |
|---|---|
| requests and bytes in flight | none |
| tasks of the event loop, file descriptors | as many as at the start |
| threads | 8 more: gRPC starts and ends some of its own |
| resident memory | 16 MiB more |
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from subprocess import PIPE
from time import monotonic
from typing import Any, NamedTuple, Protocol

import grpc
import numpy as np

from opscope.serving.limits import Limits
from opscope.serving.protocol import REPLIES, REQUESTS, SERVICE
from tests.serving.running import Running

_METHOD = f"/{SERVICE}/ModelInfer"
# Statuses that a request which breaks no rule may have while others do.
_ALLOWED = {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "CANCELLED", "UNAVAILABLE"}
_TIMEOUT_S = 60.0


class Attacked(Protocol):
    """Addresses of a server."""

    @property
    def grpc(self) -> str: ...

    @property
    def http(self) -> str: ...


class Addresses(NamedTuple):
    grpc: str
    http: str


class Seen:
    """What the clients have got."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []


def _request(rng: random.Random) -> tuple[bytes, bytes]:
    """A request to `double`, and the bytes of its right answer."""
    x = np.array([[rng.random() for _ in range(4)] for _ in range(rng.randint(1, 4))], np.float32)
    made = REQUESTS["ModelInfer"](model_name="double", raw_input_contents=[x.tobytes()])
    made.inputs.add(name="x", datatype="FP32", shape=x.shape)
    return made.SerializeToString(), (2 * x).tobytes()


class _Client:
    def __init__(self, server: Attacked, seen: Seen, seed: int) -> None:
        self.server = server
        self.seen = seen
        self.rng = random.Random(seed)
        self.channel: Any = grpc.aio.insecure_channel(
            server.grpc, options=[("grpc.use_local_subchannel_pool", 1)]
        )

    async def good(self) -> None:
        message, right = _request(self.rng)
        call = self.channel.unary_unary(_METHOD)(message, timeout=_TIMEOUT_S)
        try:
            reply = REPLIES["ModelInfer"].FromString(await call)
        except grpc.aio.AioRpcError as error:
            self._refused(error, _ALLOWED)
            return
        if list(reply.raw_output_contents) != [right]:
            self.seen.wrong.append("grpc")
        self.seen.counts["answered"] += 1

    async def bad_rows(self) -> None:
        """Alone in a batch it would fail; beside others it must not harm them."""
        numbers = np.array([[3, self.rng.choice((4, 99))]], np.int64)
        made = REQUESTS["ModelInfer"](model_name="table", raw_input_contents=[numbers.tobytes()])
        made.inputs.add(name="ids", datatype="INT64", shape=(1, 2))
        call = self.channel.unary_unary(_METHOD)(made.SerializeToString(), timeout=_TIMEOUT_S)
        try:
            reply = REPLIES["ModelInfer"].FromString(await call)
        except grpc.aio.AioRpcError as error:
            self._refused(error, _ALLOWED | ({"INTERNAL"} if numbers[0, 1] == 99 else set()))
            return
        rows = np.frombuffer(reply.raw_output_contents[0], np.float32)
        if rows.tolist() != [3.0, 3.25, 3.5, 4.0, 4.25, 4.5]:
            self.seen.wrong.append("table")
        self.seen.counts["answered"] += 1

    async def cancels(self) -> None:
        call = self.channel.unary_unary(_METHOD)(_request(self.rng)[0])
        await asyncio.sleep(self.rng.random() / 200)
        call.cancel()
        self.seen.counts["cancelled"] += 1

    async def hurries(self) -> None:
        call = self.channel.unary_unary(_METHOD)(_request(self.rng)[0], timeout=0.0005)
        try:
            await call
        except grpc.aio.AioRpcError as error:
            self._refused(error, _ALLOWED)

    async def garbage(self) -> None:
        message = bytearray(_request(self.rng)[0])
        for _ in range(self.rng.randint(1, 8)):
            message[self.rng.randrange(len(message))] = self.rng.randrange(256)
        call = self.channel.unary_unary(_METHOD)(bytes(message), timeout=_TIMEOUT_S)
        try:
            await call  # some changes leave a request that is right
        except grpc.aio.AioRpcError as error:
            self._refused(error, _ALLOWED | {"INVALID_ARGUMENT", "NOT_FOUND"})

    async def too_large(self) -> None:
        call = self.channel.unary_unary(_METHOD)(bytes(2 << 20), timeout=_TIMEOUT_S)
        try:
            await call
            self.seen.wrong.append("a message beyond the limit")
        except grpc.aio.AioRpcError as error:
            self._refused(error, _ALLOWED)

    async def http(self) -> None:
        """One good request; the connection ends in one of several ways."""
        host, port = self.server.http.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            value = self.rng.random()
            body = json.dumps(
                {
                    "inputs": [
                        {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [value] * 4}
                    ]
                }
            ).encode()
            target = "POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\n"
            head = f"{target}Content-Length: {len(body)}"
            data = head.encode() + b"\r\n\r\n" + body
            how = self.rng.choice(("whole", "whole", "vanish", "stall", "noise"))
            if how == "vanish":
                writer.write(data[: self.rng.randrange(len(data))])
            elif how == "stall":
                writer.write(data[:-1])
                await asyncio.sleep(self.rng.random() / 4)
            elif how == "noise":
                writer.write(self.rng.randbytes(200) + b"\r\n\r\n")
            else:
                writer.write(data)
                line = await reader.readline()
                if not line:
                    # This client was too slow: the server's limits of time are short here.
                    raise ConnectionResetError
                status = line.split()[1]
                while (await reader.readline()).strip():
                    pass
                if status == b"200":
                    text = await reader.readuntil(b"]}]}")
                    found = json.loads(text)["outputs"][0]["data"]
                    if found != (2 * np.full(4, value, np.float32)).tolist():
                        self.seen.wrong.append("http")
                elif status not in (b"429", b"503"):
                    self.seen.wrong.append(f"http {status!r}")
            self.seen.counts[f"http {how}"] += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            self.seen.counts["http cut off"] += 1
        finally:
            writer.transport.abort()

    def _refused(self, error: grpc.aio.AioRpcError, allowed: set[str]) -> None:
        if error.code().name not in allowed:
            self.seen.wrong.append(f"{error.code().name}: {error.details()}")
        self.seen.counts[error.code().name] += 1


async def attack(server: Attacked, clients: int, seconds: float) -> Seen:
    """All clients at once, each one thing after another. Raises for one that is stuck."""
    seen = Seen()
    until = monotonic() + seconds

    async def client(number: int) -> None:
        one = _Client(server, seen, number)
        kinds: list[Callable[[], Awaitable[None]]] = [
            one.good,
            one.good,
            one.bad_rows,
            one.cancels,
            one.hurries,
            one.garbage,
            one.too_large,
            one.http,
        ]
        while monotonic() < until:
            await asyncio.wait_for(one.rng.choice(kinds)(), 2 * _TIMEOUT_S)
        await one.channel.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return seen


LIMITS = Limits(message_bytes=1 << 20, receive_s=2.0, idle_s=5.0)


def main(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    command = [sys.executable, "-m", "tests.serving.hostile_server"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        server = Addresses(**json.loads(process.stdout.readline()))

        def held() -> dict[str, int]:
            assert process.stdin is not None and process.stdout is not None
            print("held", file=process.stdin, flush=True)
            found: dict[str, int] = json.loads(process.stdout.readline())
            return found

        seen = asyncio.run(attack(server, 200, seconds / 5))
        before = held()
        later = asyncio.run(attack(server, 200, 4 * seconds / 5))
        after = held()
        process.stdin.close()
    seen.wrong += later.wrong
    seen.counts += later.counts
    print("clients:", dict(sorted(seen.counts.items())))
    print("after a fifth:", before)
    print("at the end:   ", after)
    faults = [f"{count} wrong: {what}" for what, count in Counter(seen.wrong).most_common(20)]
    faults += [f"{name} grew" for name in before if after[name] > before[name] + _MORE.get(name, 0)]
    faults += [f"{name} left" for name in LEFT if after[name]]
    print("\n".join(faults) or "nothing wrong, nothing left over, nothing grown")
    sys.exit(bool(faults))


LEFT = ("requests", "bytes", "http bytes", "http requests", "double", "table", "pending")
_MORE = {"threads": 8, "resident bytes": 16 << 20}


def left_over(server: Running) -> dict[str, int]:
    """What the server still has in flight: all 0 soon after the clients have gone."""
    service = server.server.service
    repository = server.server.repository
    return {
        "requests": service.admission.requests,
        "bytes": service.admission.bytes,
        "http bytes": service.http_admission.bytes,
        "http requests": service.http_admission.requests,
        "double": repository.find("double").in_flight,
        "table": repository.find("table").in_flight,
        "pending": repository.find("double").observer.pending.read(),
    }


if __name__ == "__main__":
    main(float(sys.argv[1]))
