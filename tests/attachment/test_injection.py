"""The injection rules: an observed program behaves as before in every visible respect."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import _cffi_backend
import pytest

from opscope import _native, config
from opscope.attachment import entry
from opscope.attachment.launch import SITE, environment

from .conftest import Bench

# What a program can see of its interpreter, as JSON.
LOOK = """
import sys, os, json
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ImportHook"]
print(json.dumps({
    "modules": sorted(sys.modules),
    "path": sys.path,
    "cache": sorted(sys.path_importer_cache),
    "finders": [str(getattr(f, "__name__", type(f))) for f in sys.meta_path],
    "hooks": [str(h) for h in sys.path_hooks[:1]],
    "environ": {k: v for k, v in os.environ.items()},
    "argv": sys.argv,
    "files": len(os.listdir("/proc/self/fd")),
    "threads": len(os.listdir("/proc/self/task")),
}))
"""


def same(
    bench: Bench, *arguments: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Runs bare and observed, sees that both behave alike, and returns the observed one."""
    # Python 2 would leave its bytecode beside the source.
    bare = bench.run(*arguments, python=python, observed=False, PYTHONDONTWRITEBYTECODE="1")
    observed = bench.run(*arguments, python=python, PYTHONDONTWRITEBYTECODE="1")
    assert (observed.returncode, observed.stdout, observed.stderr) == (
        bare.returncode,
        bare.stdout,
        bare.stderr,
    )
    return observed


@pytest.mark.parametrize("flags", [(), ("-S",), ("-E",), ("-I",), ("-s",), ("-O",), ("-B",)])
def test_a_program_without_numpy_sees_the_same_world(bench: Bench, flags: tuple[str, ...]) -> None:
    bare = json.loads(bench.run(*flags, "-c", LOOK, observed=False).stdout)
    observed = json.loads(bench.run(*flags, "-c", LOOK).stdout)
    assert observed["environ"].pop("PYTHONPATH").split(":")[0] == SITE
    assert observed["environ"].pop("OPSCOPE_ATTACH") == "1"
    del observed["environ"]["OPSCOPE_DIR"], bare["environ"]["PYTHONPATH"]
    if flags == ("-S",):
        # Without site no sitecustomize runs that could remove the entry.
        observed["path"].remove(SITE)
        observed["cache"] = [path for path in observed["cache"] if path != SITE]
    assert observed == bare
    assert not bench.segments.exists()


@pytest.mark.parametrize("flags", [(), ("-X", "dev"), ("-W", "error")])
def test_output_and_exit_status_are_the_programs_own(bench: Bench, flags: tuple[str, ...]) -> None:
    script = bench.script("work.py", "import numpy, sys\nprint('out')\nsys.exit(7)\n")
    assert same(bench, *flags, script).returncode == 7


def test_an_uncaught_error_is_unchanged(bench: Bench) -> None:
    same(bench, bench.script("work.py", "import numpy\nraise ValueError('own')\n"))


def test_a_missing_numpy_raises_import_error(bench: Bench) -> None:
    same(bench, "-I", "-S", "-c", "import numpy")


def test_other_interpreters_run_unchanged(bench: Bench, other_python: str) -> None:
    program = "import sys; import numpy; sys.stdout.write(numpy.__version__); sys.exit(3)"
    done = same(bench, "-c", program, python=other_python)
    assert (done.returncode, done.stdout) == (3, "99.0")


