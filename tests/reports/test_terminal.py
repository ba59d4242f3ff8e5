"""The output of `opscope top` and `opscope ps`, which fits its terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opscope.cli._group import main
from opscope.cli.ps import lines
from opscope.host import pid_namespaces, processor_time
from opscope.host.pid_namespaces import Inner
from opscope.host.processor_time import ProcessorTime, ProcessStat
from opscope.processes.attach_diagnosis import ARMED, NOT_STARTED_BY_US
from opscope.reports.numbers import rate, seconds
from tests.segments.segment_writer import Process, Range, SegmentWriter, start_of

OUTER = Range("core::a_rather_long_name_of_an_operator", 4e-3, 100, self_s=1e-3)
INNER = Range("numpy::add", 1e-3, 300, self_s=1e-3)


def run(*arguments: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, arguments)


def top(place: Path, *options: str, columns: int = 80) -> list[str]:
    result = run("top", "--once", "--directory", str(place), *options, columns=columns)
    assert result.exit_code == 0
    return result.output.splitlines()


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("by", ["operator", "process", "labels"])
def test_the_table_fits_and_has_no_escape_codes(tmp_path: Path, columns: int, by: str) -> None:
    writer = SegmentWriter().add([OUTER, INNER])
    writer.note("service.name", "a-service-with-quite-a-name")
    writer.write(tmp_path)
    text = top(tmp_path, "--by", by, columns=columns)
    assert max(map(len, text)) <= columns
    assert "\x1b" not in "".join(text)
    (numpy,) = (line for line in text if "numpy::add" in line)
    assert numpy.split().count("75.0") == 2
    assert "1.02" in numpy.split()


def test_columns_make_room_for_the_names_of_operators(tmp_path: Path) -> None:
    name = "core::conv2d_weight_backward"
    SegmentWriter().add([Range(name, 1e-3, 9, self_s=1e-3, bytes=10**6)]).write(tmp_path)
    headings, row = top(tmp_path, columns=80)[1:3]
    assert row.split()[0] == name
    assert {"self", "p99"} <= {*headings.split()}
    assert "p95" in top(tmp_path, "--sort", "p95", columns=80)[1]


def test_the_footer_has_the_base_of_the_percentages(tmp_path: Path) -> None:
    SegmentWriter(dropped_count=7).add([OUTER, INNER]).write(tmp_path)
    text = "\n".join(top(tmp_path))
    assert "% of the 400 ms spent in operators" in text
    assert "samples 400 | sampling every range | dropped 7 | overhead" in text


def test_the_footer_has_the_cpu_time_of_observed_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        processor_time, "of_threads", lambda pid, _: {pid: ProcessorTime(12 * 10**9)}
    )
    monkeypatch.setattr(processor_time, "of_process", lambda pid: ProcessStat())
    SegmentWriter().add([OUTER, INNER]).write(tmp_path)
    assert "over all threads; CPU time: 12.0 s" in "\n".join(top(tmp_path))
    assert json.loads("\n".join(top(tmp_path, "--json")))["cpu_s"] == 12.0


def test_unknown_self_times_are_dashes_and_the_footer_says_so(tmp_path: Path) -> None:
    SegmentWriter(sampling_prob_ppt=10**10).add([Range("a", 1.0, 2, 100.0)]).write(tmp_path)
    text = top(tmp_path, columns=120)
    (row,) = (line for line in text if line.startswith("a "))
    assert "-" in row.split()
    assert any("the sum of all total times" in line for line in text)
    assert any("sampling 1 % of ranges" in line for line in text)


def test_estimates_are_marked_as_estimates(tmp_path: Path) -> None:
    SegmentWriter(window_ns=2 * 10**6, period_ns=10**9).add([INNER]).write(tmp_path)
    assert "% of an estimated 300 ms spent in operators" in "\n".join(top(tmp_path))


def test_an_empty_table_says_whether_nothing_ran(tmp_path: Path) -> None:
    writer = SegmentWriter(window_ns=2 * 10**6, period_ns=10**9)
    writer.write(tmp_path)
    assert "no operator was sampled; `opscope run --sampling 1`" in "\n".join(top(tmp_path))
    writer.header.update(window_ns=0, period_ns=0)
    writer.write(tmp_path)
    assert "no operator ran" in "\n".join(top(tmp_path))


def test_rows_are_sorted_and_limited(tmp_path: Path) -> None:
    SegmentWriter().add([OUTER, INNER, Range("z", 1e-6, self_s=1e-6)]).write(tmp_path)
    ops = [line.split()[0] for line in top(tmp_path, "--sort", "calls", "--limit", "2")[2:4]]
    head, tail = ops[1].split("…")
    assert ops[0] == "numpy::add"
    assert OUTER.op.startswith(head) and OUTER.op.endswith(tail) and len(tail) > 8
    assert "1 more operator" in "\n".join(top(tmp_path, "--limit", "2"))


def test_allocation_is_a_column_where_any_is_known_and_sorts(tmp_path: Path) -> None:
    writer = SegmentWriter().add([OUTER, INNER])
    writer.write(tmp_path)
    assert "alloc/s" not in "".join(top(tmp_path, columns=120))
    writer.add([Range("allocates", 1e-6, 2, self_s=1e-6, bytes=10**9)]).write(tmp_path)
    for by in ("operator", "process"):
        text = top(tmp_path, "--sort", "bytes", "--by", by, columns=120)
        assert "alloc/s" in text[1]
        assert "allocates" in text[2] and text[2].rstrip().endswith("B")
        assert text[3].rstrip().endswith("-")
        assert max(map(len, text)) <= 120


def test_one_process_can_be_picked(tmp_path: Path) -> None:
    SegmentWriter().add([INNER]).write(tmp_path)
    SegmentWriter(Process(1, start_of(1))).add([Range("elsewhere", 1.0)]).write(tmp_path)
    text = "\n".join(top(tmp_path, "--pid", str(os.getpid())))
    assert "numpy::add" in text
    assert "elsewhere" not in text


def test_rows_by_labels(tmp_path: Path) -> None:
    names = [("model_id", "resnet50"), ("tenant", "a")]
    for labels in ((), (names[0],), tuple(names)):
        SegmentWriter().add([Range("core::add", 1e-3, 9, self_s=1e-3, labels=labels)]).write(
            tmp_path
        )
    found = [line.split("core::add")[0].strip() for line in top(tmp_path, "--by", "labels")[2:5]]
    assert sorted(found) == ["-", "model_id=resnet50", "model_id=resnet50, tenant=a"]
    assert len([line for line in top(tmp_path) if "core::add" in line]) == 1


def test_without_observed_processes_there_is_a_hint(tmp_path: Path) -> None:
    assert top(tmp_path) == ["no process is observed; start one with: opscope run -- COMMAND"]


def test_numbers_have_three_digits_and_a_unit() -> None:
    assert [seconds(value) for value in (0.0, 3e-9, 1.5e-6, 0.9996e-3, 0.0123, 1.0, 1234.5)] == [
        *["0 ns", "3 ns", "1.50 µs", "1.00 ms", "12.3 ms", "1.00 s", "1,234 s"],
    ]
    assert [rate(value) for value in (0.0, 7.25, 999.6, 12_345.0, 3.2e6, 1.5e9)] == [
        *["0.00", "7.25", "1.00k", "12.3k", "3.20M", "1.50G"],
    ]
    assert seconds(float("nan")) == "-"


def test_ps_tells_observed_refused_armed_and_other_processes_apart(tmp_path: Path) -> None:
    def start(**environ: str) -> subprocess.Popen[bytes]:
        code = "import sys; print(flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-s", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    observed, refused, armed, other = start(), start(), start(OPSCOPE_ATTACH="1"), start()
    with observed, refused, armed, other:
        writer = SegmentWriter(Process(observed.pid, start_of(observed.pid)))
        labels = (("model_id", "resnet"),)
        writer.add([Range("a", 1e-3, labels=labels)])
        writer.notes({"program": "train.py", "service.name": "training"})
        writer.notes({"bridge.numpy": "attached", "bridge.torch": "version 1.0 is not known"})
        writer.notes({"torch.device_type": "cuda", "torch.without": "shapes (a reason)"})
        writer.write(tmp_path)
        entry = f"{refused.pid}-{start_of(refused.pid)}.why"
        (tmp_path / entry).symlink_to("5:recorder:no space")
        found = {line.pid: line for line in lines((str(tmp_path),), writer_now(writer))}
    assert found[observed.pid].program == "train.py"
    state = found[observed.pid].state
    assert state.startswith("attached as training; bridges: numpy, torch not: version 1.0")
    assert "; torch without shapes (a reason); torch times on cuda: of dispatch; since " in state
    assert state.endswith("every range; overhead 0.00 %; model_id=resnet")
    assert found[refused.pid].state == "not attached: no space (recorder)"
    assert found[armed.pid].state == ARMED
    assert found[other.pid].state == f"not attached: {NOT_STARTED_BY_US}"
    assert os.getpid() not in found


def writer_now(writer: SegmentWriter) -> int:
    return int(writer.header.get("created_unix_ns", 0)) + 2 * 10**18


def test_ps_shows_the_budget_and_the_overhead(tmp_path: Path) -> None:
    writer = SegmentWriter(overhead_budget_ppb=5 * 10**6, overhead_ppb=10**6)
    writer.header["sampling_prob_ppt"] = 68_107_612_345
    writer.write(tmp_path)
    (line,) = (one for one in lines((str(tmp_path),), writer_now(writer)) if one.pid == os.getpid())
    assert "6.81 % of ranges; overhead 0.00 % (recently 0.10 % of CPU time, at most 0.50 %)" in (
        line.state
    )


@pytest.mark.parametrize("seen", [1, 0], ids=["looked into", "may not be looked into"])
def test_ps_lists_a_process_of_another_pid_namespace_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: int
) -> None:
    code = "import sys; print(flush=True); sys.stdin.read()"
    command, pipe = [sys.executable, "-s", "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as inner:
        assert inner.stdout is not None
        inner.stdout.readline()
        start = start_of(inner.pid)
        there = {inner.pid: Inner(seen, 7, start)}
        monkeypatch.setattr(pid_namespaces, "look_into", there.get)
        SegmentWriter(Process(7, start, pid_namespace=1)).write(tmp_path)
        found = {line.pid: line for line in lines((str(tmp_path),), 2 * 10**18)}
        assert 7 not in found
        assert found[inner.pid].state.startswith("attached as unknown; pid 7 of another namespace")
        assert (found[inner.pid].facts["pid_in_namespace"], found[inner.pid].pid) == (7, inner.pid)


def test_ps_says_where_a_pid_is_that_of_its_own_namespace(tmp_path: Path) -> None:
    SegmentWriter(Process(7, 1, pid_namespace=1)).write(tmp_path)
    found = {line.pid: line for line in lines((str(tmp_path),), 2 * 10**18)}
    assert found[7].state.startswith("attached as unknown; pid of another namespace")


def test_ps_finds_the_reason_of_a_process_by_its_pid_in_its_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    code = "import sys; print(flush=True); sys.stdin.read()"
    command, pipe = [sys.executable, "-s", "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as inner:
        assert inner.stdout is not None
        inner.stdout.readline()
        start = start_of(inner.pid)
        monkeypatch.setattr(pid_namespaces, "look_into", {inner.pid: Inner(0, 7, start)}.get)
        (tmp_path / f"7-{start}.why").symlink_to("5:denied:pip: deny list")
        found = {line.pid: line for line in lines((str(tmp_path),), 2 * 10**18)}
        assert found[inner.pid].state == "not attached: pip: deny list (denied)"


def test_ps_prints_a_table(tmp_path: Path) -> None:
    result = run("ps", "--directory", str(tmp_path))
    assert result.exit_code == 0
    assert result.output.split()[:4] == ["pid", "user", "program", "state"]


def test_ps_tells_scripts_the_same(tmp_path: Path) -> None:
    writer = SegmentWriter(overhead_budget_ppb=5 * 10**6, overhead_ppb=10**6)
    writer.add([Range("a", 1e-3, labels=(("model_id", "resnet"),))])
    writer.notes({"program": "train.py", "service.name": "training", "bridge.numpy": "attached"})
    writer.write(tmp_path)
    command = [sys.executable, "-s", "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
    ) as refused:
        assert refused.stdout is not None
        refused.stdout.readline()
        entry = f"{refused.pid}-{start_of(refused.pid)}.why"
        (tmp_path / entry).symlink_to("5:recorder:no space")
        result = run("ps", "--json", "--directory", str(tmp_path))
    assert result.exit_code == 0
    found = {one["pid"]: one for one in json.loads(result.output)["processes"]}
    observed = found[os.getpid()]
    assert observed["attached"] is True
    assert (observed["program"], observed["service"]) == ("train.py", "training")
    assert observed["bridges"] == {"numpy": "attached"}
    assert observed["labels"] == ["model_id=resnet"]
    assert (observed["recent_overhead"], observed["overhead_budget"]) == (0.001, 0.005)
    assert observed["sampling"] == "every range"
    refusal = {key: found[refused.pid][key] for key in ("attached", "code", "why")}
    assert refusal == {"attached": False, "code": "recorder", "why": "no space"}


def test_commands_are_found_by_file_and_listed() -> None:
    listed = run("--help").output
    for name in ("agent", "top", "ps"):
        assert f"\n  {name} " in listed
    assert run("nothing").exit_code == 2


def test_an_unforeseen_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.delenv("OPSCOPE_DEBUG", raising=False)
    monkeypatch.setattr("opscope.config.load", fail)
    result = run("top", "--once")
    assert result.exit_code == 1
    assert (
        result.output == "Error: ZeroDivisionError: by zero; OPSCOPE_DEBUG=1 shows the traceback\n"
    )
    monkeypatch.setenv("OPSCOPE_DEBUG", "1")
    assert isinstance(run("top", "--once").exception, ZeroDivisionError)


def test_a_setting_that_cannot_be_used_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCOPE_LISTEN", "nowhere")
    result = run("agent")
    assert result.exit_code == 1
    assert result.output == "Error: OPSCOPE_LISTEN='nowhere': must be HOST:PORT\n"
