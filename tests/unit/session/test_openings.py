"""Openings: the device is called while it speaks or plays, or right after it woke."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.base.clocks import HostClock, ScaledClock
from harness.devices.in_process.device import InProcessOptions
from harness.model.observation import Transcript, Wake
from harness.model.record import TrialFinished
from harness.model.scenario import TrialKind
from harness.model.stimulus import NoiseKind, NoiseSpec, Opening, Samples, Waveform
from harness.model.time import Stamp
from harness.model.trial import Outcome, Target
from harness.session.levels import why_silent
from harness.session.query_trial import TrialMachine
from harness.session.take import Phase, StimulusTiming
from tests.known import known
from tests.unit.session.house import SPEED, House
from tests.unit.session.listening_material import BY_AIR, TIMING, WIRED, Play, listening_trial
from tests.unit.session.material import MemoryLog
from tests.unit.session.material import trial as query_trial
from tests.unit.session.rehearsal import Later, Rehearsal, says, speech, wake

OPENED = replace(TIMING, query_start_s=5.0, query_end_s=5.6, duration_s=7.0, other_phrases=((0.5, 1.0),))
OPENING = Opening(pause_s=3.0, say="tell me a story")


def opened(*wakes_s: float, kind: TrialKind = TrialKind.WAKE, words_s: tuple[float, ...] = ()) -> Play:
    """A wired device in an attempt with an opening, to the end of its sound."""
    play = Play(WIRED, timing=OPENED, opening=OPENING, kind=kind)
    play.starts("wired", 0.0)
    for at_s in wakes_s:
        play.feed(Wake("wired", play.at(), "alexa", 0.9, at_s))
    for at_s in words_s:
        play.feed(Transcript("wired", play.at(), "a story", True, at_s))
    play.ends("wired", audio_s=7.0)
    return play


@pytest.mark.parametrize("wakes_s", [(1.2,), (1.2, 5.8)])
def test_an_attempt_counts_if_the_device_woke_to_the_opening_and_only_then(wakes_s: tuple[float, ...]) -> None:
    play = opened(*wakes_s)
    assert [row.outcome for row in play.attempts] == [Outcome.COUNTED]
    assert play.started[0].other_phrases == ((0.5, 1.0),)


@pytest.mark.parametrize("wakes_s", [(), (5.8,), (3.0, 5.8)])
def test_attempt_is_repeated_when_the_opening_is_missed(wakes_s: tuple[float, ...]) -> None:
    play = opened(*wakes_s)
    (row,) = play.attempts
    assert row.outcome is Outcome.INTERRUPTED
    assert row.cause == "opening_missed: wired did not wake to the phrase of the opening"
    assert play.verdict is None
    play.wait(3.0)
    assert len(play.started) == 2


def test_a_late_event_of_the_phrase_is_none_of_the_opening() -> None:
    close = replace(OPENED, query_start_s=1.5, query_end_s=2.1)
    play = Play(WIRED, timing=close, opening=Opening(pause_s=0.5))
    play.starts("wired", 0.0)
    play.feed(Wake("wired", play.at(), "alexa", 0.9, 2.0))
    play.ends("wired", audio_s=7.0)
    assert play.attempts[0].outcome is Outcome.INTERRUPTED, "1.0 s after the opening's phrase, and 0.1 s before its own"


@pytest.mark.parametrize(("words_s", "waits"), [((3.0,), True), ((6.5,), False)])
def test_what_was_understood_of_the_opening_is_not_the_command(words_s: tuple[float, ...], waits: bool) -> None:
    play = Play(BY_AIR, timing=OPENED, opening=OPENING, kind=TrialKind.COMMAND)
    play.starts("speaker")
    begun_s = play.now_s
    play.feed(Wake("shelf_link", Stamp(begun_s + 1.2), "alexa", 0.9))
    for at_s in words_s:
        play.feed(Transcript("shelf_link", Stamp(begun_s + at_s), "a story", True))
    play.wait(7.0)
    play.ends("speaker")
    play.wait(0.5)  # the window for a wake event is over, but not the wait for words
    assert (play.machine.phase is Phase.LISTENING) is waits


MISSED = "opening_missed: dut did not wake to the phrase of the opening"
QUERY = StimulusTiming(
    "5" * 64,
    query_start_s=7.0,
    query_end_s=8.0,
    duration_s=8.1,
    other_phrases=((0.1, 0.6),),
    wake_start_s=6.1,
    wake_end_s=6.6,
)
"""An opening with a request, a pause, and a query behind its wake phrase."""


@pytest.mark.parametrize(
    ("heard", "outcome", "cause"),
    [
        ([wake(0.8), *speech(2.5, 6.5), wake(6.8), says("What time is it?", 8.5), *speech(9.0, 10.0)], "responded", ""),
        ([wake(0.8), says("tell me a story", 2.2), *speech(2.5, 8.6)], "no_wake", "no_wake_event"),
        ([wake(0.8), *speech(2.5, 7.6), *speech(8.2, 12.0)], "no_wake", "no_wake_event"),
        ([*speech(2.5, 6.5), wake(6.8), says("What time is it?", 8.5), *speech(9.0, 10.0)], "interrupted", MISSED),
        ([], "interrupted", MISSED),
    ],
)
def test_a_query_is_asked_while_the_device_speaks(heard: list[Later], outcome: str, cause: str) -> None:
    machine = TrialMachine(query_trial(), 1, QUERY, link_wait_s=60.0)
    assert machine.call_start_s == 6.1
    rehearsal = Rehearsal(machine, *[heard] * 9, timing=QUERY)
    rehearsal.run()
    first = rehearsal.rows()[0]
    assert (first.outcome.value, first.cause) == (outcome, cause)
    if outcome == "responded":
        assert known(first.wake_delay).value_s == pytest.approx(0.2)
        assert first.heard == "What time is it?"


class Room:
    """A microphone in a room: a sound of one level, and of another in the pause. rumble: amplitude of 40 Hz."""

    id = "mic"

    def __init__(self, quiet: float, pause: float, previous: float = 0.0, rumble: float = 0.0) -> None:
        self.amplitude = np.full(20 * 1000, quiet)
        self.amplitude[10_000 - 2500 : 10_000 - 1500] += previous
        self.amplitude[10_000 + 2500 : 10_000 + 5000] = pause
        self._rumble = rumble * np.sin(2 * np.pi * 0.04 * np.arange(20 * 1000))

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        sound = self.amplitude * np.tile((1, 1, -1, -1), 5 * 1000) + self._rumble
        samples: Samples = sound[round(start_s * 1000) : round(end_s * 1000)].astype(np.float32)
        return Waveform(samples, 1000), start_s


@pytest.mark.parametrize(
    ("room", "silent"),
    [
        (Room(0.001, 0.01), False),
        (Room(0.001, 0.0015), True),
        (Room(0.001, 0.01, previous=0.05), False),
        (Room(0.001, 0.01, rumble=0.05), False),
    ],
)
def test_a_device_sounds_if_it_is_louder_than_the_room_was_before(room: Room, silent: bool) -> None:
    trial = listening_trial(BY_AIR, opening=replace(OPENING, sounds=True))
    assert bool(why_silent(trial, 5.0, 10.0, room)) is silent  # type: ignore[arg-type]
    assert why_silent(listening_trial(BY_AIR, opening=OPENING), 5.0, 10.0, room) == ""  # type: ignore[arg-type]


def test_the_noise_of_the_trial_is_not_taken_for_the_device() -> None:
    trial = listening_trial(BY_AIR, opening=replace(OPENING, sounds=True))
    noisy = replace(trial, recipe=replace(trial.recipe, noise=NoiseSpec(NoiseKind.PINK, 5.0)))
    room = Room(0.001, 0.001)
    room.amplitude[14_000:15_000] = 0.1  # the second before the phrase
    assert why_silent(noisy, 5.0, 10.0, room).startswith("device_silent")  # type: ignore[arg-type]
    assert why_silent(trial, 5.0, 10.0, room) == ""  # type: ignore[arg-type]


def test_the_ramp_of_noise_under_a_query_is_not_taken_for_the_device() -> None:
    trial = listening_trial(BY_AIR, opening=replace(OPENING, sounds=True, pause_s=4.0))
    ramped = NoiseSpec(NoiseKind.PINK, 5.0, ramp_s=2.0)
    noisy = replace(trial, recipe=replace(trial.recipe, noise=ramped, lead_in_s=0.0))
    room = Room(0.001, 0.001)
    room.amplitude[13_000:15_000] = 0.1  # the two seconds before the phrase
    assert why_silent(noisy, 5.0, 10.0, room).startswith("device_silent")  # type: ignore[arg-type]


@pytest.mark.usefixtures("simulated_time")
def test_over_a_wire_the_microphone_need_not_hear_the_device() -> None:
    trial = listening_trial(Target("dut", "dut_link", "dut_link"), opening=replace(OPENING, sounds=True))
    clock = ScaledClock(SPEED, HostClock())
    run = House((trial,), MemoryLog(clock), clock, device_options=InProcessOptions(injection=True)).played()
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.COUNTED]