def test_an_interpreter_without_opscope_writes_down_that_it_is_missing(
    bench: Bench, bare_python: str
) -> None:
    done = bench.start([bare_python, "-c", "import numpy"], bench.stub_environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bench.codes() == ["opscope-missing"]


def test_a_failed_start_leaves_no_half_imported_opscope(bench: Bench, bare_python: str) -> None:
    program = "import numpy, sys; print([m for m in sys.modules if m.split('.')[0] == 'opscope'])"
    done = bench.start([bare_python, "-c", program], bench.stub_environment())
    assert done.stdout == "[]\n"


def test_another_package_of_the_name_is_never_run(bench: Bench, bare_python: str) -> None:
    bench.script("stub/opscope/__init__.py", "raise SystemExit('was run')\n")
    done = bench.start([bare_python, "-c", "import numpy"], bench.stub_environment())
    assert (done.returncode, done.stderr) == (0, "")
    ((code, text),) = bench.reasons()
    assert code == "opscope-missing"
    assert "another package has this name" in text


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('own')",
        "import no_such_module",
        "raise ImportError('own', name='sitecustomize')",
        "import sys; del sys.modules['sitecustomize']",
    ],
)
def test_a_failing_sitecustomize_fails_unchanged(bench: Bench, text: str) -> None:
    bench.script("stub/sitecustomize.py", text)
    same(bench, "-c", "import sys; print('sitecustomize' in sys.modules)")


def test_an_exit_in_the_users_sitecustomize_is_one(bench: Bench) -> None:
    bench.script("stub/sitecustomize.py", "raise SystemExit(4)")
    bare = bench.run("-c", "pass", observed=False)
    assert bench.run("-c", "pass").returncode == bare.returncode != 0


def test_a_program_that_denies_itself_the_framework_is_not_disturbed(bench: Bench) -> None:
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "try:\n    import numpy\nexcept ImportError as error:\n    print(error)"
    )
    same(bench, "-c", program)


def test_numpy_is_unchanged_seen_from_the_program(bench: Bench) -> None:
    program = (
        "import numpy, sys; print(type(numpy.__loader__), numpy.__spec__.loader is "
        "numpy.__loader__, sorted(vars(numpy.__loader__)), sorted(vars(numpy)))"
    )
    same(bench, "-c", program)


