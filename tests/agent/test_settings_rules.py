"""The settings file as `opscope set` changes it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from opscope.agent.settings_rules import changed, for_service, read_rules, write_rules
from opscope.attachment.settings_file import NAME, Rule
from opscope.errors import OpscopeError
from opscope.record.wish import parse


def _rules(*texts: str) -> list[Rule]:
    return [Rule(*text.split(" ")) for text in texts]


def test_a_wish_takes_the_place_of_an_earlier_one() -> None:
    found = changed([], "web*", parse(["sampling=0.5", "labels=a"]))
    assert found == _rules("sampling=0.5 web*", "labels=a web*")
    found = changed(found, "db", parse(["sampling=0.1"]))
    found = changed(found, "web*", parse(["windows=1ms/2ms"]))
    assert found == _rules("labels=a web*", "sampling=0.1 db", "windows=1ms/2ms web*")


def test_for_all_means_over_what_single_ones_had() -> None:
    found = _rules("sampling=0.5 web", "labels=a web", "sampling=1 *")
    found = changed(found, "*", parse(["sampling=windows"]))
    assert found == _rules("labels=a web", "sampling=windows *")


def test_a_reset_is_as_if_nothing_had_been_set() -> None:
    found = _rules("sampling=0.5 web", "labels=a *")
    assert changed(found, "*", None) == []
    assert changed(found, "web", None) == _rules("labels=a *", "reset web")
    assert changed(_rules("sampling=0.5 web"), "web", None) == []
    assert for_service(found, "db") == _rules("labels=a *")


def test_what_is_written_is_read_back_and_is_for_all_to_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    rules = [Rule("sampling=0.5", "my service"), Rule("labels=", "*")]
    before = os.umask(0o077)
    try:
        write_rules(str(tmp_path), rules)
    finally:
        os.umask(before)
    assert read_rules(str(tmp_path)) == rules
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
    with pytest.raises(OpscopeError, match="can be written by others"):
        write_rules(str(tmp_path), _rules("sampling=1 *"))
