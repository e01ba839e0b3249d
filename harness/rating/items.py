"""What raters see: first responses with their context, without a trace of the device."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from harness import __version__
from harness.model.effect import EffectEvidence
from harness.model.frozen import frozen
from harness.model.judgment import Category, Exercise, GoldItem, Judgment, JudgmentStatus, ProposalShown
from harness.model.numbers import percent
from harness.model.record import Clip
from harness.model.time import MeasuredDuration
from harness.model.trial import Recognition
from harness.rating.guide import GUIDELINE_VERSION, LABELS


@frozen
class Subject:
    """The recorded response of an attempt. span_s: its start and end on the host's clock; None if unknown."""

    trial_id: str
    attempt: int
    clip_sha256: str
    session_id: str = ""
    take: int = 1
    span_s: tuple[float, float] | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Session, trial and clip, which identify a response."""
        return self.session_id, self.trial_id, self.clip_sha256


def new_row(
    subject: Subject,
    rater: str,
    status: JudgmentStatus,
    category: Category | None = None,
    *,
    id_: str = "",
    **fields: Any,
) -> Judgment:
    """A new row for a response. id_: "" for a random id. fields: the other fields of `Judgment`."""
    return Judgment(
        id=id_ or str(uuid.uuid4()),
        trial_id=subject.trial_id,
        attempt=subject.attempt,
        rater=rater,
        status=status,
        category=category,
        clip_sha256=subject.clip_sha256,
        guideline_version=GUIDELINE_VERSION,
        tool_version=__version__,
        session_id=subject.session_id,
        take=subject.take,
        span_s=subject.span_s,
        **fields,
    )


def withdrawal(row: Judgment, given_wall_s: float | None = None, *, id_: str = "") -> Judgment:
    """The row that takes a judgment back, so that its item must be judged again."""
    return new_row(
        Subject(row.trial_id, row.attempt, row.clip_sha256, row.session_id, row.take),
        row.rater,
        JudgmentStatus.WITHDRAWN,
        id_=id_,
        replaces=row.id,
        item_id=row.item_id,
        round=row.round,
        given_wall_s=given_wall_s,
        adjudicates=row.adjudicates,
        transcript_shown=row.transcript_shown,
    )


@frozen
class HiddenDetails:
    """What a front-end never shows during a round, since it reveals the device.

    - gold: the known answer; None without one.
    - moves: (from rater, to rater) pairs of a coordinator, in order; "" for nobody.
    - earlier_ids: blind ids of the responses in earlier takes of the trial, which a move may name.
    - answered_wall_s: Unix time at which the trial was first answered; never earlier than those before it in its log.
    - the others: as in the trial.
    """

    device: str = ""
    query_id: str = ""
    query_class: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    gold: GoldItem | None = None
    moves: tuple[tuple[str, str], ...] = ()
    earlier_ids: tuple[str, ...] = ()
    answered_wall_s: float = 0.0


@frozen
class Item:
    """A first response, or an exercise of the training round.

    The sources of transcript and effect are left out, since they would reveal the device.
    """

    id: str
    """A blind id, the same for all raters of a round."""
    query: str
    subject: Subject
    clip: Clip | None = None
    """None for an exercise, which a voice speaks."""
    attempts: int = 1
    """Number of times that the query was said, up to the one that was answered."""
    waits_s: tuple[float | None, ...] = ()
    """The pause before each attempt after the first; None if unknown."""
    recognition: Recognition = Recognition.YES
    """Whether the device recognised the query at the attempt that was answered."""
    latency: MeasuredDuration | None = None
    length: MeasuredDuration | None = None
    truncated: bool = False
    """Whether the recording was cut while the response continued."""
    transcript: str | None = None
    """None without one. The round decides whether raters see it."""
    core_capability: bool = False
    """Whether the scenario requires this of every such device."""
    effect: EffectEvidence | None = None
    """Evidence of the wanted effect; None if no effect is wanted."""
    note: str = ""
    """A note from the scenario; for an exercise, the effect that was seen."""
    exercise: Exercise | None = None
    """None for a first response."""
    inputs: tuple[Judgment, ...] = ()
    """The judgments, for an adjudicator; () for raters."""
    agreed: bool = False
    """Whether all inputs have the same category."""
    hidden: HiddenDetails = field(default_factory=HiddenDetails)

    @property
    def waits_for_effect(self) -> bool:
        """Whether the effect is still unknown, so that the response cannot be judged."""
        return self.effect is not None and self.effect.is_open


def blind_id(seed: int, session_id: str, trial_id: str, clip_sha256: str) -> str:
    """A blind id of twelve characters, which does not reveal the origin of an item."""
    origin = "\n".join((str(seed), session_id, trial_id, clip_sha256))
    return hashlib.sha256(origin.encode()).hexdigest()[:12]


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


@frozen
class CategoryProposal:
    """A category with the classifier's probability for it, 0–1."""

    category: Category
    probability: float

    @property
    def words(self) -> str:
        """The proposal as text for a screen: `Wrong (71 %)`."""
        return f"{LABELS[self.category]} ({percent(self.probability, 0)})"


@frozen
class SeenProposal:
    """The last proposal that a rater has seen for an item, and their category before the first one (None if none)."""

    proposal: CategoryProposal | None = None
    unaided: Category | None = None


def last_seen_proposal(rows: Iterable[Judgment]) -> SeenProposal | None:
    """The proposal that a rater has seen last, from all their rows on an item, oldest first. None if none was shown."""
    last_seen: SeenProposal | None = None
    for row in rows:
        if row.proposal_shown is ProposalShown.NEVER or row.proposed is None:
            continue
        if last_seen is not None:
            unaided = last_seen.unaided
        elif row.proposal_shown is ProposalShown.AFTER and row.status is JudgmentStatus.SUBMITTED:
            unaided = row.category
        else:
            unaided = row.unaided
        last_seen = SeenProposal(CategoryProposal(row.proposed, row.proposed_probability or 0.0), unaided)
    return last_seen
