"""Limits on wake figures, sequential tests, and trials that they make needless."""

from dataclasses import replace

import pytest

from harness.model.record import DecisionReached
from harness.model.scenario import Limits, OnUndecided, SequentialTest, Stopping, TrialKind
from harness.session.figures.progress import Totals, check_limits
from harness.session.summary import limit_lines
from harness.statistics.intervals import Share
from harness.wake.wake_progress import DeviceWake, WakeProgress, due_decisions, needless, rate, ratio
from tests.unit.session.figures.rows import planned
from tests.unit.wake.wake_rows import wake_trial

BOTH = Stopping(false_accepts=SequentialTest(0.1, 0.5), false_rejects=SequentialTest(0.02, 0.1))


def device(name: str, rejects: Share, accepts: int, hours: float, **more: object) -> DeviceWake:
    figures = {"exposure_s": hours * 3600, "after_review": rate(accepts, hours), **more}
    return DeviceWake(name, ratio(rejects), **figures)  # type: ignore[arg-type]


def test_wake_limits_hold_for_every_device() -> None:
    wake = WakeProgress((device("a", Share(1, 100), 0, 10.0), device("b", Share(9, 100), 12, 10.0)))
    limits = Limits(
        max_false_reject_share=0.05,
        max_false_reject_upper=0.06,
        max_false_accepts_per_hour=0.5,
        max_false_accepts_upper_per_hour=0.4,
        min_exposure_hours=8.0,
    )
    found = {one.name: one for one in check_limits(limits, Totals(), wake)}
    assert [name for name, one in found.items() if one.ok] == [
        "max_false_reject_share[a]",
        "max_false_reject_upper[a]",
        "max_false_accepts_per_hour[a]",
        "max_false_accepts_upper_per_hour[a]",
        "min_exposure_hours[a]",
        "min_exposure_hours[b]",
    ]
    assert found["max_false_reject_share[b]"].found == pytest.approx(0.09)
    assert found["max_false_accepts_upper_per_hour[a]"].found == pytest.approx(0.3689, abs=1e-4)
    assert len(found) == 10


def test_nothing_measured_holds_no_limit() -> None:
    limits = Limits(max_false_reject_share=0.5, min_command_share=0.1)
    without = check_limits(limits, Totals())
    assert [(one.name, one.found, one.ok) for one in without] == [
        ("max_false_reject_share", None, False),
        ("min_command_share", None, False),
    ]
    empty = check_limits(limits, Totals(), WakeProgress((DeviceWake("a"),)))
    assert [one.ok for one in empty] == [False, False]
    assert empty[1].name == "min_command_share[a]"


def test_a_failed_sequential_test_fails() -> None:
    decisions = (("false_accepts", True), ("false_rejects", False))
    wake = WakeProgress((DeviceWake("a", decisions=decisions),))
    found = check_limits(Limits(), Totals(), wake)
    assert [(one.name, one.ok) for one in found] == [
        ("false_accepts_test[a]", True),
        ("false_rejects_test[a]", False),
    ]


@pytest.mark.parametrize("meaning", list(OnUndecided))
def test_an_undecided_sequential_test_fails_unless_it_is_said_to_pass(meaning: OnUndecided) -> None:
    wake = WakeProgress((DeviceWake("a", decisions=(("false_accepts", True),)),))
    found = check_limits(Limits(), Totals(), wake, replace(BOTH, on_undecided=meaning))
    assert [(one.name, one.found, one.ok) for one in found] == [
        ("false_accepts_test[a]", 1.0, True),
        ("false_rejects_test[a]", None, meaning is OnUndecided.PASS),
    ]
    shown = limit_lines(found)
    assert shown[0] == "holds  false_accepts_test[a]: passed"
    assert shown[1].endswith("false_rejects_test[a]: undecided")


def test_query_limits_are_as_before() -> None:
    (found,) = check_limits(Limits(max_inconclusive=0), Totals())
    assert found.ok


def test_decisions_are_due_once() -> None:
    decided = WakeProgress((device("a", Share(0, 10), 0, 8.0), device("b", Share(9, 10), 0, 1.0)))
    assert due_decisions(decided, BOTH) == (
        DecisionReached("a", "false_accepts", True),
        DecisionReached("b", "false_rejects", False),
    )
    told = WakeProgress((device("a", Share(0, 10), 9, 8.0, decisions=(("false_accepts", True),)),))
    assert due_decisions(told, BOTH) == (), "a decision stands"
    assert due_decisions(decided, Stopping()) == ()


def test_trials_are_needless_when_every_device_is_decided() -> None:
    ambient, wake = wake_trial(1, TrialKind.AMBIENT, ("a", "b")), wake_trial(2, devices=("a", "b"))
    command = wake_trial(3, TrialKind.COMMAND, ("a", "b"))
    one = WakeProgress((DeviceWake("a", decisions=(("false_accepts", True),)), DeviceWake("b")))
    both = WakeProgress(tuple(DeviceWake(name, decisions=(("false_accepts", True),)) for name in ("a", "b")))
    assert needless(ambient, one, BOTH) == ""
    assert needless(ambient, both, BOTH) == "false accepts are decided for every device"
    assert needless(wake, both, BOTH) == "", "another question"
    assert needless(ambient, both, Stopping()) == ""
    assert needless(command, both, BOTH) == ""
    assert needless(planned(4), both, BOTH) == ""
    only_a = wake_trial(5, TrialKind.AMBIENT, ("a",))
    assert needless(only_a, one, BOTH) != "", "only the devices of the trial matter"
