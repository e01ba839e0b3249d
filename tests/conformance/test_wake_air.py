"""Wake trials through the air: a real engine in the virtual lab, what proves that it listens, and what wakes it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from harness.base.places import lab_state
from harness.lab.lab import SOUND, Lab
from harness.model.observation import DeviceState, ListeningProved, Proof, Status, StimulusHeard, StimulusStarted, Wake
from harness.model.record import AttemptStarted, Entry, Observed, ReviewVerdict, TrialFinished
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome
from harness.session.log.reader import check
from harness.wake.wake import WakeFigures
from tests.conformance.engine_runs import rows, wait_for
from tests.conformance.lab_runs import LabRuns, lab_of_its_own
from tests.known import known
from tests.written_sessions import plan_of, records, wake_of

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

LAB = Path(__file__).parent / "lab"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab of this module's own, with an assistant that wakes itself."""
    with lab_of_its_own(LAB / "wake_air_assistant.yaml") as own_lab:
        yield own_lab


def observed(entries: list[Entry], kind: type) -> list[Observed]:
    return [row for entry in entries if isinstance(row := entry.record, Observed) and isinstance(row.observation, kind)]


def test_a_session_by_loudspeaker_proves_what_it_counts(lab: Lab, tmp_path: Path) -> None:
    runs = LabRuns(tmp_path, lab)
    try:
        folder = runs.prepare(LAB / "wake_air.yaml", LAB / "wake_air_bench.yaml")
        goodbye = runs.start(folder).goodbye(300)
    finally:
        runs.close()
    assert (goodbye.exit_code, goodbye.reason) == (0, "")
    entries = rows(folder)
    assert check(folder).damage == ()
    plan = plan_of(entries)
    assert [name for name in plan if name.startswith("soak")] == ["soak.p0001", "soak.r1.s0001", "soak.p0002"]
    ends = records(entries, TrialFinished)
    assert {row.outcome for row in ends} == {Outcome.COUNTED}, ends

    figures = wake_of(entries)
    for name in ("assistant", "taciturn"):
        device = known(figures.snapshot().device(name))
        (segment,) = (play for play in figures.plays(name) if play.kind is TrialKind.AMBIENT)
        played_s = segment.end_s - segment.start_s
        assert played_s == pytest.approx(5.04, abs=0.3)
        # Probes prove all of it, also for who says nothing else of itself.
        assert device.exposure_s == pytest.approx(played_s, abs=0.01), name
        assert device.unproven_s == pytest.approx(0.0, abs=0.01), name
        assert device.probes.count == 2, name
        assert device.false_rejects.share.total == 1
        assert device.false_accepts.count == 0, "nobody says the phrase in pink noise"
        for play in figures.plays(name):
            if play.reading.delay is not None:
                assert -0.1 <= play.reading.delay.value_s <= 2.0
    assert {row.observation.proof for row in observed(entries, ListeningProved)} == {Proof.HEARTBEAT}  # type: ignore[union-attr]
    assert {row.observation.source for row in observed(entries, ListeningProved)} == {"assistant"}

    _nothing_disturbs_the_next_trial(entries)
    _its_own_voice_is_told_apart(entries, figures)


def _nothing_disturbs_the_next_trial(entries: list[Entry]) -> None:
    """Whoever woke is idle again before the next sound."""
    state, busy = DeviceState.IDLE, 0
    for entry in entries:
        match entry.record:
            case Observed(observation=Status(source="assistant", state=now)):
                state = now
            case AttemptStarted():
                assert state is DeviceState.IDLE, entry
                busy += 1
            case _:
                pass
    assert busy >= 6
    starts = {row.observation.play_id: row.observation.at for row in observed(entries, StimulusStarted)}  # type: ignore[union-attr]
    heard = {row.observation.play_id: row.observation.at for row in observed(entries, StimulusHeard)}  # type: ignore[union-attr]
    assert heard.keys() <= starts.keys()  # on a busy machine sound comes in pieces, and our microphone may not find it
    for play_id, stamp in heard.items():
        assert -0.05 <= stamp.at_s - starts[play_id].at_s <= 1.0


def _its_own_voice_is_told_apart(entries: list[Entry], figures: WakeFigures) -> None:
    """The second and the third answer are its shopping list, with its own wake phrase on it."""
    spoken: list[tuple[float, float]] = []
    begun_s: float | None = None
    for row in observed(entries, Status):
        status = row.observation
        assert isinstance(status, Status)
        if begun_s is not None:
            spoken.append((begun_s, status.at.at_s))
        begun_s = status.at.at_s if status.state is DeviceState.SPEAKING else None
    assert len(spoken) >= 2, "it has answered its questions"
    spoken_events = [
        row.observation.at.at_s
        for row in observed(entries, Wake)
        if row.observation.source == "assistant"
        and any(low <= row.observation.at.at_s <= high + 0.5 for low, high in spoken)
    ]
    assert spoken_events, "it has heard its own wake phrase"
    by_rule = [event for event in figures.unmatched("assistant") if event.rule is ReviewVerdict.SELF_WAKE]
    assert [event.at.at_s for event in by_rule] == spoken_events
    assert "during its own speech" in {event.why for event in by_rule}
    # The assistant is here twice. Right after its speech, only its other half still counts as speaking.
    assert {event.why for event in by_rule} <= {"during its own speech", "during speech of taciturn"}
    device = known(figures.snapshot().device("assistant"))
    assert (device.false_accepts.count, device.after_review.count) == (0, 0)


def test_without_sound_there_is_no_heartbeat(lab: Lab) -> None:
    """A sound server that stands still gives the assistant nothing to hear; its process is as alive as before."""
    state, beats, arrived = lab_state(), list[float](), threading.Event()
    client = mqtt.Client(CallbackAPIVersion.VERSION2)

    def beat(client: mqtt.Client, userdata: object, message: mqtt.MQTTMessage) -> None:
        beats.append(time.monotonic())
        arrived.set()

    client.on_message = beat
    client.connect(state.mqtt_host, state.mqtt_port)
    client.subscribe("vh/assistant/heartbeat")
    client.loop_start()
    server = dict(state.pids)[SOUND]
    try:
        assert arrived.wait(60), "no heartbeat while all is well"
        os.kill(server, signal.SIGSTOP)
        frozen_s = time.monotonic()
        time.sleep(7.0)  # longer than a heartbeat takes: what is looked for is that none comes
        assert [beat_s for beat_s in beats if beat_s > frozen_s + 1.0] == []
    finally:
        os.kill(server, signal.SIGCONT)
        thawed_s = time.monotonic()
    try:
        wait_for(lambda: any(beat_s > thawed_s for beat_s in beats), 60, "a heartbeat after the sound is back")
    finally:
        client.disconnect()
        client.loop_stop()