def test_a_numpy_that_a_path_file_has_imported_already_is_attached_to(bench: Bench) -> None:
    venv.create(bench.directory / "venv", symlinks=True)
    (packages,) = (bench.directory / "venv" / "lib").glob("python*/site-packages")
    (packages / "own.pth").write_text("import numpy\n")
    python = str(bench.directory / "venv" / "bin" / "python")
    done = bench.start([python, "-c", "pass"], bench.stub_environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert bench.codes() == ["opscope-missing"]


def test_an_interpreter_with_cffi_alone_uses_the_opscope_beside_the_payload(
    bench: Bench, bare_python: str
) -> None:
    package = bench.directory / "elsewhere" / "opscope"
    shutil.copytree(Path(SITE).parent.parent, package, ignore=shutil.ignore_patterns("*.so"))
    for library in Path(_native.__file__).parent.glob("*.so"):
        shutil.copy(library, package)
    (bench.stub / Path(_cffi_backend.__file__).name).symlink_to(_cffi_backend.__file__)
    environ = bench.stub_environment()
    environ["PYTHONPATH"] = f"{package}/attachment/site:{bench.stub}"
    program = (
        "import numpy, opscope, sys;"
        "print(opscope.attach_status().attached, [p for p in sys.path if 'elsewhere' in p])"
    )
    done = bench.start([bare_python, "-c", program], environ)
    assert (done.stdout, done.stderr) == ("True []\n", "")
    assert len(bench.segment_files()) == 1


def test_the_kill_switch_leaves_opscope_unimported(bench: Bench) -> None:
    program = "import numpy, sys; print([m for m in sys.modules if m.split('.')[0] == 'opscope'])"
    assert bench.run("-c", program, OPSCOPE_ENABLED="0").stdout == "[]\n"
    assert bench.codes() == ["disabled"]
    assert bench.segment_files() == []


def test_the_kill_switch_knows_the_words_of_the_configuration() -> None:
    for word in entry._OFF:
        assert not config.load({"OPSCOPE_ENABLED": word}, "/none").enabled


def test_a_denied_program_is_left_alone_unless_forced(bench: Bench) -> None:
    script = bench.script("pip3.py", "import numpy")
    same(bench, script)
    assert bench.reasons() == [("denied", "pip3: deny list")]
    bench.run(script, OPSCOPE_ENABLED="force")
    assert len(bench.segment_files()) == 1


def test_an_excluded_program_is_left_alone_though_included(bench: Bench) -> None:
    script = bench.script("work.py", "import numpy")
    bench.run(script, OPSCOPE_INCLUDE="*", OPSCOPE_EXCLUDE="w*.py")
    assert bench.reasons() == [("denied", "work.py: exclude w*.py")]


def test_a_bad_setting_is_written_down_and_the_program_goes_on(bench: Bench) -> None:
    done = bench.run("-c", "import numpy", OPSCOPE_SAMPLING="2")
    assert (done.returncode, done.stderr) == (0, "")
    ((code, text),) = bench.reasons()
    assert code == "config"
    assert "OPSCOPE_SAMPLING='2'" in text


def test_a_directory_that_cannot_be_made_is_written_down_elsewhere(bench: Bench) -> None:
    directory = f"/proc/opscope-{os.getpid()}"
    done = bench.run("-c", "import numpy", OPSCOPE_DIR=directory)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bench.reasons_elsewhere(directory) == ["recorder"]


def test_without_room_for_a_segment_the_program_goes_on(bench: Bench) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    done = subprocess.run(
        [sys.executable, "-B", "-c", "import numpy; print('on')"],
        env=bench.stub_environment(),
        preexec_fn=no_room,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")
    assert bench.codes() == ["recorder"]
    assert bench.segment_files() == []


@pytest.mark.parametrize("redirect", ["2>&-", ">&-", "<&-", "0<&- >&- 2>&-"])
@pytest.mark.parametrize("sampling", ["1", "2"])
def test_closed_standard_streams_do_no_harm(bench: Bench, redirect: str, sampling: str) -> None:
    environ = bench.stub_environment(OPSCOPE_DEBUG="1", OPSCOPE_SAMPLING=sampling)
    shell = f'exec "{sys.executable}" -c "import numpy; raise SystemExit(6)" {redirect}'
    assert bench.start(["sh", "-c", shell], environ).returncode == 6


def test_debug_says_on_standard_error_what_happens(bench: Bench) -> None:
    assert "opscope: attached, " in bench.run("-c", "import numpy", OPSCOPE_DEBUG="1").stderr
    denied = bench.run("-c", "import numpy", OPSCOPE_DEBUG="1", OPSCOPE_EXCLUDE="*")
    assert "opscope: denied: -c: exclude *" in denied.stderr


def test_without_the_mark_nothing_happens(bench: Bench) -> None:
    environ = bench.stub_environment()
    del environ["OPSCOPE_ATTACH"]
    program = "import numpy, sys; print([f for f in sys.meta_path if 'Hook' in str(f)])"
    assert bench.start([sys.executable, "-c", program], environ).stdout == "[]\n"
    assert not bench.segments.exists()


def test_python_children_are_observed_too(bench: Bench) -> None:
    script = bench.script(
        "work.py",
        "import subprocess, sys, numpy\n"
        "subprocess.run([sys.executable, '-c', 'import numpy'], check=True)\n",
    )
    same(bench, script)
    assert len(bench.segment_files()) == 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_are_observed_too(bench: Bench, method: str) -> None:
    script = bench.script(
        "work.py",
        "import multiprocessing, numpy, opscope\n"
        "def work(n):\n"
        "    return opscope.attach_status()\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        results = pool.map(work, range(4), chunksize=1)\n"
        "    assert all(result.attached for result in results), results\n"
        "    assert opscope.attach_status().segment not in {r.segment for r in results}\n",
    )
    done = bench.run(script)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_relative_python_path_keeps_working(bench: Bench) -> None:
    bench.script("own/own_module.py", "")
    environ = environment({**bench.bare, "PYTHONPATH": "own"})
    assert bench.start([sys.executable, "-c", "import own_module"], environ).returncode == 0


def test_the_payload_is_plain_enough_for_any_python(other_python: str) -> None:
    program = "import sys, ast; ast.parse(open(sys.argv[1]).read())"
    path = str(Path(SITE) / "sitecustomize.py")
    assert subprocess.run([other_python, "-c", program, path]).returncode == 0
