"""The model server: batches, a naive server, latencies, memory, and what observing it costs.

Client and servers share this machine, and the sides of each ratio take turns in one run. The model
is the CNN of demo_serving.py, untrained: its time does not depend on its numbers. `batched` sends
single images, 64 at once, to a server that batches them, and to one that runs each alone;
`batched_by_client` sends 32 images in one request. `observed` compares CPU time for each request.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from opscope.bench import RATIO, Effort, Result, median_interval
from opscope.errors import OpscopeError

_AT_ONCE = 64
_BATCH = 32
_REQUESTS = 1500
_ROUNDS = 9


def measure(effort: Effort) -> Iterator[Result]:
    if not find_spec("grpc") or not find_spec("httptools"):
        raise OpscopeError("this bench needs opscope[serving]")
    with tempfile.TemporaryDirectory(prefix="opscope-bench-") as name:
        folder = Path(name)
        models = {
            "batched": _model(folder / "batched.pt", _BATCH),
            "alone": _model(folder / "alone.pt", 1),
        }
        yield from _cases(effort, folder, models)


def _model(path: Path, greatest: int) -> Path:
    from opscope import demo_cnn
    from opscope import tensor as ot
    from opscope.serving.batcher import Rule
    from opscope.serving.model_config import describe
    from opscope.tensor import jit

    ot.manual_seed(0)
    example = ot.rand(2, 1, 8, 8)
    model = jit.freeze(jit.trace(demo_cnn.network().eval(), example))
    config = describe(
        model,
        [example],
        input_names=["images"],
        output_names=["scores"],
        rule=Rule(max_batch_size=greatest),
    )
    jit.save(model, path, extra_files={"serving.json": config.to_json()})
    return path


def _cases(effort: Effort, folder: Path, models: dict[str, Path]) -> Iterator[Result]:
    rounds, count = effort.rounds_of(_ROUNDS), effort.count_of(_REQUESTS)
    if any(map(effort.wants, ("batched", "batched_by_client", "tail", "memory"))):
        from opscope.bench.serving.client import serving

        with serving(models, folder) as program:
            if effort.wants("batched"):
                yield _batched(program, rounds, count)
            if effort.wants("batched_by_client"):
                yield _batched_by_client(program, rounds, count)
            if effort.wants("tail"):
                yield _tail(program, rounds, count)
            if effort.wants("memory"):
                yield _memory(program, effort)
    if effort.wants("vs_flask") and find_spec("flask"):
        yield _vs_flask(folder, models, rounds, count)
    if effort.wants("observed"):
        yield _observed(folder, models, rounds, count)


def _ratio(
    case: str, against: str, bound: float, ratios: list[float], *, more: bool, **detail: object
) -> Result:
    return Result(
        "serving",
        case,
        median(ratios),
        RATIO,
        against,
        bound,
        len(ratios),
        more_is_better=more,
        interval=median_interval(ratios),
        detail=detail,
    )


def _batched(program: Any, rounds: int, count: int) -> Result:
    from opscope.bench.serving.client import GrpcClient, message

    client = GrpcClient(program.address)
    found: dict[str, list[float]] = {"batched": [], "alone": []}
    for _ in range(rounds):
        for name, rates in found.items():
            rates.append(client.throughput(message(name), count, _AT_ONCE))
    ratios = [a / b for a, b in zip(found["batched"], found["alone"], strict=True)]
    detail = {f"{name}_per_s": median(rates) for name, rates in found.items()}
    return _ratio("batched", "one by one", 3.0, ratios, more=True, **detail)


def _batched_by_client(program: Any, rounds: int, count: int) -> Result:
    from opscope.bench.serving.client import GrpcClient, message

    client = GrpcClient(program.address)
    together, alone = [], []
    for _ in range(rounds):
        many = client.throughput(message("batched", _BATCH), max(64, count // 8), 4)
        together.append(_BATCH * many)
        alone.append(client.throughput(message("alone"), count, _AT_ONCE))
    ratios = [a / b for a, b in zip(together, alone, strict=True)]
    return _ratio(
        "batched_by_client",
        "one by one",
        3.0,
        ratios,
        more=True,
        images_per_s=median(together),
        alone_per_s=median(alone),
    )


def _tail(program: Any, rounds: int, count: int) -> Result:
    from opscope.bench.serving.client import GrpcClient, message

    client, request = GrpcClient(program.address), message("batched")
    ratios, middles = [], []
    for _ in range(rounds):
        greatest = client.throughput(request, count, _AT_ONCE)
        cuts = quantiles(client.latencies(request, count, greatest / 2), n=100)
        ratios.append(cuts[98] / cuts[49])
        middles.append(cuts[49])
    return _ratio("tail", "p50 at half load", 4.0, ratios, more=False, p50_s=median(middles))


def _memory(program: Any, effort: Effort) -> Result:
    """The server's memory after 10^6 requests over that after the first twentieth."""
    from opscope.bench.serving.client import GrpcClient, message

    client, request = GrpcClient(program.address), message("batched")
    whole = 20_000 if effort.quick else 1_000_000
    client.throughput(request, whole // 20, _AT_ONCE)
    before = program.resident_bytes()
    client.throughput(request, whole - whole // 20, _AT_ONCE)
    after = program.resident_bytes()
    return Result(
        "serving",
        "memory",
        after / before,
        RATIO,
        "after 5 % of the requests",
        1.02,
        1,
        detail={"requests": whole, "before_bytes": before, "after_bytes": after},
    )


def _vs_flask(folder: Path, models: dict[str, Path], rounds: int, count: int) -> Result:
    from opscope.bench.serving.client import GrpcClient, message, naive, naive_throughput, serving

    own, theirs = [], []
    for _ in range(rounds):
        with serving(models, folder) as program:
            client = GrpcClient(program.address)
            own.append(client.throughput(message("batched"), count, _AT_ONCE))
        with naive(models["alone"], folder) as port:
            theirs.append(naive_throughput(port, max(50, count // 4)))
    ratios = [a / b for a, b in zip(own, theirs, strict=True)]
    detail = {"own_per_s": median(own), "flask_per_s": median(theirs)}
    return _ratio("vs_flask", "Flask, JSON and base64", 5.0, ratios, more=True, **detail)


def _observed(folder: Path, models: dict[str, Path], rounds: int, count: int) -> Result:
    from opscope.bench.serving.client import GrpcClient, message, serving

    environment = {"OPSCOPE_DIR": str(folder), "OPSCOPE_LABELS": "model_id,model_version"}
    ratios = []
    request = message("batched")
    with serving(models, folder) as bare, serving(models, folder, environment) as observed:
        for _ in range(2 * rounds):
            spent = []
            for program in (bare, observed):
                before = program.cpu_s()
                GrpcClient(program.address).throughput(request, count, _AT_ONCE)
                spent.append(program.cpu_s() - before)
            ratios.append(spent[1] / spent[0])
    return _ratio("observed", "unobserved", 1.01, ratios, more=False)
