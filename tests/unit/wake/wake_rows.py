"""Rows of wake, command and ambient trials that a test writes out, over a wire or through the air."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.model.observation import (
    Intent,
    ListeningProved,
    Observation,
    Proof,
    StimulusEnded,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.record import AttemptFinished, AttemptStarted, Entry, Observed, TrialFinished, TrialStarted
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.stimulus import Ambience
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, ListeningSpec, Outcome, Recognition, Target, Trial
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import DeviceWake, WakeProgress
from tests.known import known
from tests.unit.session.figures.rows import Rows, planned

PHRASE = (1.0, 1.6)
WAKE_DURATION_S = 3.1
SETTINGS = WakeSettings()
Sound = tuple[str, str, float | None]
"""Who plays it, the id of the play, and its position in injected audio."""
SPOKEN: Sound = ("speaker", "p1", None)


def wake_trial(
    number: int,
    kind: TrialKind = TrialKind.WAKE,
    devices: Sequence[str] = ("kitchen",),
    injected: bool = True,
    settings: WakeSettings = SETTINGS,
    reference: str = "turn on the light",
    conditions: tuple[tuple[str, str], ...] = (),
    ambient_s: float = 60.0,
) -> Trial:
    targets = tuple(Target(device, f"{device}_link", f"{device}_link" if injected else "speaker") for device in devices)
    trial = planned(number, reference, f"{kind.value}-{number}", devices[0])
    recipe = trial.recipe
    if kind is TrialKind.AMBIENT:
        recipe = replace(recipe, query=Ambience(ambient_s, seed=1))
    listening = ListeningSpec(kind, targets, settings, 1.0, 1.5, "" if kind is TrialKind.AMBIENT else "alexa", "cafe")
    return replace(trial, recipe=recipe, conditions=conditions, listening=listening)


@dataclass
class WakeRows(Rows):
    """The audio line of every device starts at `audio_s` and grows by what is played."""

    audio_s: float = 0.0
    plays: int = 0
    trials: dict[str, Trial] = field(default_factory=dict)

    def plan(self, *trials: Trial) -> None:
        self.trials = {trial.id: trial for trial in trials}
        self.start(*trials)

    def see(self, observation: Observation, trial: Trial | None = None, take: int = 1, attempt: int = 1) -> Entry:
        if trial is None:
            return self.add(Observed(observation))
        return self.add(Observed(observation, trial.id, take, attempt))

    def begin(
        self,
        trial: Trial,
        at_s: float,
        span_s: tuple[float, float, float],
        *,
        sound: Sound = SPOKEN,
        error_s: float = 0.0,
    ) -> None:
        """The beginning of an attempt by hand. span_s: start and end of its phrase in the sound, and its length."""
        player, play_id, audio_s = sound
        self.add(AttemptStarted(trial.id, 1, 1, play_id, "sha", *span_s, None))
        self.see(StimulusStarted(player, Stamp(at_s, error_s), play_id, audio_s), trial)

    def end(self, trial: Trial, at_s: float, *, sound: Sound = SPOKEN) -> None:
        """The end of an attempt that counts."""
        player, play_id, audio_s = sound
        self.see(StimulusEnded(player, Stamp(at_s), play_id, True, audio_s), trial)
        self.add(AttemptFinished(trial.id, 1, 1, Outcome.COUNTED, Recognition.NOT_ASSESSED, EvidenceSource.NONE))

    def play(
        self,
        trial: Trial,
        events: Sequence[tuple[str, float]] = (),
        *,
        take: int = 1,
        attempt: int = 1,
        outcome: Outcome = Outcome.COUNTED,
        duration_s: float | None = None,
        proof: bool = True,
        words: Sequence[tuple[str, float, str]] = (),
        speed: float = 1.0,
        error_s: float = 0.0,
        started_error_s: float | None = None,
        finish: bool = True,
        other_phrases: tuple[tuple[float, float], ...] = (),
    ) -> list[int]:
        """A whole take of one attempt. events: (device, seconds from the stimulus's start). Numbers of their rows."""
        listening = known(trial.listening)
        ambient = listening.kind is TrialKind.AMBIENT
        long_s = duration_s or (60.0 if ambient else WAKE_DURATION_S)
        phrase = (0.0, long_s) if ambient else PHRASE
        self.plays += 1
        play_id = f"p{self.plays}"
        if attempt == 1:
            self.add(TrialStarted(trial.id, take), 0.5)
        sha = f"sha-{trial.id}"
        self.add(AttemptStarted(trial.id, take, attempt, play_id, sha, *phrase, long_s, None, other_phrases))
        begun_s, line_s = self.at_s, self.audio_s
        targets = {target.device: target for target in listening.targets}
        injected = listening.targets[0].injected
        for player in listening.players:
            audio_s = line_s if injected else None
            started = Stamp(begun_s, error_s if started_error_s is None else started_error_s)
            self.see(StimulusStarted(player, started, play_id, audio_s), trial, take, attempt)

        def at(offset_s: float) -> tuple[Stamp, float | None]:
            self.at_s = begun_s + offset_s / speed
            return Stamp(self.at_s, error_s), line_s + offset_s if injected else None

        seqs: list[int] = []
        timed_events: list[tuple[float, str, str]] = [(offset_s, device, "") for device, offset_s in events]
        timed_events += [(offset_s, device, text) for device, offset_s, text in words]
        for offset_s, device, text in sorted(timed_events):
            source = targets[device].connection
            stamp, audio_s = at(offset_s)
            if text.startswith("intent:"):
                self.see(Intent(source, stamp, text.removeprefix("intent:"), audio_s=audio_s), trial, take, attempt)
            elif text:
                self.see(Transcript(source, stamp, text, audio_s=audio_s), trial, take, attempt)
            else:
                entry = self.see(Wake(source, stamp, "alexa", 0.9, audio_s), trial, take, attempt)
                seqs.append(entry.seq)
        stamp, audio_s = at(max([long_s, *(offset_s for offset_s, _, _ in timed_events)]))
        if injected:
            audio_s = line_s + long_s
        if proof:
            for target in listening.targets:
                kind = Proof.ACKNOWLEDGED if injected else Proof.HEARTBEAT
                self.see(ListeningProved(target.connection, stamp, kind, audio_s), trial, take, attempt)
        for player in listening.players:
            complete = outcome is not Outcome.INTERRUPTED
            self.see(StimulusEnded(player, stamp, play_id, complete, audio_s), trial, take, attempt)
        self.audio_s = line_s + long_s
        self.add(AttemptFinished(trial.id, take, attempt, outcome, Recognition.NOT_ASSESSED, EvidenceSource.NONE))
        if finish:
            self.add(TrialFinished(trial.id, take, outcome, attempt, attempt))
        return seqs

    @property
    def figures(self) -> WakeFigures:
        figures = WakeFigures()
        for entry in self.entries:
            figures.add(entry)
        return figures

    @property
    def progress(self) -> WakeProgress:
        return self.figures.snapshot()

    def device(self, name: str = "kitchen") -> DeviceWake:
        return known(self.progress.device(name))


def played(trial: Trial, events: Sequence[tuple[str, float]] = (), at_s: float = 0.0, **more: Any) -> WakeRows:
    """A session of one trial that was played; more: as `WakeRows.play` takes it."""
    rows = rows_of(trial, at_s=at_s)
    rows.play(trial, events, **more)
    return rows


def rows_of(*trials: Trial, at_s: float = 0.0) -> WakeRows:
    """Rows of a session with this plan, to be played."""
    rows = WakeRows(at_s=at_s)
    rows.plan(*trials)
    return rows
