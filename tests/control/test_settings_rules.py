"""The settings file as `opscope set` changes it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from opscope.attachment.settings_file import NAME, RESET, Rule, matches, rules
from opscope.cli._group import main
from opscope.control.settings_rules import changed, for_service, read_rules, write_rules
from opscope.control.shadowed import thinned
from opscope.errors import OpscopeError
from opscope.record.settings_change import SettingsChange, parse


def _rules(*texts: str) -> list[Rule]:
    return [Rule(*text.split(" ")) for text in texts]


def test_a_change_takes_the_place_of_an_earlier_one() -> None:
    found = changed([], "web*", parse(["sampling=0.5", "labels=a"]))
    assert found == _rules("sampling=0.5 web*", "labels=a web*")
    found = changed(found, "db", parse(["sampling=0.1"]))
    found = changed(found, "web*", parse(["windows=1ms/2ms"]))
    assert found == _rules("labels=a web*", "sampling=0.1 db", "windows=1ms/2ms web*")


def test_a_rule_for_all_replaces_rules_for_single_services() -> None:
    found = _rules("sampling=0.5 web", "labels=a web", "sampling=1 *")
    found = changed(found, "*", parse(["sampling=windows"]))
    assert found == _rules("labels=a web", "sampling=windows *")


def test_a_reset_is_as_if_nothing_had_been_set() -> None:
    found = _rules("sampling=0.5 web", "labels=a *")
    assert changed(found, "*", None) == []
    assert changed(found, "web", None) == _rules("labels=a *", "reset web")
    assert changed(_rules("sampling=0.5 web"), "web", None) == []
    assert for_service(found, "db") == _rules("labels=a *")


def test_written_rules_read_back_and_are_readable_for_all(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    written = [Rule("sampling=0.5", "my service"), Rule("labels=", "*")]
    before = os.umask(0o077)
    try:
        write_rules(str(tmp_path), written)
    finally:
        os.umask(before)
    assert read_rules(str(tmp_path)) == written
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == [NAME]
    write_rules(str(tmp_path), [])
    write_rules(str(tmp_path), [])
    assert os.listdir(tmp_path) == []
    assert read_rules(str(tmp_path / "none")) == []


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / NAME).symlink_to(target)
    with pytest.raises(OpscopeError, match=f"{NAME}: "):
        read_rules(str(tmp_path))
    write_rules(str(tmp_path), _rules("sampling=1 *"))
    assert target.read_text() == "mine"
    assert read_rules(str(tmp_path)) == _rules("sampling=1 *")


def test_a_directory_that_others_may_write_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(OpscopeError, match="other users can write to"):
        write_rules(str(tmp_path), _rules("sampling=1 *"))


BAD = ["a\nenabled=false *", "a\rb", "a\x85b", "a\u2028b", "a\x1b[2J", "a\udcff", " a", "a ", ""]


@pytest.mark.parametrize("glob", BAD)
def test_a_glob_that_would_not_read_back_is_refused(tmp_path: Path, glob: str) -> None:
    tmp_path.chmod(0o700)
    words = ["set", "--directory", str(tmp_path), "--service", glob, "sampling=0.5"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, os.listdir(tmp_path)) == (1, []), done.output
    assert "is not a valid glob" in done.output
    with pytest.raises(OpscopeError, match="is not a valid glob"):
        write_rules(str(tmp_path), [Rule("sampling=0.5", glob)])
    for change in (parse(["sampling=0.5"]), None):
        with pytest.raises(OpscopeError, match="is not a valid glob"):
            changed([], glob, change)


@given(st.text(max_size=20))
def test_an_accepted_glob_is_one_rule(glob: str) -> None:
    try:
        (rule,) = changed([], glob, parse(["sampling=0.5"]))
    except OpscopeError:
        return
    assert rules(f"{rule.word} {rule.service}\n") == [Rule("sampling=0.5", glob)]


def test_rules_that_later_ones_hide_are_dropped() -> None:
    found = _rules("sampling=0.5 web-1", "labels=a web-1", "enabled=false db")
    assert changed(found, "web-*", parse(["windows=1ms/2ms"])) == _rules(
        "labels=a web-1", "enabled=false db", "windows=1ms/2ms web-*"
    )
    assert changed(found, "w*", None) == _rules("enabled=false db")
    both = changed(found, "web*", parse(["sampling=1", "labels=none"]))
    assert both == _rules("enabled=false db", "sampling=1 web*", "labels= web*")
    assert changed(_rules("mode=new web"), "*", parse(["sampling=1"]))[0].key == "mode"


def test_their_number_is_bounded_and_the_error_has_a_remedy() -> None:
    found: list[Rule] = []
    for number in range(100):
        found = changed(found, f"job-{number}", parse(["sampling=0.5"]))
    assert len(found) == 100
    with pytest.raises(OpscopeError, match=r"101 rules .* \(at most 100\): .*--reset"):
        changed(found, "one more", parse(["sampling=0.5"]))
    assert len(changed(found, "job-7", parse(["sampling=0.1"]))) == 100
    assert changed(found, "job-*", None) == []
    with pytest.raises(OpscopeError, match="may have at most 256 characters"):
        changed([], "x" * 257, None)


GLOBS = st.text("ab*?[]!-", min_size=1, max_size=4)
WORDS = st.sampled_from(
    ["sampling=0.5", "sampling=windows", "windows=1ms/2ms", "labels=a", "labels=", RESET, "x=1"]
)


def _in_force(found: list[Rule], service: str) -> SettingsChange:
    """As attachment/settings_file.py applies them."""
    change = SettingsChange()
    for rule in found:
        if matches(service, rule.service):
            if rule.word == RESET:
                change = SettingsChange()
            elif rule.key != "x":
                change = parse([rule.word]).over(change)
    return change


@given(st.lists(st.builds(Rule, WORDS, GLOBS), max_size=8), st.text("ab", max_size=4))
def test_dropped_rules_change_nothing_for_any_service(found: list[Rule], service: str) -> None:
    kept = thinned(found)
    assert _in_force(kept, service).words() == _in_force(found, service).words()
    assert thinned(kept) == kept


def test_rules_and_directories_of_another_user_command_no_terminal(tmp_path: Path) -> None:
    """Root shows the rules of all users; the names of their directories are theirs too."""
    title = "\x1b]0;owned\x07"
    own = f"opscope-{os.geteuid()}"
    for name in (own, f"opscope-{title}"):
        (tmp_path / name).mkdir(mode=0o700)
        text = f"sampling=0.5{title} *\nlabels=a {title}*\nlabels=b good\n"
        (tmp_path / name / NAME).write_text(text)
        (tmp_path / name / NAME).chmod(0o644)
    environ = {"OPSCOPE_DIR": str(tmp_path / own)}
    shown = CliRunner().invoke(main, ["set", "--show"], env=environ).output
    assert "good: labels=b" in " ".join(shown.split())
    assert "\x1b" not in shown and "\x07" not in shown
    done = CliRunner().invoke(main, ["set", "--service", "x", "labels=c"], env=environ)
    assert (done.exit_code, "\x1b" in done.output) == (0, False)
    assert read_rules(str(tmp_path / own)) == _rules("labels=b good", "labels=c x")
