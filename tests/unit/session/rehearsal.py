"""Plays a trial machine against a scripted device in simulated time: no thread, no sleep."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import replace

from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    Observation,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.record import AttemptFinished, AttemptStarted, OperatorAsked, TrialFinished
from harness.model.time import Stamp
from harness.session.query_trial import TrialMachine
from harness.session.take import Action, FreezeResponse, SayClosing, StimulusTiming, StopStimulus
from tests.unit.session.material import TIMING

Later = tuple[float, Observation]
"""Seconds after the stimulus's first sample at which it arrives, and the observation, stamped in the same way."""


def wake(at_s: float = 0.9) -> Later:
    return at_s, Wake("dut_link", Stamp(at_s, 0.01))


def says(text: str, at_s: float = 2.3) -> Later:
    return at_s, Transcript("dut_link", Stamp(at_s, 0.01), text)


def speech(start_s: float, end_s: float, lag_s: float = 0.1) -> list[Later]:
    return [
        (start_s + lag_s, SpeechStarted("mic", Stamp(start_s, 0.01), -30.0)),
        (end_s + lag_s, SpeechEnded("mic", Stamp(end_s, 0.02))),
    ]


def restarts(at_s: float) -> Later:
    return at_s, Status("dut_link", Stamp(at_s), DeviceState.STARTED)


def loses(source: str, from_s: float, to_s: float) -> list[Later]:
    return [(from_s, LinkLost(source, Stamp(from_s), "gone")), (to_s, LinkBack(source, Stamp(to_s)))]


class Rehearsal:
    """A machine, and what happens after each of its attempts: attempt n gets the n-th list, the last stays silent."""

    def __init__(
        self,
        machine: TrialMachine,
        *after: list[Later],
        timing: StimulusTiming = TIMING,
        heard: bool = False,
        operator: Callable[[int, float], list[tuple[float, Observation]]] | None = None,
        transcribing_s: float | None = None,
    ) -> None:
        self.machine = machine
        self.actions: list[tuple[float, Action]] = []
        self.starts: dict[int, float] = {}
        self.verdict: TrialFinished
        self._after = after
        self._timing = timing
        self._heard = heard
        self._operator = operator
        self._transcribing_s = transcribing_s
        self._coming: list[tuple[float, int, Observation | None]] = []
        self._order = itertools.count()
        self._playing: tuple[str, float] | None = None

    def put(self, at_s: float, observation: Observation | None) -> None:
        heapq.heappush(self._coming, (at_s, next(self._order), observation))

    def run(self, now_s: float = 100.0, until_s: float = 5000.0) -> TrialFinished:
        self._act(now_s, self.machine.begin(now_s))
        while not self.machine.finished:
            deadline_s = self.machine.deadline_s
            if self._coming and (deadline_s is None or self._coming[0][0] <= deadline_s):
                now_s, _, observation = heapq.heappop(self._coming)
                if observation is None:
                    self._act(now_s, self.machine.transcribed(now_s))
                else:
                    self._act(now_s, self.machine.feed(observation, now_s))
            else:
                assert deadline_s is not None, f"{self.machine.phase} waits for nothing"
                now_s = max(now_s, deadline_s)
                self._act(now_s, self.machine.tick(now_s))
            assert now_s < until_s, f"still {self.machine.phase} at {now_s}"
        verdicts = [action for _, action in self.actions if isinstance(action, TrialFinished)]
        (self.verdict,) = verdicts
        return self.verdict

    def rows(self) -> list[AttemptFinished]:
        return [action for _, action in self.actions if isinstance(action, AttemptFinished)]

    def standing(self) -> dict[int, AttemptFinished]:
        return {row.attempt: row for row in self.rows()}

    def of(self, kind: type) -> list[tuple[float, Action]]:
        return [(at_s, action) for at_s, action in self.actions if isinstance(action, kind)]

    def _play(self, play_id: str, now_s: float, duration_s: float) -> float:
        start_s = now_s + 0.02
        self._playing = (play_id, start_s)
        self.put(start_s, StimulusStarted("speaker", Stamp(start_s, 0.001), play_id))
        self.put(start_s + duration_s, StimulusEnded("speaker", Stamp(start_s + duration_s, 0.001), play_id))
        return start_s

    def _act(self, now_s: float, actions: list[Action]) -> None:
        for action in actions:
            self.actions.append((now_s, action))
            match action:
                case AttemptStarted() as row:
                    start_s = self._play(row.play_id, now_s, self._timing.duration_s)
                    self.starts[row.attempt] = start_s
                    if self._heard:
                        proof = StimulusHeard("mic", Stamp(start_s + 0.03, 0.002), row.play_id, 0.9)
                        self.put(start_s + self._timing.duration_s + 0.2, proof)
                    if row.attempt <= len(self._after):
                        for arrives_s, observation in self._after[row.attempt - 1]:
                            self.put(start_s + arrives_s, _moved(observation, start_s))
                case SayClosing(play_id=play_id):
                    self._play(play_id, now_s, 1.0)
                case StopStimulus() if self._playing:
                    play_id = self._playing[0]
                    self._coming = [
                        event
                        for event in self._coming
                        if not (isinstance(event[2], StimulusEnded | StimulusStarted) and event[2].play_id == play_id)
                    ]
                    heapq.heapify(self._coming)
                    self.put(now_s + 0.02, StimulusEnded("speaker", Stamp(now_s + 0.02), play_id, complete=False))
                case FreezeResponse():
                    transcribing = self._transcribing_s is not None
                    if self._transcribing_s is not None:
                        self.put(now_s + self._transcribing_s, None)
                    self._act(now_s, self.machine.response_frozen(now_s, transcribing=transcribing))
                case OperatorAsked(attempt=attempt) if self._operator:
                    for at_s, observation in self._operator(attempt, now_s):
                        self.put(at_s, observation)
                case _:
                    pass


def _moved(observation: Observation, by_s: float) -> Observation:
    return replace(observation, at=Stamp(observation.at.at_s + by_s, observation.at.error_s))
