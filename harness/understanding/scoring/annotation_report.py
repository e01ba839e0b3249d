"""What became of a project's utterances, counted from its rows: labelled how, struck how often, by whom in what time.

The rows of the seed (section 3.1.4): labelled by consensus, without consensus, struck.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.model.annotation import (
    IMPORTED,
    Accepted,
    Act,
    Adjudicated,
    AnnotationRow,
    Intents,
    Labelled,
    Proposal,
    Proposed,
    Skipped,
    Struck,
    Withdrawn,
    utterances_of,
)
from harness.model.understanding import Utterance
from harness.statistics.intervals import Share
from harness.understanding.arithmetic.distribution import LabelCounts, count_labels

WITHOUT_SPLIT = ""


@dataclass(frozen=True, slots=True)
class AnnotationReport:
    """Counts of utterances, but where a name says otherwise. Of several batches that name one, the latest counts.

    labelled_before: with labels by hand or by import before the first batch. proposed: named by a batch; consensus: of
    them, with a proposal; refused: two of three agreed, on what the label set refuses (part of without_consensus).
    unanimous: all three votes are what is proposed. struck: by anybody; accepted: by somebody, who labelled it no other
    way since, and struck by nobody; overridden: neither, and labelled by hand otherwise. unreviewed: nobody was there.
    by_hand: final labels come from an annotator's own choice of labels; by_import: from a file; by_review: from an
    accepted proposal. time_s: of annotators at pages and at utterances, where rows tell; cpu_s: of all batches.
    """

    utterances: int = 0
    final: int = 0
    labelled_before: int = 0
    batches: int = 0
    proposed: int = 0
    consensus: int = 0
    refused: int = 0
    unanimous: int = 0
    unanimous_struck: int = 0
    accepted: int = 0
    struck: int = 0
    overridden: int = 0
    unreviewed: int = 0
    by_hand: int = 0
    by_import: int = 0
    by_review: int = 0
    review_time_s: float = 0.0
    hand_time_s: float = 0.0
    cpu_s: float = 0.0
    splits: Mapping[str, LabelCounts] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def without_consensus(self) -> int:
        return self.proposed - self.consensus

    @property
    def struck_share(self) -> Share:
        """Of those labelled by consensus that anybody has looked at."""
        return Share(self.struck + self.overridden, self.consensus - self.unreviewed)

    @property
    def for_person(self) -> Share:
        """Of those proposed: struck, overridden or without consensus, so that a person had to label them."""
        return Share(self.struck + self.overridden + self.without_consensus, self.proposed)

    @property
    def hand_share(self) -> Share:
        """Of all final ones: labelled by a person one by one. What is left of all is saved."""
        return Share(self.by_hand, self.final)


def annotation_report(
    utterances: Sequence[Utterance], rows: Iterable[AnnotationRow], final: Mapping[str, Intents]
) -> AnnotationReport:
    """Counts a project. rows: in the order of the file. final: utterance → its final labels."""
    known = {one.id for one in utterances}
    in_file = list({row.id: row for row in rows}.values())
    gone = {id_ for row in in_file if isinstance(row, Withdrawn) for id_ in row.rows}
    batches = [row for row in in_file if isinstance(row, Proposed)]
    proposals = {one.utterance: one for row in batches for one in row.proposals if one.utterance in known}
    acts: dict[str, list[Act]] = defaultdict(list)
    before: set[str] = set()
    batch_seen = False
    for row in in_file:
        if isinstance(row, Proposed):
            batch_seen = True
        elif not isinstance(row, Withdrawn) and row.id not in gone:
            for id_ in utterances_of(row):
                acts[id_].append(row)
                if not batch_seen and isinstance(row, Labelled):
                    before.add(id_)
    fate = {id_: _fate(one, acts[id_]) for id_, one in proposals.items() if one.intents is not None}
    how = [_how(acts[one.id]) for one in utterances if one.id in final]
    agreed = {id_ for id_ in fate if set(proposals[id_].votes) == {proposals[id_].intents}}
    standing = [row for row in in_file if row.id not in gone]
    return AnnotationReport(
        utterances=len(utterances),
        final=len(how),
        labelled_before=len(before & known),
        batches=len(batches),
        proposed=len(proposals),
        consensus=len(fate),
        refused=sum(one.intents is None and len(set(one.votes)) < len(one.votes) for one in proposals.values()),
        unanimous=len(agreed),
        unanimous_struck=sum(fate[id_] in ("struck", "overridden") for id_ in agreed),
        accepted=_number(fate, "accepted"),
        struck=_number(fate, "struck"),
        overridden=_number(fate, "overridden"),
        unreviewed=_number(fate, "unreviewed"),
        by_hand=how.count("hand"),
        by_import=how.count("import"),
        by_review=how.count("review"),
        review_time_s=_page_time(standing),
        hand_time_s=sum(row.time_s or 0 for row in standing if isinstance(row, Labelled | Adjudicated)),
        cpu_s=sum(_cpu_s(row) for row in batches),
        splits=_splits(utterances, final),
        facts=batches[-1].facts if batches else (),
    )


def _fate(proposal: Proposal, acts: Sequence[Act]) -> str:
    on_it = [row for row in acts if isinstance(row, Accepted | Struck) and row.intents == proposal.intents]
    if any(isinstance(row, Struck) for row in on_it):
        return "struck"
    if on_it and not any(_changed_later(row, acts) for row in on_it):
        return "accepted"
    chosen = [row for row in acts if isinstance(row, Labelled | Adjudicated)]
    if not chosen:
        return "unreviewed"
    return "accepted" if chosen[-1].intents == proposal.intents else "overridden"


def _changed_later(accepted: Act, acts: Sequence[Act]) -> bool:
    """Whether who accepted it has labelled it by hand since."""
    return any(
        isinstance(row, Labelled) and row.annotator == accepted.annotator for row in acts[acts.index(accepted) :]
    )


def _how(acts: Sequence[Act]) -> str:
    """Where final labels come from: the dearest of the ways that was gone."""
    chosen = [row for row in acts if not isinstance(row, Struck | Skipped)]
    if any(isinstance(row, Labelled | Adjudicated) and row.annotator != IMPORTED for row in chosen):
        return "hand"
    return "review" if any(isinstance(row, Accepted) for row in chosen) else "import"


def _number(fate: Mapping[str, str], wanted: str) -> int:
    return sum(one == wanted for one in fate.values())


def _page_time(rows: Sequence[AnnotationRow]) -> float:
    """Rows of one page tell one time."""
    pages: dict[tuple[str, str], float] = {}
    for row in rows:
        if isinstance(row, Accepted | Struck):
            key = row.annotator, row.page
            pages[key] = max(pages.get(key, 0.0), row.time_s or 0.0)
    return sum(pages.values())


def _cpu_s(row: Proposed) -> float:
    try:
        return float(dict(row.facts).get("cpu_s", "0"))
    except ValueError:
        return 0.0


def _splits(utterances: Sequence[Utterance], final: Mapping[str, Intents]) -> dict[str, LabelCounts]:
    by_split: dict[str, list[Utterance]] = defaultdict(list)
    for one in utterances:
        labelled = Utterance(one.id, intents=final.get(one.id))
        by_split[dict(one.groups).get("split", WITHOUT_SPLIT)].append(labelled)
    return {split: count_labels(those) for split, those in by_split.items()}
