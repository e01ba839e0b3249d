"""Numbers to states: hysteresis, minimum length, and the interval in which a change lies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harness.devices.profiles.profile import load_profile
from harness.devices.wire.lines import LineRules
from harness.devices.wire.thresholds import StateChange, ThresholdState
from harness.model.bench import (
    ConsoleSettings,
    DeviceProfile,
    LevelState,
    LineMapping,
    ObservationKind,
    ScoreBlock,
    Threshold,
)
from harness.model.observation import Status, Wake
from harness.model.time import Stamp


def lamp(min_s: float = 0.0, hysteresis: float = 0.0, match: str = "") -> ThresholdState:
    low, high = ("A0", None, 200.0), ("A0", 500.0, None)
    states = (LevelState("off", (low,), min_s), LevelState("on", (high,), min_s))
    return ThresholdState(Threshold("lamp", match, states, (("A0", hysteresis),)))


def fed(rule: ThresholdState, values: Sequence[float], step_s: float = 0.1) -> list[StateChange]:
    """What readings at these steps give; the first one at 0 s."""
    changes = (rule.feed({"A0": value}, Stamp(number * step_s)) for number, value in enumerate(values))
    return [change for change in changes if change is not None]


def lines(changes: list[StateChange]) -> list[str]:
    return [change.line for change in changes]


def test_a_change_lies_between_the_reading_before_and_the_first_of_the_new_state() -> None:
    first, second = fed(lamp(), [10, 10, 10, 600, 600])
    assert first.line == "lamp at first: off"
    assert first.at == Stamp(0.0)
    assert second.line == "lamp: on, before: off"
    assert second.at.at_s == pytest.approx(0.25)
    assert second.at.error_s == pytest.approx(0.05)


def test_errors_of_the_readings_add_to_the_interval() -> None:
    rule = lamp()
    rule.feed({"A0": 10}, Stamp(1.0, 0.02))
    change = rule.feed({"A0": 600}, Stamp(1.5, 0.04))
    assert change is not None
    assert (change.at.at_s - change.at.error_s, change.at.at_s + change.at.error_s) == pytest.approx((0.98, 1.54))


def test_a_state_counts_after_its_minimum_length_with_the_time_of_its_first_reading() -> None:
    changes = fed(lamp(min_s=0.3), [10] * 5 + [600, 10, 10] + [600] * 4)
    assert lines(changes) == ["lamp at first: off", "lamp: on, before: off"]
    # The flash before may have been the beginning, so the last certain reading is the one before it.
    assert (changes[1].at.at_s, changes[1].at.error_s) == pytest.approx((0.6, 0.2))


def test_a_first_state_may_begin_anywhere_since_the_first_reading() -> None:
    (first,) = fed(lamp(min_s=0.25), [10, 10, 600, 600, 600, 600])
    assert first.line == "lamp at first: on"
    assert (first.at.at_s, first.at.error_s) == pytest.approx((0.1, 0.1))


def test_hysteresis_keeps_a_state_that_touches_another_one() -> None:
    states = (LevelState("off", (("A0", None, 100.0),), 0), LevelState("on", (("A0", 100.0, None),), 0))
    noisy = [90.0, 104.0, 98.0, 103.0, 120.0, 96.0, 85.0]
    plain = ThresholdState(Threshold("lamp", "", states))
    state = ThresholdState(Threshold("lamp", "", states, (("A0", 10.0),)))
    assert len(fed(plain, noisy)) == 5
    assert lines(fed(state, noisy)) == ["lamp at first: off", "lamp: on, before: off", "lamp: off, before: on"]


def test_thresholds_survive_the_files_of_a_session(tmp_path: Path) -> None:
    profile = load_profile("light_ring", beside=tmp_path)
    adapter = TypeAdapter(DeviceProfile)
    assert adapter.validate_json(adapter.dump_json(profile)).thresholds == profile.thresholds


@pytest.mark.parametrize(("low", "high", "near", "far"), [(0.0, 20.0, 357.0, 350.0), (340.0, 360.0, 3.0, 10.0)])
def test_the_hysteresis_of_a_hue_reaches_past_360_degrees(low: float, high: float, near: float, far: float) -> None:
    states = (LevelState("red", (("hue", low, high),), 0), LevelState("other", (), 0))
    rule = ThresholdState(Threshold("ring", "", states, (("hue", 5.0),)))
    changes = [rule.feed({"hue": hue}, Stamp(number)) for number, hue in enumerate(((low + high) / 2, near, far))]
    assert [change and change.state for change in changes] == ["red", None, "other"]


def test_a_hue_range_may_wrap_at_360_degrees() -> None:
    red = LevelState("red", (("hue", 340.0, 20.0),), 0)
    other = LevelState("other", (), 0)
    rule = ThresholdState(Threshold("ring", "", (other, red)))
    changes = [rule.feed({"hue": hue}, Stamp(number)) for number, hue in enumerate((350.0, 10.0, 180.0, 5.0))]
    assert [change.state if change else None for change in changes] == ["red", None, "other", "red"]


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("A0=513", {"A0": 513.0}),
        ("t 12 A0=-5.25 A1=7", {"A0": -5.25}),
        ("A0=513.", None),
        ("BA0=513", None),
        ("A0=five", None),
        ("A0=1e9999", None),
        ("", None),
    ],
)
def test_numbers_are_read_as_pairs(line: str, numbers: dict[str, float] | None) -> None:
    assert lamp().parse_numbers(line) == numbers


def test_threshold_expression_reads_numbers_from_log_lines() -> None:
    assert lamp(match=r"^light: (?P<A0>\S+) lx").parse_numbers("light: 480 lx") == {"A0": 480.0}
    assert lamp(match=r"^light: (?P<A0>\S+) lx").parse_numbers("light: inf lx") is None
    assert lamp(match=r"^light: (?P<A0>\S+) lx").parse_numbers("light: - lx") is None
    with pytest.raises(TimeoutError):
        lamp(match=r"(?P<A0>(x+x+)+)y").parse_numbers("x" * 5000)


def test_an_endless_threshold_expression_is_disabled() -> None:
    states = (LevelState("on", (("A0", 1.0, None),), 0.0),)
    threshold = Threshold("lamp", r"(?P<A0>\d+)(x+x+)+y", states, ())
    rules = LineRules((), ConsoleSettings(), "dev", thresholds=(threshold,))
    assert rules.apply("1xxy", "", Stamp(0.0))[-1].level
    for number in range(1, 4):
        rules.apply("1" + "x" * 5000, "", Stamp(float(number)))
    assert not rules.apply("1xxy", "", Stamp(4.0))[-1].level


def test_a_change_ends_a_block_of_scores_and_does_not_lose_it() -> None:
    scores = LineMapping(
        "^Predictions",
        ObservationKind.WAKE,
        more=(r"^ (?P<phrase>\w+): (?P<score>\S+)",),
        within_s=5,
        block=ScoreBlock(0.5),
    )
    light = LineMapping("^lamp: on", ObservationKind.STATUS, fields=(("state", "speaking"),))
    states = (LevelState("off", (("A0", None, 4),), 0.0), LevelState("on", (("A0", 5, None),), 0.0))
    rules = LineRules([scores, light], ConsoleSettings(), "dev", thresholds=[Threshold("lamp", "", states)])
    observations = [
        observation
        for text in ("A0=1", "Predictions", " yes: 0.9", "A0=9")
        for reading in rules.apply(text, text, Stamp(1.0))
        for observation in reading.observations
    ]
    wake, status = observations[-2:]
    assert isinstance(wake, Wake)
    assert isinstance(status, Status)
    assert (wake.phrase, wake.score) == ("yes", 0.9)


@settings(max_examples=25)
@given(st.lists(st.floats(0.2, 3.0), min_size=2, max_size=12), st.integers(0, 2**32 - 1))
def test_true_times_lie_within_the_stated_errors(lengths: list[float], seed: int) -> None:
    """A lamp that is switched at known times, read every 20 to 60 ms with noise, each reading up to 10 ms off."""
    rng = np.random.default_rng(seed)
    switched = np.cumsum(lengths)
    rule, changes, now_s = lamp(min_s=0.08, hysteresis=20.0), [], 0.0
    while now_s < switched[-1] + 0.3:
        true_s = now_s + rng.uniform(-0.01, 0.01)
        lit = int(np.searchsorted(switched, true_s, side="right")) % 2
        change = rule.feed({"A0": rng.normal(600 if lit else 60, 20)}, Stamp(now_s, 0.01))
        changes += [change] if change is not None and change.before is not None else []
        now_s += rng.uniform(0.02, 0.06)
    assert len(changes) == len(switched)
    for change, true_s in zip(changes, switched, strict=True):
        assert abs(change.at.at_s - true_s) <= change.at.error_s + 1e-9
        assert change.at.error_s <= 0.05
