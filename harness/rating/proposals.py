"""What a classifier says of a response: beside a rater's judgment, and never in its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model.judgment import Category, Judgment, JudgmentStatus, ProposalShown
from harness.rating.categories import LABELS


@dataclass(frozen=True, slots=True)
class Proposal:
    """A category and the probability that the classifier gives it, 0–1."""

    category: Category
    probability: float

    @property
    def words(self) -> str:
        """For a screen: `Wrong (71 %)`."""
        return f"{LABELS[self.category]} ({self.probability:.0%})".replace("%", " %")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a rater has seen of proposals on an item, and the category that they had given before the first."""

    proposal: Proposal | None = None
    unaided: Category | None = None


def seen_in(rows: Iterable[Judgment]) -> Seen | None:
    """From a rater's own rows on an item, oldest first, what was taken back included; None when none was shown."""
    seen: Seen | None = None
    for row in rows:
        if row.proposal_shown is ProposalShown.NEVER or row.proposed is None:
            continue
        after = row.proposal_shown is ProposalShown.AFTER and row.status is JudgmentStatus.SUBMITTED
        first = seen.unaided if seen is not None else row.category if after else row.unaided
        seen = Seen(Proposal(row.proposed, row.proposed_probability or 0.0), first)
    return seen
