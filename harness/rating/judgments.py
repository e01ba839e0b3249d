"""New judgment rows. Nothing is changed: an undo is a row too, and names the one that it takes back."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from harness import __version__
from harness.model.effect import EffectWord
from harness.model.judgment import Category, Flag, Judgment, JudgmentStatus, ProposalShown
from harness.rating.categories import GUIDELINE_VERSION


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: the frozen response of an attempt. span_s: its start and end on the host's clock."""

    trial_id: str
    attempt: int
    clip_sha256: str
    session_id: str = ""
    take: int = 1
    span_s: tuple[float, float] | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Session, trial and clip: what rows are about."""
        return self.session_id, self.trial_id, self.clip_sha256


@dataclass(frozen=True, slots=True)
class Sitting:
    """A rater's look at one item. replaces: id of their own row in force on it, when there is one.

    id: of the new row; "" for a random one. The other fields are those of `Judgment`; sub-flags that the category
    does not carry are left out.
    """

    rater: str
    subject: Subject
    replaces: str | None = None
    comment: str = ""
    plays: int = 0
    time_to_answer_s: float | None = None
    item_id: str = ""
    round: str = ""
    position: int | None = None
    confidence: int | None = None
    heard_ms: int | None = None
    transcript_shown: bool = True
    aid_path: tuple[str, ...] = ()
    effect_claimed: bool | None = None
    effect: EffectWord | None = None
    shown_wall_s: float | None = None
    given_wall_s: float | None = None
    adjudicates: tuple[str, ...] = ()
    proposed: Category | None = None
    proposed_probability: float | None = None
    proposal_shown: ProposalShown = ProposalShown.NEVER
    unaided: Category | None = None
    id: str = ""

    def submit(self, category: Category, sub_flags: tuple[str, ...] = (), flags: tuple[Flag, ...] = ()) -> Judgment:
        """With a category; flags may stand beside it. ValueError when the category does not carry a sub-flag."""
        return self._row(JudgmentStatus.SUBMITTED, category=category, sub_flags=sub_flags, flags=flags)

    def skip(self) -> Judgment:
        """Left for later."""
        return self._row(JudgmentStatus.SKIPPED)

    def hold(self) -> Judgment:
        """Left until it is known what the device did."""
        return self._row(JudgmentStatus.HELD)

    def flag(self, flags: tuple[Flag, ...]) -> Judgment:
        """Put aside, with the reasons."""
        return self._row(JudgmentStatus.FLAGGED, flags=flags)

    def _row(
        self,
        status: JudgmentStatus,
        category: Category | None = None,
        flags: tuple[Flag, ...] = (),
        sub_flags: tuple[str, ...] = (),
    ) -> Judgment:
        return Judgment(
            id=self.id or str(uuid.uuid4()),
            trial_id=self.subject.trial_id,
            attempt=self.subject.attempt,
            rater=self.rater,
            status=status,
            category=category,
            clip_sha256=self.subject.clip_sha256,
            replaces=self.replaces,
            confidence=self.confidence,
            comment=self.comment,
            flags=tuple(flag.value for flag in flags),
            plays=self.plays,
            time_to_answer_s=self.time_to_answer_s,
            transcript_shown=self.transcript_shown,
            guideline_version=GUIDELINE_VERSION,
            tool_version=__version__,
            session_id=self.subject.session_id,
            take=self.subject.take,
            item_id=self.item_id,
            round=self.round,
            position=self.position,
            sub_flags=sub_flags,
            aid_path=self.aid_path,
            heard_ms=self.heard_ms,
            span_s=self.subject.span_s,
            effect_claimed=self.effect_claimed,
            effect=self.effect,
            shown_wall_s=self.shown_wall_s,
            given_wall_s=self.given_wall_s,
            adjudicates=self.adjudicates,
            proposed=self.proposed,
            proposed_probability=self.proposed_probability,
            proposal_shown=self.proposal_shown,
            unaided=None if category is None else self.unaided,
        )


def withdrawal(judgment: Judgment, given_wall_s: float | None = None, *, id_: str = "") -> Judgment:
    """The row that takes a judgment back; its item is then to be judged again. id_: of the new row; else random."""
    return Judgment(
        id=id_ or str(uuid.uuid4()),
        trial_id=judgment.trial_id,
        attempt=judgment.attempt,
        rater=judgment.rater,
        status=JudgmentStatus.WITHDRAWN,
        category=None,
        clip_sha256=judgment.clip_sha256,
        replaces=judgment.id,
        guideline_version=GUIDELINE_VERSION,
        tool_version=__version__,
        session_id=judgment.session_id,
        take=judgment.take,
        item_id=judgment.item_id,
        round=judgment.round,
        given_wall_s=given_wall_s,
        adjudicates=judgment.adjudicates,
    )
