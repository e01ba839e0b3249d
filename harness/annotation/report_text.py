"""The results of a project as text, JSON and CSV: how it was labelled, its progress, agreement, and proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness.annotation.agreement import AllAnnotators, AnnotatorPair, SlotAgreement
from harness.annotation.ledger import Ledger, ProjectOutcome, UtteranceState
from harness.annotation.proposal_batch import Material
from harness.annotation.report import AnnotationReport
from harness.annotation.uncertainty import ProjectGuesses
from harness.annotation.view import labels_text, slot_texts
from harness.base.foreign import plain_text
from harness.base.plain_json import to_plain
from harness.base.table import Notes, Occurrences, Part, Table
from harness.base.text_table import Column, join_blocks, shown, text_table
from harness.model.annotation import IMPORTED, AnnotationProject, Intents
from harness.model.choices import EpisodesEnding
from harness.model.numbers import NOTHING, counted, fixed, percent, seconds
from harness.model.understanding import Utterance, joined
from harness.statistics.agreement import Figure, rough_note
from harness.statistics.intervals import Share
from harness.statistics.text import coefficient, coefficient_interval, percent_interval
from harness.understanding.distribution import Distribution, LabelCounts
from harness.understanding.figures import Averages
from harness.understanding.models.tritraining import Episode, TriTraining
from harness.understanding.reports import distribution
from harness.understanding.reports.score_text import per_cent

WIDTH = 120
"""Columns of a text for people."""


def report_lines(report: AnnotationReport, labels: Sequence[str]) -> Iterator[str]:
    """The text of a report for people. labels: all labels, in the order of their set."""
    counts = [Column(""), Column("utterances"), Column("share", left=True)]
    yield from text_table(counts, [(name, f"{count:,}", share) for name, count, share in report_rows(report)], WIDTH)
    yield ""
    if report.facts:
        yield "last batch: " + shown("; ".join(f"{name} {value}" for name, value in report.facts))
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


def report_object(report: AnnotationReport, labels: Sequence[str]) -> dict[str, Any]:
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


def report_csv_rows(report: AnnotationReport, labels: Sequence[str]) -> list[list[str]]:
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
        work = f"{count.accepted} accepted, {count.by_hand} by hand"
        if count.annotator == IMPORTED:
            work = f"{count.by_hand} from files"
        yield f"{plain_text(count.annotator, 64)}: {work}"
    if guessed is not None and guessed.error is not None:
        unlabelled, error = counted(len(guessed.guesses), "utterance"), percent(guessed.error, 2)
        target = f"target {percent(project.target_error, 2)}"
        yield f"a classifier would label the other {unlabelled} with an estimated error of {error} ({target})"
        if guessed.error <= project.target_error:
            command = f"harness understand annotate propose {plain_text(folder, 300)} --method classifier"
            yield f"the target is met. Next: {command}"


def _changed_note(ids: tuple[str, ...]) -> str:
    names = ", ".join(plain_text(id_, 60) for id_ in ids[:MAX_IDS])
    if len(ids) > MAX_IDS:
        names += ", …"
    subject = counted(len(ids), "settled utterance was", "settled utterances were")
    pronoun = "it" if len(ids) == 1 else "them"
    sentence = f"{subject} labelled differently since: {names}; the settled labels stay"
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


MAX_LISTED = 15
"""Number of kinds of differences that are listed for a pair."""


NOTHING_SHARED = "no utterance was labelled by two of the annotators compared"


def agreement_lines(pairs: Sequence[AnnotatorPair], joint: AllAnnotators | None) -> Iterator[str]:
    """The text of the results for people: each pair, then all annotators together."""
    parts = [part for pair in pairs for part in _pair_parts(pair)]
    if not pairs:
        parts.append(Notes([("", NOTHING_SHARED)]))
    if joint is not None and joint.shared:
        names = ", ".join(map(_shown_name, joint.annotators))
        shared = counted(joint.shared, "utterance")
        title = f"all {len(joint.annotators)} together ({names}): {shared} labelled by two or more"
        parts += [_title_notes(title, joint.shared), _figure_table(_alpha_rows(joint.masi, joint.nominal))]
    return join_blocks(*(part.lines(WIDTH, MAX_LISTED if part.kind == "occurrences" else None) for part in parts))


def _pair_parts(pair: AnnotatorPair) -> Iterator[Part]:
    """The tables and notes on one pair: metrics, labels, concepts, and the most frequent differences."""
    figures, slots = pair.figures, pair.slots
    names = f"{_shown_name(pair.first)} and {_shown_name(pair.second)}"
    yield _title_notes(f"{names}: {counted(figures.shared, 'utterance')} labelled by both", figures.shared)
    rows = [("same labels", *_share_cells(figures.exact)), ("mean Jaccard", *_figure_cells(figures.jaccard))]
    rows += _alpha_rows(figures.masi, figures.nominal)
    if slots is not None:
        rows += [("slot F1", *_figure_cells(slots.exact)), ("slot F1, overlapping", *_figure_cells(slots.overlapping))]
    yield _figure_table(rows)
    if not pair.differing:
        yield Notes([("", "they agree on every utterance")])
    columns = [Column("label"), *map(Column, ("both", "1st", "2nd", "kappa")), Column("95 % interval", left=True)]
    yield Table.of(
        columns,
        [
            (row.label, str(row.both), str(row.first), str(row.second), *_figure_cells(row.kappa))
            for row in figures.labels
            if row.both + row.first + row.second
        ],
    )
    yield Notes([("", "1st, 2nd: only that annotator gave it")])
    if slots is not None and slots.concepts:
        columns = [Column("concept"), *map(Column, ("both", "1st", "2nd"))]
        yield Table.of(columns, [(name, *map(str, counts)) for name, *counts in slots.concepts])
    if figures.confusion:
        sides = [
            (tuple(_shown_labels(tuple(sorted(labels))) for labels in (first, second)), count)
            for first, second, count in figures.confusion
        ]
        yield Occurrences("utterances where they differ, first → second", sides)


def _title_notes(title: str, utterances: int) -> Notes:
    return Notes([("", line) for line in (title, *rough_note(utterances))])


def _alpha_rows(masi: Figure, nominal: Figure) -> list[tuple[str, str, str]]:
    return [("alpha, MASI", *_figure_cells(masi)), ("alpha, whole sets", *_figure_cells(nominal))]


def _figure_table(rows: Sequence[tuple[str, str, str]]) -> Table[Sequence[str]]:
    return Table.of([Column("agreement"), Column("value"), Column("95 % interval", left=True)], rows)


def differing_lines(pairs: Sequence[AnnotatorPair], utterances: Sequence[Utterance], ledger: Ledger) -> Iterator[str]:
    """The text for people of the utterances to which two annotators gave different labels or slots."""
    words = {utterance.id: utterance.words for utterance in utterances}
    for pair in pairs:
        yield f"{_shown_name(pair.first)} and {_shown_name(pair.second)}: {counted(len(pair.differing), 'utterance')}"
        for id_ in pair.differing:
            choices = ledger.independent_choices(id_)
            yield f"{plain_text(id_, 80)}: {plain_text(' '.join(words[id_]), 400)}"
            for name in (pair.first, pair.second):
                slots = slot_texts(words[id_], ledger.slots(id_, choices[name]) or ())
                yield f"    {_shown_name(name)}: {_shown_labels(choices[name].intents, slots)}"


def agreement_object(pairs: Sequence[AnnotatorPair], joint: AllAnnotators | None) -> dict[str, Any]:
    """The agreement of pairs and of all annotators as JSON."""
    of_all = None
    if joint is not None:
        of_all = {
            "annotators": list(joint.annotators),
            "shared": joint.shared,
            "alpha_masi": to_plain(joint.masi),
            "alpha_nominal": to_plain(joint.nominal),
        }
    return {"pairs": [_pair_object(pair) for pair in pairs], "all": of_all}


def _pair_object(pair: AnnotatorPair) -> dict[str, Any]:
    figures, exact = pair.figures, pair.figures.exact
    return {
        "annotators": [pair.first, pair.second],
        "shared": figures.shared,
        "exact": {"count": exact.count, "total": exact.total, "value": exact.value, "interval": exact.interval},
        "jaccard": to_plain(figures.jaccard),
        "alpha_masi": to_plain(figures.masi),
        "alpha_nominal": to_plain(figures.nominal),
        "labels": {
            row.label: {key: value for key, value in to_plain(row).items() if key != "label"} for row in figures.labels
        },
        "confusion": [
            {"first": sorted(first), "second": sorted(second), "utterances": count}
            for first, second, count in figures.confusion
        ],
        "differing": list(pair.differing),
        "slots": None if pair.slots is None else _slots_object(pair.slots),
    }


def _slots_object(slots: SlotAgreement) -> dict[str, Any]:
    return {
        "f1": to_plain(slots.exact),
        "f1_overlapping": to_plain(slots.overlapping),
        "concepts": {
            name: {"both": both, "first": first, "second": second} for name, both, first, second in slots.concepts
        },
    }


def span_rows(
    utterances: Sequence[Utterance], ledger: Ledger, included: Collection[str] = ()
) -> Iterator[tuple[str, ...]]:
    """Rows (annotator, concept, begin, end), one per slot, as `Continuum.from_csv` of pygamma-agreement reads them.

    Only utterances that two or more of the annotators marked count. Begin and end are numbers of words, counted through
    all these utterances; the end is exclusive.

    included: names of the annotators to include, empty for all.
    """
    offset = 0
    for utterance in utterances:
        slots_by_name = {
            name: ledger.slots(utterance.id, row)
            for name, row in ledger.independent_choices(utterance.id).items()
            if not included or name in included
        }
        marked_slots = {name: slots for name, slots in slots_by_name.items() if slots is not None}
        if len(marked_slots) < 2:
            continue
        for name, slots in marked_slots.items():
            yield from (
                (name, slot.concept, str(offset + (slot.start or 0)), str(offset + (slot.end or 0))) for slot in slots
            )
        offset += len(utterance.words)


def _figure_cells(figure: Figure) -> tuple[str, str]:
    why_not = f": {figure.why_not}" if figure.interval is None and figure.why_not else ""
    return coefficient(figure.value), coefficient_interval(figure.interval) + why_not


def _share_cells(share: Share) -> tuple[str, str]:
    if share.interval is None:
        return NOTHING, NOTHING
    return percent(share.value), f"{percent_interval(share.interval)} ({share.count} of {share.total})"


def _shown_name(name: str) -> str:
    return plain_text(name, 64)


def _shown_labels(intents: Intents, slots: Sequence[str] = ()) -> str:
    return plain_text(labels_text(intents, slots), 2000)


ENDINGS = {
    EpisodesEnding.SETTLED: "almost nothing changed",
    EpisodesEnding.CIRCLING: "the labels taught are the same as in an earlier episode",
    EpisodesEnding.MOST: "the maximum number of episodes",
}


def material_lines(material: Material, classifier: str) -> Iterator[str]:
    """The text for people, before the training: how many utterances are in each part of the material."""
    yield (
        f"{shown(classifier, 60)}: trained on {len(material.train)}, held out {len(material.held_out)}, "
        f"{counted(len(material.unlabelled), 'utterance')} to propose for"
    )
    if material.wordless:
        yield f"{counted(material.wordless, 'utterance')} without words left out"


def episode_line(episode: Episode, triads: int) -> str:
    """The text for people: the result of one episode. triads: the number of triads that the training tries."""
    triad = f"triad {episode.triad + 1}, " if triads > 1 else ""
    right = (
        f"{episode.exact.count} of {episode.exact.total} held-out utterances right, CPU time {seconds(episode.cpu_s)}"
    )
    if not episode.number:
        return f"{triad}on the samples only: {right}"
    taught = " + ".join(map(str, episode.taught))
    return f"{triad}episode {episode.number}: taught {taught} texts, {episode.changed} changed, {right}"


def training_lines(training: TriTraining) -> Iterator[str]:
    """The text for people, after the training: how it ended, its results, and how many proposals it made."""
    figures = training.figures
    if training.rule.triads > 1:
        yield f"kept triad {training.best.number + 1}, the best on the held-out utterances"
    yield f"ended: {ENDINGS[training.best.ending]}"
    right = figures.exact
    yield (
        f"held out: EMR {percent(right.value, 2)} ({right.count} of {right.total}, "
        f"{training.held_out_without_consensus} without consensus, counted as wrong)"
    )
    yield f"  averaged over utterances: {_averages(figures.samples)}"
    yield f"  averaged over {len(figures.labels)} declared labels: {_averages(figures.macro)}"
    unpredicted = [name for name in figures.never_predicted if name not in training.absent]
    if unpredicted:
        yield f"  never predicted there: {', '.join(shown(label, 60) for label in unpredicted)}"
    if training.absent:
        yield f"in no labelled utterance, so never proposed: {', '.join(shown(label, 60) for label in training.absent)}"
    if training.known_texts:
        texts = counted(training.known_texts, "unlabelled utterance has", "unlabelled utterances have")
        yield f"{texts} the same text as a labelled one"
    if training.shared_texts:
        shared = counted(
            training.shared_texts, "held-out text is also a training text", "held-out texts are also training texts"
        )
        yield f"{shared}: results are optimistic"
    labelled = [vote for vote in training.voted if vote.intents is not None]
    total = len(training.voted)
    yield (
        f"proposed for {len(labelled)} of {total} by consensus ({percent(len(labelled) / total, 2)}), "
        f"all three agree on {sum(vote.unanimous for vote in labelled)}; without consensus {total - len(labelled)}"
    )
    for reason, count in Counter(vote.refused for vote in training.voted if vote.refused).most_common(3):
        yield f"  for {count} of the latter, two agree on labels that the label set forbids: {shown(reason, 120)}"
    yield f"CPU time {seconds(training.cpu_s)}"


def _averages(averages: Averages) -> str:
    precision, recall, f1 = (percent(share, 2) for share in (averages.precision, averages.recall, averages.f1))
    return f"precision {precision}, recall {recall}, F1 {f1}"
