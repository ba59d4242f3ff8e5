"""Typing errors get a suggestion, and shells complete commands and options."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opscope.cli._group import main

PROGRAMS = Path(sys.executable).parent


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAMS / "opscope"), *words],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("wrong", "right"), [("tpo", "top"), ("docter", "doctor"), ("bench-comp", "bench-compare")]
)
def test_an_unknown_command_gets_the_nearest_one(wrong: str, right: str) -> None:
    done = run(wrong)
    assert done.returncode == 2
    assert f"No such command '{wrong}'. Did you mean '{right}'?" in done.stderr


def test_a_command_that_is_near_none_gets_no_suggestion() -> None:
    done = run("xyzzy")
    assert "No such command 'xyzzy'." in done.stderr
    assert "mean" not in done.stderr


def test_an_unknown_option_gets_the_nearest_one() -> None:
    done = run("top", "--intervall", "3")
    assert done.returncode == 2
    assert "--interval" in done.stderr.replace("--intervall", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_that_of_the_shell(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"_OPSCOPE_COMPLETE={shell}_complete" in done.output
    by_variable = CliRunner().invoke(main, ["completion"], env={"SHELL": f"/bin/{shell}"})
    assert by_variable.output == done.output


def test_an_unknown_shell_is_refused() -> None:
    done = CliRunner().invoke(main, ["completion"], env={"SHELL": "/bin/tcsh"})
    assert done.exit_code == 1
    assert "bash, zsh, fish" in done.output


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("opscope do", {"doctor"}),
        ("opscope top --on", {"--once"}),
        ("opscope fleet st", {"stragglers"}),
    ],
)
def test_bash_completes(line: str, expected: set[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    words = line.split()
    script = f"""
PATH={PROGRAMS}:$PATH
eval "$(opscope completion bash)"
COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
_opscope_completion opscope
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        [bash, "--norc", "-c", script], capture_output=True, text=True, timeout=300
    )
    assert set(done.stdout.split()) == expected, done.stderr


def test_zsh_completes(tmp_path: Path) -> None:
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("no zsh")
    # Its completion system needs a terminal, so what it would show is printed.
    script = f"""
PATH={PROGRAMS}:$PATH
autoload -U compinit && compinit -D
eval "$(opscope completion zsh)"
print -l $_comps[opscope]
_describe() {{ print -l ${{completions_with_descriptions%%:*}} }}
compadd() {{ print -l $completions }}
words=(opscope fleet st) CURRENT=3
_opscope_completion
"""
    done = subprocess.run(
        [zsh, "-f", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.stdout.split() == ["_opscope_completion", "stragglers"], done.stderr


def test_fish_completes(tmp_path: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("no fish")
    script = "opscope completion fish | source; complete -C 'opscope top --on'"
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    done = subprocess.run(
        [fish, "--no-config", "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split("\t")[0] == "--once", done.stderr
