"""How many examples tests try: few in `make test`, ten times as many in `make test-long`.

Of a property, each run draws others. Other tests that use this have the marker `examples`.
"""

import os

import hypothesis

TIMES = int(os.environ.get("OPSCOPE_TEST_EXAMPLES", "1"))


def examples(count: int) -> hypothesis.settings:
    return hypothesis.settings(max_examples=count * TIMES)
