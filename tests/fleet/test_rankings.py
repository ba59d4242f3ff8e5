"""`opscope fleet top` computes estimates with their errors from a store's answers."""

import json
from unittest import mock

from click.testing import CliRunner

from opscope.cli._group import main
from opscope.fleet import promql
from opscope.fleet.store import Sample, Store
from opscope.reports import certainty


class Known(Store):
    """Three operators: one certain, one uncertain, one recorded completely but rarely."""

    def __init__(self) -> None:
        super().__init__("http://nowhere")
        samples = promql.increases("opscope.op.samples", "op", "", "15m")
        self.answers: dict[str, tuple[float | None, ...]] = {
            promql.rates("opscope.op.self_time", "op", "", "15m"): (3.0, 2.0, 1.0),
            samples: (5000.0, 12.0, 9.0),
            promql.error_of_calls("op", "", "15m"): (1.0, 40.0, None),
            **{
                promql.quantile(p, "op", "", "15m"): (1e-3, 2e-3, 3e-3)
                for p in certainty.LEAST_SAMPLES
            },
        }

    def query(self, promql: str, at_s: float | None = None) -> list[Sample]:
        found = self.answers.get(promql, ())
        if promql.startswith("sum by (op)") and "opscope_op_calls_total" in promql:
            found = (100.0, 52.0, 0.01)
        values = zip(("sure", "unsure", "exact"), found, strict=False)
        return [Sample({"op": op}, value) for op, value in values if value is not None]


def test_a_service_may_be_a_glob() -> None:
    assert promql.where("a.b*c?", model_id=None) == r'service_name=~"a\\.b(?s:.*)c(?s:.)"'
    assert promql.where("web-[a-c]", api="x") == 'service_name=~"web\\\\-[a-c]", api="x"'
    assert promql.where("a.b[c") == 'service_name="a.b[c"'
    assert promql.where(service_name="a.b[c]") == 'service_name="a.b[c]"'


def test_imprecise_values_are_marked() -> None:
    with mock.patch("opscope.cli.fleet._store", return_value=Known()):
        text = CliRunner().invoke(main, ["fleet", "top"]).output
        found = json.loads(CliRunner().invoke(main, ["fleet", "top", "--json"]).output)
    assert "52.0 ± 40.0" in text and certainty.in_words() in text
    sure, unsure, exact = found
    assert (unsure["samples"], unsure["calls_error"]) == (12.0, 40.0)
    assert (unsure["p50_s"], unsure["p95_s"], unsure["p99_s"]) == (2e-3, None, None)
    assert sure["p99_s"] == 1e-3
    assert exact["p99_s"] == 3e-3
