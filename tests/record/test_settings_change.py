"""Words of `opscope set` and settings files: their meaning, and errors for invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.errors import ConfigError
from opscope.record import recorder, settings_change
from opscope.record.settings_change import (
    ALONE,
    LABELS,
    MAX_OVERHEAD,
    SAMPLING,
    WINDOWS,
    SettingsChange,
    parse,
)


def test_words_become_numbers() -> None:
    assert parse(["sampling=0.25"]) == SettingsChange(
        given=SAMPLING, sampling_prob_ppt=250_000_000_000
    )
    assert parse(["sampling=windows"]) == SettingsChange(given=WINDOWS)
    windows = SettingsChange(given=WINDOWS, window_ns=2_000_000, period_ns=250_000_000)
    assert parse(["windows=2ms/250ms"]) == windows
    assert parse(["sampling=windows", "windows=0.002s/250000us"]) == windows
    assert parse(["max-overhead=0.5%"]) == SettingsChange(
        given=MAX_OVERHEAD, max_overhead_ppb=5_000_000
    )
    assert parse(["max_overhead=off"]) == SettingsChange(given=MAX_OVERHEAD)
    assert parse(["labels=a, b"]) == SettingsChange(given=LABELS, label_keys="a,b")
    assert parse(["labels=none"]) == parse(["labels="]) == SettingsChange(given=LABELS)
    assert not parse(["enabled=false"]).enabled
    assert parse(["enabled=TRUE"]).enabled


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sampling"], "'sampling' is not KEY=VALUE"),
        (["smapling=1"], "enabled; did you mean sampling?"),
        (["speed=9"], "speed: no such setting; known: sampling, windows, max_overhead"),
        (["sampling=1.5"], "sampling='1.5': must be a probability from 0 to 1, or windows"),
        (["sampling=nan"], "must be a probability"),
        (["sampling=-0.1"], "must be a probability"),
        (["sampling=1e-13"], "above 0, at least 1e-12"),
        (["sampling=half"], "must be a probability"),
        (["sampling=1", "sampling=0"], "sampling is given twice: '1' and '0'"),
        (["sampling=1", "windows=1ms/2ms"], "cannot be combined"),
        (["windows=2ms"], "must be LENGTH/PERIOD with units, like windows=2ms/250ms"),
        (["windows=2/250"], "'2' is not a time; units: us, ms, s, min"),
        (["windows=2ms/2ms"], "the period must be longer than the window"),
        (["windows=0ms/2ms"], "the period must be longer than the window"),
        (["windows=-1ms/2ms"], "the period must be longer than the window"),
        (["windows=1ms/1e9s"], "at most 11 days"),
        (["windows=0.000001us/1s"], "both > 0"),
        (["max_overhead=0.5"], "must be a percentage like 0.5%, or off"),
        (["max_overhead=0%"], "must be a percentage"),
        (["max_overhead=101%"], "must be a percentage"),
        (["max_overhead=inf%"], "must be a percentage"),
        (["labels=a,b,c"], "at most 2 keys"),
        (["labels=a,a"], "'a' is given twice"),
        (["labels=a,"], "'' is not a valid key"),
        (["labels=a b"], "'a b' is not a valid key"),
        (["labels=" + "x" * 64], "1 to 63 bytes"),
        (["enabled=perhaps"], "must be true or false"),
    ],
)
def test_a_bad_word_is_refused_with_the_expected_form(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(words)
    assert said in str(caught.value)


def test_the_later_change_holds_where_both_say_something() -> None:
    both = parse(["labels=b", "enabled=false"]).over(parse(["labels=a", "sampling=0.5"]))
    assert both.words() == ["sampling=0.5", "labels=b", "enabled=false"]
    assert parse(["sampling=1"]).over(parse(["windows=1ms/2ms"])).words() == ["sampling=1"]
    assert parse(["windows=1ms/2ms"]).over(parse(["sampling=1"])).words() == ["windows=1ms/2ms"]
    assert SettingsChange(given=ALONE).over(both).words() == []


_KEY = st.text("abcdefgh_.", min_size=1, max_size=9)
_CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.booleans().map(lambda on: f"enabled={'true' if on else 'false'}"),
        "max_overhead": st.integers(1, 10**9).map(lambda ppb: f"max_overhead={ppb / 1e7:.9g}%"),
        "labels": st.lists(_KEY, max_size=2, unique=True).map(lambda k: f"labels={','.join(k)}"),
        "mode": st.one_of(
            st.integers(1, 10**12).map(lambda ppt: f"sampling={ppt / 1e12:.12g}"),
            st.tuples(st.integers(1, 10**6), st.integers(2, 10**6)).map(
                lambda t: f"windows={t[0]}us/{t[0] * t[1] / 1e3:.15g}ms"
            ),
            st.just("sampling=windows"),
        ),
    },
)


@given(_CHANGES)
def test_written_words_read_back_unchanged(words: dict[str, str]) -> None:
    found = parse(words.values())
    assert parse(found.words()) == found


def test_a_change_that_the_recorder_refuses_says_so(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match=r"sampling=0.5: .*"):
        settings_change.inherit(parse(["sampling=0.5"]))
    recorder.start(str(tmp_path))
    try:
        settings_change.inherit(parse(["sampling=0.5"]))
        with pytest.raises(ConfigError, match="enabled=true"):
            settings_change.inherit(SettingsChange(given=1 << 20 | 1))
    finally:
        recorder.stop(discard=True)
