"""What is put before a rater: a first response with what belongs to it, and nothing that says whose it is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from harness.model.effect import EffectEvidence
from harness.model.judgment import Exercise, GoldItem, Judgment
from harness.model.record import Clip
from harness.model.time import Measured
from harness.model.trial import Recognition
from harness.rating.judgments import Subject


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a front-end never shows while a round is judged: it would tell whose response it is.

    moves: from which rater a coordinator has given it to which other one, in that order; "" for nobody.
    """

    session_id: str = ""
    trial_id: str = ""
    device: str = ""
    query_id: str = ""
    query_class: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    gold: GoldItem | None = None
    moves: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A first response, or an exercise of the training round.

    id: blind, the same for all raters of a round. query: its text. attempts: how often it was said, the one that was
    understood included; waits_s: before each of them but the first. latency, length: of the response. truncated: it
    went on when the recording was cut. transcript: what was said in writing, None when there is none; shown as the
    round's policy says. note: the scenario's. clip: None of an exercise, whose sound is spoken by a voice. inputs:
    judgments that an adjudicator is shown; agreed: they are all the same. Who wrote the transcript and who saw the
    effect is not told: devices differ in that.
    """

    id: str
    query: str
    subject: Subject
    clip: Clip | None = None
    attempts: int = 1
    waits_s: tuple[float | None, ...] = ()
    recognition: Recognition = Recognition.YES
    latency: Measured | None = None
    length: Measured | None = None
    truncated: bool = False
    transcript: str | None = None
    core_capability: bool = False
    effect: EffectEvidence | None = None
    note: str = ""
    exercise: Exercise | None = None
    inputs: tuple[Judgment, ...] = ()
    agreed: bool = False
    hidden: Hidden = field(default_factory=Hidden)

    @property
    def waits_for_effect(self) -> bool:
        """Nobody knows yet what the device did, so that the response cannot be judged."""
        return self.effect is not None and self.effect.is_open


def blind_id(seed: int, session_id: str, trial_id: str, clip_sha256: str) -> str:
    """Twelve characters that name an item to raters without telling where it comes from."""
    whole = "\n".join((str(seed), session_id, trial_id, clip_sha256))
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def exercise_item(exercise: Exercise, seed: int) -> Item:
    """An exercise as an item; its rows have the trial id `exercise:<id>`."""
    trial_id = exercise.trial_id
    digest = hashlib.sha256(f"{exercise.query}\n{exercise.response}".encode()).hexdigest()
    return Item(
        id=blind_id(seed, "", trial_id, digest),
        query=exercise.query,
        subject=Subject(trial_id, 1, digest),
        transcript=exercise.response,
        core_capability=exercise.core_capability,
        note=exercise.effect,
        exercise=exercise,
    )
