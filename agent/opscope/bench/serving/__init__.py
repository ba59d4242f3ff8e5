"""The model server: batches, a naive server, latencies, memory, and what observing it costs.

The clients (load.py) and servers share this machine, and the sides of each ratio take turns in one
run. The model is the CNN of demo_serving.py, untrained: its time does not depend on its numbers.

`batched` sends single images over HTTP, 64 at a time, to a model with batches of up to 32. "One by
one" is the same server, client, concurrency and model with batches off (`max_batch_size` 1): each
request is then a run of its own. `batched_grpc` is the same over gRPC, where requests arrive one at
a time on one connection and the model waits up to 10 ms for others. `batched_by_client` sends 32
images in one request. `vs_flask` compares with the server that tutorials show, with the same client
and concurrency. The cases in us are the server's CPU time for a request: in a batch, alone, and for
one that only asks whether the server is live, which is what the transport costs. `tail` sends at
half of the greatest rate. `observed` compares CPU time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from opscope.bench import RATIO, Effort, Result, median_interval
from opscope.errors import OpscopeError

_AT_ONCE = 64
_BATCH = 32
_DELAY_NS = 10_000_000
_REQUESTS = 6000
_ROUNDS = 9
_TRANSPORTS = ("http", "grpc")
# Transport and model; no model: whether the server is live.
_CPU_CASES = {
    "http_cpu_us": ("http", "batched"),
    "http_alone_cpu_us": ("http", "alone"),
    "http_live_cpu_us": ("http", ""),
    "grpc_cpu_us": ("grpc", "waiting"),
    "grpc_alone_cpu_us": ("grpc", "alone"),
    "grpc_live_cpu_us": ("grpc", ""),
}


class _Bench:
    """One run: its folder, its models, and how often each side is measured."""

    def __init__(self, effort: Effort, folder: Path) -> None:
        self.effort = effort
        self.folder = folder
        self.rounds = effort.rounds_of(_ROUNDS)
        self.count = max(1000, effort.count_of(_REQUESTS))
        self.models = {
            "batched": _model(folder / "batched.pt", _BATCH, 0),
            "waiting": _model(folder / "waiting.pt", _BATCH, _DELAY_NS),
            "alone": _model(folder / "alone.pt", 1, 0),
        }

    def throughput(self, request: Any, count: int | None = None, at_once: int = _AT_ONCE) -> float:
        from opscope.bench.serving.load import throughput

        return throughput(request, count or self.count, at_once, self.folder)

    def serving(self, environment: dict[str, str] | None = None) -> Any:
        from opscope.bench.serving.programs import serving

        return serving(self.models, self.folder, environment)

    # ---- cases of one server -------------------------------------------------------------------

    def batched(self, program: Any) -> Result:
        sides = program.http("batched"), program.http("alone")
        return self._against_alone("batched", *sides)

    def batched_grpc(self, program: Any) -> Result:
        sides = program.grpc("waiting"), program.grpc("alone")
        return self._against_alone("batched_grpc", *sides)

    def batched_by_client(self, program: Any) -> Result:
        sides = program.http("batched", _BATCH), program.http("alone")
        return self._against_alone("batched_by_client", *sides, images=_BATCH, at_once=4)

    def _against_alone(
        self, case: str, request: Any, alone: Any, images: int = 1, at_once: int = _AT_ONCE
    ) -> Result:
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(self.rounds):
            found[0].append(images * self.throughput(request, at_once=at_once))
            found[1].append(self.throughput(alone))
        ratios = [a / b for a, b in zip(*found, strict=True)]
        detail = {"images_per_s": median(found[0]), "alone_per_s": median(found[1])}
        return _ratio(case, "one by one", 3.0, ratios, more=True, **detail)

    def cpu_us(self, program: Any, case: str) -> Result:
        """The server's CPU time for a request, its share of the model's run included."""
        transport, model = _CPU_CASES[case]
        request = getattr(program, transport)(model) if model else program.live(transport)
        found = []
        for _ in range(self.rounds):
            before = program.cpu_us()
            self.throughput(request)
            found.append((program.cpu_us() - before) / self.count)
        interval = median_interval(found)
        return Result(
            "serving", case, median(found), "us", None, None, len(found), interval=interval
        )

    def tail(self, program: Any) -> Result:
        from opscope.bench.serving.load import latencies

        request = program.http("batched")
        ratios, middles, waits = [], [], []
        for _ in range(self.rounds):
            rate = self.throughput(request) / 2
            before = program.cpu_wait_us()
            cuts = quantiles(latencies(request, self.count, rate, 2 * _AT_ONCE), n=100)
            waits.append((program.cpu_wait_us() - before) / self.count)
            ratios.append(cuts[98] / cuts[49])
            middles.append(cuts[49])
        detail = {
            "p50_s": median(middles),
            "by_round": ratios,
            # Beside other programs: what the server waited for a processor, for each request.
            "cpu_wait_us": waits,
        }
        return _ratio("tail", "p50 at half load", 4.0, ratios, more=False, **detail)

    def memory(self, program: Any) -> Result:
        """The server's memory after 10^6 requests over that after the first twentieth."""
        whole = 20_000 if self.effort.quick else 1_000_000
        before = 0
        for number in range(40):
            request = program.grpc("waiting") if number % 2 else program.http("batched")
            self.throughput(request, whole // 40)
            if number == 1:  # both protocols have been used: the first request over each loads code
                before = program.resident_bytes()
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

    # ---- cases of two servers ------------------------------------------------------------------

    def vs_flask(self, transport: str) -> Result:
        from opscope.bench.serving.programs import naive

        own, theirs = [], []
        for _ in range(self.rounds):
            with self.serving() as program:
                one = program.http("batched") if transport == "http" else program.grpc("waiting")
                own.append(self.throughput(one))
            with naive(self.models["alone"], self.folder) as request:
                theirs.append(self.throughput(request, self.count // 4))
        ratios = [a / b for a, b in zip(own, theirs, strict=True)]
        detail = {"own_per_s": median(own), "flask_per_s": median(theirs)}
        case = "vs_flask" if transport == "http" else "vs_flask_grpc"
        return _ratio(case, "Flask, JSON and base64", 5.0, ratios, more=True, **detail)

    def observed(self) -> Result:
        environment = {
            "OPSCOPE_DIR": str(self.folder),
            "OPSCOPE_LABELS": "model_id,model_version",
        }
        ratios = []
        with self.serving() as bare, self.serving(environment) as observed:
            for turn in range(4 * self.rounds):
                spent = {}
                for program in (bare, observed) if turn % 2 else (observed, bare):
                    before = program.cpu_us()
                    self.throughput(program.http("batched"))
                    spent[program] = program.cpu_us() - before
                ratios.append(spent[observed] / spent[bare])
        return _ratio("observed", "unobserved", 1.01, ratios, more=False)


def measure(effort: Effort) -> Iterator[Result]:
    if not find_spec("grpc") or not find_spec("httptools"):
        raise OpscopeError("this bench needs opscope[serving]")
    from opscope.bench.serving import load

    load.program()
    with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
        bench = _Bench(effort, Path(folder))
        of_one: tuple[Callable[[Any], Result], ...] = (
            bench.batched,
            bench.batched_grpc,
            bench.batched_by_client,
            bench.tail,
            bench.memory,
        )
        wanted = [case for case in of_one if effort.wants(case.__name__)]
        costs = [case for case in _CPU_CASES if effort.wants(case)]
        if wanted or costs:
            with bench.serving() as program:
                for case in wanted:
                    yield case(program)
                for name in costs:
                    yield bench.cpu_us(program, name)
        for transport in _TRANSPORTS:
            case_name = "vs_flask" if transport == "http" else "vs_flask_grpc"
            if effort.wants(case_name) and find_spec("flask"):
                yield bench.vs_flask(transport)
        if effort.wants("observed"):
            yield bench.observed()


def _model(path: Path, greatest: int, delay_ns: int) -> Path:
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
        rule=Rule(max_batch_size=greatest, max_queue_delay_ns=delay_ns),
    )
    jit.save(model, path, extra_files={"serving.json": config.to_json()})
    return path


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
