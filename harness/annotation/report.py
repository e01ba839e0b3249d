"""Reports on a project, from its rows: how its utterances were labelled, how many were struck, and the time it took.

The counts follow section 3.1.4 of the seed: labelled by consensus, without consensus, struck.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from harness.annotation.ledger import ProjectOutcome, UtteranceState
from harness.annotation.uncertainty import ProjectGuesses
from harness.base.foreign import plain_text
from harness.base.plain_json import to_plain
from harness.base.text_table import Column, shown, text_table
from harness.model.annotation import (
    IMPORTED,
    Accepted,
    Act,
    Adjudicated,
    AnnotationProject,
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
from harness.model.numbers import counted, fixed, percent, seconds
from harness.model.understanding import Utterance, joined
from harness.statistics.intervals import Share
from harness.understanding.reports import distribution
from harness.understanding.reports.distribution import Distribution, LabelCounts, count_labels
from harness.understanding.reports.score_text import per_cent


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
    """Counts the utterances of a project. rows: in the order of the file. final: id → final labels of an utterance."""
    ids = {utterance.id for utterance in utterances}
    distinct_rows = list({row.id: row for row in rows}.values())
    withdrawn = {id_ for row in distinct_rows if isinstance(row, Withdrawn) for id_ in row.rows}
    batches = [row for row in distinct_rows if isinstance(row, Proposed)]
    proposals = {
        proposal.utterance: proposal for row in batches for proposal in row.proposals if proposal.utterance in ids
    }
    acts: dict[str, list[Act]] = defaultdict(list)
    labelled_before: set[str] = set()
    batch_seen = False
    for row in distinct_rows:
        if isinstance(row, Proposed):
            batch_seen = True
        elif not isinstance(row, Withdrawn) and row.id not in withdrawn:
            for id_ in utterances_of(row):
                acts[id_].append(row)
                if not batch_seen and isinstance(row, Labelled):
                    labelled_before.add(id_)
    outcome_by_id = {
        id_: _review_outcome(proposal, acts[id_]) for id_, proposal in proposals.items() if proposal.intents is not None
    }
    sources = [_label_source(acts[utterance.id]) for utterance in utterances if utterance.id in final]
    outcomes = Counter(outcome_by_id.values())
    unanimous = {
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
        unanimous=len(unanimous),
        unanimous_struck=sum(outcome_by_id[id_] in ("struck", "overridden") for id_ in unanimous),
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
    labelled_by_hand = [row for row in acts if isinstance(row, Labelled | Adjudicated)]
    if not labelled_by_hand:
        return "unreviewed"
    return "accepted" if labelled_by_hand[-1].intents == proposal.intents else "overridden"


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


WIDTH = 120


def lines(report: AnnotationReport, labels: Sequence[str]) -> Iterator[str]:
    """The text of a report for people. labels: all labels, in the order of their set."""
    counts = [Column(""), Column("utterances"), Column("share", left=True)]
    yield from text_table(counts, [(name, f"{count:,}", share) for name, count, share in report_rows(report)], WIDTH)
    yield ""
    if report.facts:
        yield "last batch: " + shown(", ".join(f"{name} {value}" for name, value in report.facts))
    annotators_time = f"{_minutes(report.review_time_s)} on proposal pages, {_minutes(report.hand_time_s)} by hand"
    yield f"CPU time of classifiers {seconds(report.cpu_s)}; annotators {annotators_time}"
    yield ""
    yield "final labels; an utterance without them counts as not annotated"
    splits = tuple((split or "-", counts) for split, counts in report.splits.items())
    yield from distribution.lines(Distribution(splits, tuple(labels)), WIDTH, 0)


def report_rows(report: AnnotationReport) -> list[tuple[str, int, str]]:
    """Rows (name of the count, number of utterances, share as text). The share is "" where there is none."""
    return [
        ("utterances", report.utterances, ""),
        ("labelled before any proposal", report.labelled_before, ""),
        ("proposed for", report.proposed, ""),
        ("  labelled by consensus", report.consensus, _share_of(report.consensus, report.proposed, "of these")),
        ("    all three agree", report.unanimous, _share_of(report.unanimous, report.consensus, "of consensus")),
        ("      of these struck", report.unanimous_struck, _share_of(report.unanimous_struck, report.unanimous, "")),
        ("    accepted", report.accepted, ""),
        ("    struck", report.struck, ""),
        ("    relabelled without striking", report.overridden, ""),
        ("      both, of those reviewed", report.struck + report.overridden, _share(report.struck_share)),
        ("    not reviewed yet", report.unreviewed, ""),
        ("  without consensus", report.without_consensus, _share_of(report.without_consensus, report.proposed, "")),
        ("    agreed, but forbidden by the label set", report.refused, ""),
        ("  left for a person", report.for_person.count, _share(report.for_person)),
        ("final", report.final, _share_of(report.final, report.utterances, "of all")),
        ("  by accepting proposals", report.by_review, ""),
        ("  from files", report.by_import, ""),
        ("  labelled by a person, one by one", report.by_hand, _share(report.hand_share)),
    ]


def as_json(report: AnnotationReport, labels: Sequence[str]) -> dict[str, Any]:
    """The report as JSON. A share is given as a count and its total, so that shares of reports can be added."""
    fields: dict[str, Any] = to_plain(replace(report, splits={}, facts=()))
    del fields["splits"], fields["facts"]
    shares = {name: getattr(report, name) for name in ("struck_share", "for_person", "hand_share")}
    return {
        **fields,
        "without_consensus": report.without_consensus,
        **{name: {"count": share.count, "of": share.total} for name, share in shares.items()},
        "last_batch": dict(report.facts),
        "splits": {split: _split_object(counts, labels) for split, counts in report.splits.items()},
    }


def _split_object(counts: LabelCounts, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "utterances": counts.utterances,
        "not_final": counts.unannotated,
        "labels": {label: counts.labels.get(label, 0) for label in labels},
        "combinations": {joined(intents): count for intents, count in sorted(counts.sets.items())},
    }


def as_table(report: AnnotationReport, labels: Sequence[str]) -> list[list[str]]:
    """The report as rows (section, split, what, count), after a header."""
    table = [["section", "split", "what", "count"]]
    table += [["utterances", "", name.strip(), str(count)] for name, count, _ in report_rows(report)]
    for name in ("review_time_s", "hand_time_s", "cpu_s"):
        table.append(["seconds", "", name, fixed(getattr(report, name), 1)])
    for split, counts in report.splits.items():
        table += [["label", split, label, str(counts.labels.get(label, 0))] for label in labels]
        table += [["combination", split, joined(intents), str(count)] for intents, count in sorted(counts.sets.items())]
    return table


def _share_of(count: int, total: int, basis: str) -> str:
    return f"{per_cent(count / total if total else None)} {basis}".strip()


def _share(share: Share) -> str:
    return f"{per_cent(share.count / share.total if share.total else None)} of {share.total}"


def _minutes(time_s: float) -> str:
    return fixed(time_s / 60, 1, "min")


MEANINGS = {
    UtteranceState.OPEN: "not labelled, and no labels are proposed",
    UtteranceState.PROPOSED: "labels are proposed, not reviewed yet",
    UtteranceState.STRUCK: "the proposal was struck; label by hand",
    UtteranceState.WAITING: "labelled once, waiting for a second annotator",
    UtteranceState.DISPUTED: "annotators disagree; settle with --adjudicate",
    UtteranceState.SINGLE: "final: labelled by one annotator",
    UtteranceState.AGREED: "final: two annotators agree",
    UtteranceState.ADJUDICATED: "final: settled",
}
MAX_IDS = 3
"""Number of ids in a note on utterances that were labelled differently after they were settled."""


def outcome_lines(
    project: AnnotationProject,
    label_set: str,
    progress: ProjectOutcome,
    guessed: ProjectGuesses | None,
    folder: str,
    width: int,
) -> Iterator[str]:
    """The text for people: the progress of a project.

    - guessed: guesses of a classifier for the unlabelled utterances; None without them.
    - folder: path of the project, for commands.
    - width: columns of the text.
    """
    labels = plain_text(label_set, 64)
    yield f"project {plain_text(project.id, 100)}: {counted(progress.total, 'utterance')}, label set {labels}"
    if progress.double_count:
        yield f"{counted(progress.double_count, 'utterance')} for two annotators"
    yield f"{progress.final} of {progress.total} final"
    columns = Column("state"), Column("utterances"), Column("meaning", left=True)
    states = [(state.value, f"{count:,}", MEANINGS[state]) for state, count in progress.states.items() if count]
    yield from ("", *text_table(columns, states, width), "")
    if progress.changed:
        yield _changed_note(progress.changed)
    yield f"batches of proposals: {progress.batches}"
    for count in progress.annotators:
        counts = f"{count.accepted} accepted, {count.by_hand} by hand"
        if count.annotator == IMPORTED:
            counts = f"{count.by_hand} from files"
        yield f"{plain_text(count.annotator, 64)}: {counts}"
    if guessed is not None and guessed.error is not None:
        rest, error = counted(len(guessed.guesses), "utterance"), percent(guessed.error, 2)
        target = f"target {percent(project.target_error, 2)}"
        yield f"a classifier would label the other {rest} with an estimated error of {error} ({target})"
        if guessed.error <= project.target_error:
            command = f"harness understand annotate propose {plain_text(folder, 300)} --method classifier"
            yield f"the target is met. Next: {command}"


def _changed_note(ids: tuple[str, ...]) -> str:
    names = ", ".join(plain_text(id_, 60) for id_ in ids[:MAX_IDS])
    if len(ids) > MAX_IDS:
        names += ", …"
    verb, pronoun = ("was", "it") if len(ids) == 1 else ("were", "them")
    sentence = f"{len(ids)} of them {verb} labelled differently since: {names}; the settled labels stay"
    command = f"harness understand annotate review PROJECT --adjudicate; press /, type {plain_text(ids[0], 60)}"
    return f"{'':10}{sentence}. To settle {pronoun} again: {command}"


def outcome_object(
    project: AnnotationProject, label_set: str, progress: ProjectOutcome, guessed: ProjectGuesses | None = None
) -> dict[str, Any]:
    """The progress of a project as JSON, with the content of `outcome_lines`."""
    return {
        "project": project.id,
        "label_set": label_set,
        "utterances": progress.total,
        "final": progress.final,
        "double": progress.double_count,
        "batches": progress.batches,
        "states": {state.value: number for state, number in progress.states.items()},
        "changed_since_settled": list(progress.changed),
        "annotators": to_plain(progress.annotators),
        "estimated_error": None if guessed is None else guessed.error,
        "target_error": project.target_error,
    }
