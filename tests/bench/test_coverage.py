"""The bench of coverage tells whose time a sample is, and whether a range was open."""

from opscope.bench.coverage.programs import PROGRAMS, Program, missing
from opscope.bench.coverage.samples import INTERPRETER, OWN, parse
from opscope.bench.coverage.spans import Spans

PERF = """
  101     2.000000100:
\t    7f01 _PyEval_EvalFrameDefault+0x1 (/opt/python/bin/python3.11)
\t    7f02 main (/opt/python/bin/python3.11)

  101     2.000000200:
\tffffffff81 page_fault ([kernel.kallsyms])
\t    7f03 __memset_avx2 (/usr/lib/libc.so.6)
\t    7f04 LONG_fill (/site-packages/numpy/_core/_multiarray_umath.so)
\t    7f05 main (/opt/python/bin/python3.11)

  102     3.000000300:
\t    7f06 opscope__range_open_slow (/site-packages/opscope/libopscope.so)

  102     3.000000400:
\t    7f07 json_scan (/opt/python/lib/python3.11/lib-dynload/_json.so)

  103     4.000000500:
\tffffffff82 schedule ([kernel.kallsyms])
"""


def test_a_sample_belongs_to_the_first_frame_outside_of_the_kernel_and_the_c_library() -> None:
    found = [(sample.tid, sample.ns, sample.owner) for sample in parse(PERF.splitlines())]
    assert found == [
        (101, 2_000_000_100, INTERPRETER),
        (101, 2_000_000_200, "_multiarray_umath.so"),
        (102, 3_000_000_300, OWN),
        (102, 3_000_000_400, INTERPRETER),
        (103, 4_000_000_500, "[kernel.kallsyms]"),
    ]


def test_a_thread_without_ranges_works_for_the_threads_that_have_one_open() -> None:
    spans = Spans({1: ([10, 30], [20, 40]), 2: ([35], [50])}, {1: ([10], [20]), 2: ([], [])})
    assert [spans.contain(1, ns) for ns in (9, 10, 19, 20, 35, 45)] == [
        *(False, True, True, False),
        *(True, False),
    ]
    assert [spans.contain(3, ns) for ns in (9, 15, 25, 45, 50)] == [False, True, False, True, False]
    assert spans.contain(1, 35) and not spans.contain(1, 35, compiled=True)
    assert not spans.contain(3, 45, compiled=True)
    assert spans.covered_ns(0, 100) == 30
    assert spans.covered_ns(15, 32) == 7


def test_programs_name_what_they_lack() -> None:
    assert missing(Program("one", "arrays", ("json", "no_such_module"))) == ["no_such_module"]
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
