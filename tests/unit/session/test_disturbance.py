"""What the host does to an attempt: see harness/session/disturbance.py."""

from __future__ import annotations

import pytest

from harness.model.bench import ObservationKind
from harness.model.observation import HostStalled, Overrun, Wake
from harness.model.time import Stamp
from harness.model.trial import Outcome, Target
from harness.session.query_trial import TrialMachine
from tests.unit.session import material
from tests.unit.session.listening_material import BY_AIR, TIMING, WIRED, Play
from tests.unit.session.rehearsal import Rehearsal

CHIMING = Target("box", "box.earcon", "speaker", (ObservationKind.WAKE,))


def test_a_stall_of_the_host_is_noted_with_the_attempt_that_it_disturbs() -> None:
    play = Play(BY_AIR)
    play.starts("speaker")
    play.feed(HostStalled("host", play.at(), 0.8, 4.0, None))
    play.wait(TIMING.duration_s)
    play.ends("speaker")
    play.wait(5.0)
    assert play.attempts[0].outcome is Outcome.COUNTED
    assert play.attempts[0].disturbed == "the host stalled for 800 ms"


def test_a_stall_of_the_host_moves_nothing_over_a_wire() -> None:
    play = Play(WIRED)
    play.starts(WIRED.player, audio_s=0.0)
    play.feed(HostStalled("host", play.at(), 0.8, 4.0, None))
    play.wait(TIMING.duration_s)
    play.ends(WIRED.player)
    play.wait(5.0)
    assert play.attempts[0].disturbed == ""


@pytest.mark.parametrize(
    ("target", "gap_s", "woken", "outcome"),
    [
        (CHIMING, 1.8, False, Outcome.INTERRUPTED),
        (CHIMING, 1.8, True, Outcome.COUNTED),
        (CHIMING, 0.1, False, Outcome.COUNTED),  # before its window
        (BY_AIR, 1.8, False, Outcome.COUNTED),  # it reports its wakes over its link
    ],
)
def test_a_miss_in_which_a_chime_may_have_been_lost_is_repeated(
    target: Target, gap_s: float, woken: bool, outcome: Outcome
) -> None:
    play = Play(target)
    play.starts("speaker")
    play.wait(gap_s)
    play.feed(Overrun(play.trial.microphone, play.at(), 2))
    if woken:
        play.feed(Wake(target.connection, play.at(), "alexa"))
    play.wait(TIMING.duration_s - gap_s)
    play.ends("speaker")
    play.wait(6.0)
    first = play.attempts[0]
    assert first.outcome is outcome
    assert first.cause == (
        "" if outcome is Outcome.COUNTED else "stream_gap: mic lost sound, in which box may have chimed"
    )
    assert len(play.started) == (1 if outcome is Outcome.COUNTED else 2)


def test_a_query_in_which_the_chime_may_have_been_lost_is_asked_again() -> None:
    trial = material.trial(device="box", connection="box.earcon", reports=(ObservationKind.WAKE,))
    lost = (1.0, Overrun("mic", Stamp(1.0), 2))
    rehearsal = Rehearsal(TrialMachine(trial, 1, material.TIMING), [lost])
    rehearsal.run()
    first, second = list(rehearsal.standing().values())[:2]
    assert (first.outcome, second.outcome) == (Outcome.INTERRUPTED, Outcome.NO_WAKE)
