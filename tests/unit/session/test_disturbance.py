"""What the host does to an attempt: see harness/session/disturbance.py."""

from __future__ import annotations

from harness.model.observation import HostStalled
from harness.model.trial import Outcome
from tests.unit.session.listening_material import BY_AIR, TIMING, WIRED, Play


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
