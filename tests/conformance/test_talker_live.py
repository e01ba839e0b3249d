"""A talker in a live run in the virtual lab: a program that speaks into the room when the prompt is shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lab.lab import Lab
from harness.model.feed import Misspoke, StateChanged, TalkerPrompt
from harness.model.observation import StimulusStarted
from harness.model.record import (
    AttemptFinished,
    Observed,
    ResponseFrozen,
    StimulusSpoken,
    StimulusStored,
    TrialFinished,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session.log.reader import check
from harness.sound.playback import Playback
from tests.conformance.engine_runs import Watcher, rows, wait_for
from tests.conformance.lab_runs import LabRuns
from tests.conformance.sound_path import RATE_HZ, Told, play, player
from tests.known import known
from tests.unit.sound.spoken import speech
from tests.written_sessions import records, wake_of

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

BENCH = """
bench: lab_people
title: The virtual lab, without a loudspeaker
sound_server: virtual_lab
room: living_room
operator: present
microphone: {driver: microphone, sound_device: harness_mic}
devices: {assistant: {profile: reference_assistant, connection: {driver: mqtt, address: lab}}}
"""
SCENARIO = """
scenario: people
title: A person in the lab
voices: {ann: {talker: ann}}
defaults:
  voice: ann
  reprompt: {max_attempts: 3, context_wait_s: 2, response_timeout_s: 7, end_silence_ms: 800}
wake: {window_after_s: 2}
stimuli: [{id: time, text: what time is it}]
trials:
  - {id: time, query: time}
  - {id: call, kind: wake, repeat: 2}
"""
ACCURATE_S = 0.12
"""Of the edges of speech that the microphone finds."""


class Ann(threading.Thread):
    """Speaks what she is asked for, at first something else. said: first and last sample of each."""

    def __init__(self, watcher: Watcher, ours: Playback, told: Told) -> None:
        super().__init__(daemon=True)
        self.said: list[tuple[Stamp, Stamp]] = []
        self._watcher, self._ours, self._told = watcher, ours, told

    def run(self) -> None:
        answered: set[int] = set()
        while not self._watcher.closed:
            for number, prompt in self._prompts():
                if number not in answered:
                    answered.add(number)
                    text = prompt.text if self.said else "Alexa, what is six times seven"
                    sound = Waveform(speech(text, "flite:slt"), RATE_HZ)
                    self.said.append(play(self._ours, self._told, sound))
            threading.Event().wait(0.05)

    def _prompts(self) -> Iterator[tuple[int, TalkerPrompt]]:
        """Those that are waited for; a prompt without an end is one that is being answered."""
        for number, message in enumerate(self._watcher.messages):
            if isinstance(message, StateChanged) and message.prompt is not None and message.until_s is not None:
                yield number, message.prompt


def test_utterance_of_a_person_is_measured_stored_and_scored(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "bench.yaml").write_text(BENCH)
    (tmp_path / "people.yaml").write_text(SCENARIO)
    runs = LabRuns(tmp_path, lab)
    try:
        folder = runs.prepare(tmp_path / "people.yaml", tmp_path / "bench.yaml")
        with player() as (ours, events):
            watcher = runs.start(folder)
            ann = Ann(watcher, ours, events)
            ann.start()
            watcher.wait_row(StimulusSpoken)
            assert watcher.ask(Misspoke("m1", "ann", "time.r1", 1)).ok
            goodbye = watcher.goodbye(300)
            ann.join(20)
    finally:
        runs.close()
    assert (goodbye.exit_code, goodbye.reason) == (0, "")
    assert check(folder).damage == ()
    entries = rows(folder)
    ends = {row.trial_id: row.outcome for row in records(entries, TrialFinished)}
    assert ends == {"time.r1": Outcome.RESPONDED, "call.r1": Outcome.COUNTED, "call.r2": Outcome.COUNTED}

    # A host that stands still interrupts an attempt, and she is asked once more.
    wrong, *interrupted, right = (row for row in records(entries, AttemptFinished) if row.trial_id == "time.r1")
    assert {row.outcome for row in interrupted} <= {Outcome.INTERRUPTED}
    assert (wrong.outcome, wrong.cause) == (Outcome.INTERRUPTED, "misspoken: by ann")
    assert right.outcome is Outcome.RESPONDED
    frozen = records(entries, ResponseFrozen)[-1]

    spoken = records(entries, StimulusSpoken)
    starts = [row.observation for row in records(entries, Observed) if isinstance(row.observation, StimulusStarted)]
    stored = {row.sha256: row.clip for row in records(entries, StimulusStored)}
    assert len(spoken) == len(starts) == len(ann.said) >= 4
    for row, started, (first, last) in zip(spoken, starts, ann.said, strict=True):
        assert started.at.at_s + row.query_start_s == pytest.approx(first.at_s, abs=ACCURATE_S)
        assert started.at.at_s + row.query_end_s == pytest.approx(last.at_s, abs=ACCURATE_S)
        assert stored[row.stimulus_sha256].duration_s == pytest.approx(row.duration_s, abs=0.001)
    # The latency is from the end of the speech.
    assert known(right.latency).value_s == pytest.approx(
        frozen.starts.at_s - ann.said[1 + len(interrupted)][1].at_s, abs=ACCURATE_S
    )

    device = known(wake_of(entries).snapshot().device("assistant"))
    assert (device.hits, device.false_rejects.share.total, device.false_accepts.count) == (2, 2, 0)
    wait_for(lambda: not ann.is_alive(), event="the end of the talker")
