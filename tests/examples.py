"""How many examples a property is tried with: few in `make test`, ten times as many in
`make test-long`. Each run tries others."""

import os

import hypothesis

TIMES = int(os.environ.get("OPSCOPE_TEST_EXAMPLES", "1"))


def examples(count: int) -> hypothesis.settings:
    return hypothesis.settings(max_examples=count * TIMES)
