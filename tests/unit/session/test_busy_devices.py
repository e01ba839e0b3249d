"""Trials in front of devices that report what they do, or that they are gone."""

from __future__ import annotations

import pytest

from harness.model.observation import (
    DeviceState,
    Intent,
    ListeningProved,
    Observation,
    Proof,
    SpeechEnded,
    SpeechStarted,
    Status,
    Wake,
)
from harness.model.record import AttemptStarted
from harness.model.time import Stamp
from harness.session.query_trial import TrialMachine
from harness.session.take import BenchState
from tests.unit.session.listening_material import BY_AIR, Play
from tests.unit.session.material import TIMING, trial

END = SpeechEnded("mic", Stamp(102.0))
UNHEARD = Intent("shelf_link", Stamp(102.1), "")


def test_busy_device_delays_a_trial_by_air_only_so_long() -> None:
    state = BenchState()
    state.observe(Status("shelf_link", Stamp(99.0), DeviceState.SPEAKING))
    play = Play(BY_AIR, bench_state=state)
    play.wait(5.0)
    assert not play.started
    play.feed(Status("shelf_link", play.at(), DeviceState.IDLE))
    assert play.started
    stubborn = Play(BY_AIR, bench_state=state)
    stubborn.wait(stubborn.trial.reprompt.response_max_s)
    assert stubborn.started


@pytest.mark.parametrize(
    ("state", "evidence", "starts_s", "reason"),
    [
        # What ends it, and so many seconds of quiet after that.
        (
            DeviceState.THINKING,
            [END, Intent("shelf_link", Stamp(102.1), "")],
            107.1,
            "still reports that it is thinking",
        ),
        (DeviceState.SPEAKING, [END], 107.0, "still reports that it is speaking"),
        # An answer to a command that it is still recording, or before it began to think, ends nothing.
        (DeviceState.LISTENING, [END], 130.0, "reports that it is listening"),
        (DeviceState.THINKING, [END], 130.0, "reports that it is thinking"),
    ],
)
def test_stuck_busy_state_is_limited_by_silence(
    state: DeviceState, evidence: list[Observation], starts_s: float, reason: str
) -> None:
    bench_state = BenchState()
    bench_state.observe(Status("shelf_link", Stamp(99.0), DeviceState.LISTENING))
    bench_state.observe(SpeechStarted("mic", Stamp(99.5), -30.0))
    bench_state.observe(Status("shelf_link", Stamp(99.8), state))
    play = Play(BY_AIR, bench_state=bench_state)
    play.wait(2.2)
    for observation in evidence:
        play.feed(observation)
    assert play.machine.state.reason.startswith(f"shelf {reason}")
    assert play.machine.state.until_s == pytest.approx(starts_s)
    play.wait(starts_s - play.now_s - 0.1)
    assert not play.started
    play.wait(0.1)
    assert play.started


def test_speech_that_goes_on_keeps_a_device_busy() -> None:
    state = BenchState()
    state.observe(Status("shelf_link", Stamp(99.0), DeviceState.THINKING))
    state.observe(Intent("shelf_link", Stamp(99.5), ""))
    state.observe(SpeechStarted("mic", Stamp(100.0), -30.0))
    play = Play(BY_AIR, bench_state=state)
    play.wait(6.0)
    assert not play.started
    play.feed(SpeechEnded("mic", play.at()))
    play.wait(5.0)
    assert play.started


@pytest.mark.parametrize(("idle_s", "starts_s"), [(105.0, 105.0), (1000.0, 130.0)])
def test_a_query_waits_while_the_device_still_answers_the_one_before(idle_s: float, starts_s: float) -> None:
    state = BenchState()
    state.observe(Status("dut_link", Stamp(99.0), DeviceState.SPEAKING))
    machine = TrialMachine(trial(), 1, TIMING)
    assert machine.begin(100.0, not_before_s=101.0, bench_state=state) == []
    assert machine.tick(starts_s - 0.1) == []
    if idle_s <= starts_s:
        actions = machine.feed(Status("dut_link", Stamp(idle_s), DeviceState.IDLE), idle_s)
    else:
        actions = machine.tick(starts_s)
    assert any(isinstance(action, AttemptStarted) for action in actions)


@pytest.mark.parametrize(
    ("back", "starts_s"),
    [
        (Status("dut_link", Stamp(110.0), DeviceState.STARTED), 110.0),
        (ListeningProved("dut_link", Stamp(110.0), Proof.HEARTBEAT), 110.0),
        (Wake("dut_link", Stamp(110.0)), 110.0),
        (Status("other", Stamp(110.0), DeviceState.STARTED), 160.0),
    ],
)
def test_a_device_that_went_before_its_trial_is_waited_for(back: Observation, starts_s: float) -> None:
    machine = TrialMachine(trial(), 1, TIMING)
    assert machine.begin(100.0, bench_state=BenchState(gone_devices={"dut_link", "elsewhere"})) == []
    actions = [(110.0, action) for action in machine.feed(back, 110.0)]
    actions += [(at_s, action) for at_s in (159.9, 160.0) for action in machine.tick(at_s)]
    assert [at_s for at_s, action in actions if isinstance(action, AttemptStarted)] == [starts_s]
