"""Reports on a project, from its rows: how its utterances were labelled, how many were struck, and the time it took.

The counts follow section 3.1.4 of the seed: labelled by consensus, without consensus, struck.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from harness.model.annotation import (
    IMPORTED,
    Accepted,
    Act,
    Adjudicated,
    AnnotationRow,
    Intents,
    Labelled,
    LabelProposal,
    Proposed,
    Skipped,
    Struck,
    Withdrawn,
    utterances_of,
)
from harness.model.frozen import frozen
from harness.model.understanding import Utterance
from harness.statistics.intervals import Share
from harness.understanding.distribution import LabelCounts, count_labels


@frozen
class AnnotationReport:
    """Counts of utterances, unless a field says otherwise. If several batches have an utterance, the latest counts."""

    utterances: int = 0
    final: int = 0
    labelled_before: int = 0
    """Those that were labelled by hand or import before the first batch."""
    batches: int = 0
    proposed: int = 0
    """Those in a batch."""
    consensus: int = 0
    """Those in a batch, with proposed labels. Each is accepted, struck, overridden or unreviewed."""
    refused: int = 0
    """Those without proposed labels, although two of three votes agree: the label set forbids their labels."""
    unanimous: int = 0
    """Those of which all votes equal the proposal, if several classifiers voted."""
    unanimous_struck: int = 0
    """Those of `unanimous` that were struck or overridden."""
    accepted: int = 0
    """Not struck. Somebody accepted the proposal and kept it, or the last labels by hand equal it."""
    struck: int = 0
    overridden: int = 0
    """Not struck, and the last labels by hand differ from the proposal."""
    unreviewed: int = 0
    """Nobody reviewed the proposal or labelled the utterance."""
    by_hand: int = 0
    """Those with final labels that were given by hand (`_label_source`)."""
    by_import: int = 0
    """Those with final labels from a file."""
    by_review: int = 0
    """Those with final labels from accepted proposals."""
    review_time_s: float = 0.0
    """Time of annotators at pages, for rows that have a time."""
    hand_time_s: float = 0.0
    """Time of annotators at labelling by hand, for rows that have a time."""
    cpu_s: float = 0.0
    splits: Mapping[str, LabelCounts] = field(default_factory=dict)
    """Counts of final labels by split; "" for utterances without a split."""
    facts: tuple[tuple[str, str], ...] = ()
    """The facts of the last batch."""

    @property
    def without_consensus(self) -> int:
        return self.proposed - self.consensus

    @property
    def struck_share(self) -> Share:
        """The share of proposals that were struck or overridden, among those that somebody reviewed."""
        return Share(self.struck + self.overridden, self.consensus - self.unreviewed)

    @property
    def for_person(self) -> Share:
        """The share of utterances in a batch that a person had to label: struck, overridden, or without consensus."""
        return Share(self.struck + self.overridden + self.without_consensus, self.proposed)

    @property
    def hand_share(self) -> Share:
        """The share of final labels that a person gave by hand, one utterance at a time. The rest is work saved."""
        return Share(self.by_hand, self.final)


def annotation_report(
    utterances: Sequence[Utterance], rows: Iterable[AnnotationRow], final: Mapping[str, Intents]
) -> AnnotationReport:
    """Counts the utterances of a project.

    - rows: in the order of the file.
    - final: id → final labels of an utterance.
    """
    ids = {utterance.id for utterance in utterances}
    distinct_rows = list({row.id: row for row in rows}.values())
    withdrawn = {id_ for row in distinct_rows if isinstance(row, Withdrawn) for id_ in row.rows}
    batches = [row for row in distinct_rows if isinstance(row, Proposed)]
    proposals = {
        proposal.utterance: proposal for row in batches for proposal in row.proposals if proposal.utterance in ids
    }
    acts: dict[str, list[Act]] = defaultdict(list)
    labelled_before: set[str] = set()
    has_batch = False
    for row in distinct_rows:
        if isinstance(row, Proposed):
            has_batch = True
        elif not isinstance(row, Withdrawn) and row.id not in withdrawn:
            for id_ in utterances_of(row):
                acts[id_].append(row)
                if not has_batch and isinstance(row, Labelled):
                    labelled_before.add(id_)
    outcome_by_id = {
        id_: _review_outcome(proposal, acts[id_]) for id_, proposal in proposals.items() if proposal.intents is not None
    }
    sources = [_label_source(acts[utterance.id]) for utterance in utterances if utterance.id in final]
    outcomes = Counter(outcome_by_id.values())
    unanimous_ids = {
        id_
        for id_ in outcome_by_id
        if len(proposals[id_].votes) > 1 and set(proposals[id_].votes) == {proposals[id_].intents}
    }
    counted_rows = [row for row in distinct_rows if row.id not in withdrawn]
    return AnnotationReport(
        utterances=len(utterances),
        final=len(sources),
        labelled_before=len(labelled_before & ids),
        batches=len(batches),
        proposed=len(proposals),
        consensus=len(outcome_by_id),
        refused=sum(
            proposal.intents is None and len(set(proposal.votes)) < len(proposal.votes)
            for proposal in proposals.values()
        ),
        unanimous=len(unanimous_ids),
        unanimous_struck=sum(outcome_by_id[id_] in ("struck", "overridden") for id_ in unanimous_ids),
        accepted=outcomes["accepted"],
        struck=outcomes["struck"],
        overridden=outcomes["overridden"],
        unreviewed=outcomes["unreviewed"],
        by_hand=sources.count("hand"),
        by_import=sources.count("import"),
        by_review=sources.count("review"),
        review_time_s=_total_time_s(
            ((row.annotator, row.page), row.time_s) for row in counted_rows if isinstance(row, Accepted | Struck)
        ),
        # An utterance saved again after its proposal was shown has two rows, and the second time includes the first.
        hand_time_s=_total_time_s(
            ((row.annotator, row.utterance, row.shown_wall_s), row.time_s)
            for row in counted_rows
            if isinstance(row, Labelled | Adjudicated)
        ),
        cpu_s=sum(_cpu_s(row) for row in batches),
        splits=_counts_by_split(utterances, final),
        facts=batches[-1].facts if batches else (),
    )


def _review_outcome(proposal: LabelProposal, acts: Sequence[Act]) -> str:
    """The field of `AnnotationReport` that counts a proposal, from the rows about its utterance."""
    reviews = [row for row in acts if isinstance(row, Accepted | Struck) and row.intents == proposal.intents]
    if any(isinstance(row, Struck) for row in reviews):
        return "struck"
    if reviews and not any(_was_relabelled(row, acts) for row in reviews):
        return "accepted"
    hand_rows = [row for row in acts if isinstance(row, Labelled | Adjudicated)]
    if not hand_rows:
        return "unreviewed"
    return "accepted" if hand_rows[-1].intents == proposal.intents else "overridden"


def _was_relabelled(accepted: Act, acts: Sequence[Act]) -> bool:
    """Whether the annotator who accepted the proposal labelled the utterance by hand later. acts: rows about it."""
    return any(
        isinstance(row, Labelled) and row.annotator == accepted.annotator for row in acts[acts.index(accepted) :]
    )


def _label_source(acts: Sequence[Act]) -> str:
    """Where final labels come from: "hand", "review" or "import", the first of these that occurs in the rows."""
    counting_acts = [act for act in acts if not isinstance(act, Struck | Skipped)]
    if any(isinstance(act, Labelled | Adjudicated) and act.annotator != IMPORTED for act in counting_acts):
        return "hand"
    return "review" if any(isinstance(act, Accepted) for act in counting_acts) else "import"


def _total_time_s(times: Iterable[tuple[tuple[object, ...], float | None]]) -> float:
    """The time of all rows in seconds, from (what was on screen, time of a row). Rows of one screen share its time."""
    screens: dict[tuple[object, ...], float] = {}
    for screen, time_s in times:
        screens[screen] = max(screens.get(screen, 0.0), time_s or 0.0)
    return sum(screens.values())


def _cpu_s(row: Proposed) -> float:
    """The CPU time that the facts of a batch state; 0 if they state none, or something else than a number."""
    try:
        return float(dict(row.facts).get("cpu_s", "0"))
    except ValueError:
        return 0.0


def _counts_by_split(utterances: Sequence[Utterance], final: Mapping[str, Intents]) -> dict[str, LabelCounts]:
    by_split: dict[str, list[Utterance]] = defaultdict(list)
    for utterance in utterances:
        labelled = Utterance(utterance.id, intents=final.get(utterance.id))
        by_split[dict(utterance.groups).get("split", "")].append(labelled)
    return {split: count_labels(members) for split, members in by_split.items()}
