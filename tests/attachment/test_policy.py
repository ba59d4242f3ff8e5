"""Which programs are observed, which are not, and which reason wins."""

from __future__ import annotations

import pytest

from opscope import config
from opscope.attachment import ledger, policy


def decide(*names: str, asked: bool = False, **variables: str) -> str | None:
    environ = {f"OPSCOPE_{key.upper()}": value for key, value in variables.items()}
    refusal = policy.refusal(config.load(environ, "/none"), names[0], names, asked=asked)
    if refusal is None:
        return None
    assert refusal[0] in ledger.CODES
    return refusal[0]


@pytest.mark.parametrize(
    "name",
    ["pip", "pip3.11", "pip._internal", "uv", "conda", "py_compile", "ensurepip", "opscope", "apt"],
)
def test_programs_that_install_or_build_are_left_alone(name: str) -> None:
    assert decide(name) == "denied"


@pytest.mark.parametrize("name", ["train.py", "pipeline", "gunicorn", "python", "-c"])
def test_other_programs_are_observed(name: str) -> None:
    assert decide(name) is None


def test_force_overrides_the_deny_list() -> None:
    assert decide("pip", enabled="force") is None


def test_a_program_that_asks_is_observed_though_denied_and_not_included() -> None:
    assert decide("opscope", asked=True, include="other") is None


def test_only_included_programs_are_observed() -> None:
    assert decide("/srv/train.py", "train.py", include="/srv/*") is None
    assert decide("/opt/train.py", "train.py", include="/srv/*") == "not-included"


@pytest.mark.parametrize("enabled", ["1", "force"])
@pytest.mark.parametrize("asked", [False, True])
def test_exclude_wins_over_include_force_and_asking(enabled: str, asked: bool) -> None:
    assert decide("a.py", asked=asked, include="a*", exclude="*.py", enabled=enabled) == "denied"


@pytest.mark.parametrize("asked", [False, True])
def test_the_kill_switch_wins_over_all(asked: bool) -> None:
    assert decide("train.py", asked=asked, enabled="0", include="*") == "disabled"


def test_free_threaded_python_before_3_14_is_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.abiflags", "t")
    monkeypatch.setattr("sys.version_info", (3, 13, 0, "final", 0))
    assert decide("train.py", asked=True) == "unsupported-python"


def test_a_process_with_another_users_rights_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not policy.other_user()
    monkeypatch.setattr("os.geteuid", lambda: 12345678)
    assert policy.other_user()
