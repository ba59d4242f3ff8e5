"""How many examples tests try: few in `make test`, many in `make test-long`.

Of a property, each run draws others. Other tests that use this have the marker `examples`.
"""

import os

import hypothesis

TIMES = int(os.environ.get("OPSCOPE_TEST_EXAMPLES", "1"))


def few_or(few: int, many: int) -> int:
    """`many` in `make test-long`, for tests whose cases are the same in each run."""
    return few if TIMES == 1 else many


def examples(count: int) -> hypothesis.settings:
    return hypothesis.settings(max_examples=count * TIMES)
