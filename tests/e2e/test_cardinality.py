"""Hostile label values create at most 2,000 series, `other`, and counters that report it."""

import sys

import pytest

from tests.e2e.observed_host import ObservedHost

# Every range has a new label, and services, APIs and operators are unlimited.
PROGRAM = """
import sys
import numpy
import opscope

count = int(sys.argv[1])
for number in range(count):
    with opscope.debug_info(model_id=f"{number}\\n\\"\\\\{{}}"):
        with opscope.record_function("hostile::work"):
            pass
for number in range(3000):
    opscope.log_api_usage_once(f"api.{number}")
for number in range(3000):
    with opscope.record_function(f"hostile::{number}"):
        pass
"""


@pytest.mark.slow
def test_a_quarter_of_a_million_label_values_are_two_thousand_series(host: ObservedHost) -> None:
    count = 250_000
    host.run(sys.executable, "-c", PROGRAM, str(count))
    calls = host.calls()
    samples = [*host.samples()]
    series = [one for one in samples if one.name == "opscope_op_duration_seconds_count"]
    assert len(series) <= 2_001
    # No range is lost; those beyond the limit are under `other`.
    assert sum(calls.values()) >= count + 3000
    assert calls["other"] > 0
    found = {sample.name: sample.value for sample in samples}
    assert found["opscope_series_folded"] > 0 or found["opscope_recorder_folded_total"] > 0
    assert sum(1 for one in samples if one.name == "opscope_api_usage") <= 1_001
