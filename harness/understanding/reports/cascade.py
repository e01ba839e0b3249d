"""A cascade as lines, JSON and a page: metrics on both sides, groups, and frames broken by recognition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from harness import __version__
from harness.base.pages import filled_page
from harness.base.plain_json import Json, picked, to_plain
from harness.base.table import NO_LABEL, Field, Notes, Section, Table
from harness.base.text_table import join_blocks, shown
from harness.model.choices import LISTED_UTTERANCES as LISTED
from harness.model.numbers import NOTHING, percent, points
from harness.model.understanding import Utterance, joined
from harness.statistics.ratios import MetricDifference
from harness.transcripts.groups import interval_of
from harness.transcripts.reports.scoring_json import counts_of
from harness.transcripts.reports.text import wer_in_words
from harness.understanding.cascade import Cascade, CascadeGroup, CascadeUtterance, FrameChange
from harness.understanding.comparison import Metric
from harness.understanding.counts import Rule, slot_items
from harness.understanding.figures import frame_figures
from harness.understanding.reports.score_json import counts_json, rule_json
from harness.understanding.reports.score_text import (
    DIFFERENCE_FIELDS,
    IN_POINTS,
    MAX_ROWS,
    NOTE_WIDTH,
    DifferenceRow,
    chunking_in_words,
    details_in_words,
    listed,
    zero_in_words,
)

NONE = "none"
NO_WORDS = "(nothing)"


def frame_in_words(utterance: Utterance, rule: Rule) -> str:
    """A frame in words, not escaped: `book#greet; city: Nice, date: Monday`.

    Concepts have the form in which they are compared.
    """
    intents = NOTHING if utterance.intents is None else joined(utterance.intents) or NONE
    return f"{intents}; {_slots_in_words(utterance, rule)}"


def _slots_in_words(utterance: Utterance, rule: Rule) -> str:
    if utterance.tags is None and utterance.slots is not None:
        pairs = [(rule.concept(slot.concept), slot.value or "") for slot in utterance.slots]
    else:
        slots = slot_items(utterance, rule)
        if slots is None:
            return f"slots {NOTHING}"
        places = ((slot.concept, slot.place or (0, 0)) for slot in slots)
        pairs = [(concept, " ".join(utterance.words[start:end])) for concept, (start, end) in places]
    return ", ".join(f"{concept}: {value}" if value else concept for concept, value in pairs) or "no slots"


def changes(utterance: CascadeUtterance, rule: Rule) -> str:
    """The intents and concepts that the model predicts only for the reference (−), and only for the transcript (+)."""
    before, after = (_part_counts(side, rule) for side in (utterance.before.predicted, utterance.after.predicted))
    lost, added = before - after, after - before
    return " ".join(
        [*(f"−{part}" for part in sorted(lost.elements())), *(f"+{part}" for part in sorted(added.elements()))]
    )


def _part_counts(utterance: Utterance, rule: Rule) -> Counter[str]:
    return Counter([*(utterance.intents or ()), *(slot.concept for slot in slot_items(utterance, rule) or ())])


MAX_TEXT_CHARS = 200
NAMES = {
    Metric.EMR: "EMR (exact match)",
    Metric.ACCURACY: "intent accuracy",
    Metric.SAMPLES_F1: "intent F1, samples",
    Metric.MACRO_F1: "intent F1, macro",
    Metric.MICRO_F1: "intent F1, micro",
    Metric.F1MH: "F1mh",
    Metric.CER: "CER",
    Metric.SFA: "SFA, by concepts",
    Metric.VALUED_F1MH: "F1mh with values",
    Metric.VALUED_CER: "CER with values",
    Metric.VALUED_SFA: "SFA with values",
}
GROUP_METRICS = (Metric.EMR, Metric.SFA, Metric.CER)
CHANGE_NAMES = {
    FrameChange.KEPT: "right on both",
    FrameChange.BROKEN: "broken by recognition",
    FrameChange.REVALUED: "right on both except slot values",
    FrameChange.MENDED: "right on the transcript only",
    FrameChange.WRONG: "wrong on both",
}
_PLACES_NOTE = "n/a on transcripts, whose words differ"


def metric_table(group: CascadeGroup) -> Table[DifferenceRow]:
    """A row for each metric. Metrics with values are included only if both sides have values."""
    fields: tuple[Field[DifferenceRow], ...] = (
        Field("", "metric", lambda row: row[0]),
        Field("", "reference", lambda row: percent(row[1].second, 2)),
        Field("", "transcript", lambda row: percent(row[1].first, 2)),
        *DIFFERENCE_FIELDS,
    )
    rows = [(NAMES[metric], difference) for metric, difference in group.differences.items() if metric in NAMES]
    return Table(fields, [row for row in rows if not row[0].endswith("with values") or row[1].first is not None])


GroupRow = tuple[str, CascadeGroup]


def group_table(column: str, labels: Sequence[GroupRow]) -> Table[GroupRow]:
    """A row for each label of a column, with metrics on the references and on the transcripts."""
    fields: list[Field[GroupRow]] = [
        Field("", column, lambda row: row[0] or NO_LABEL),
        Field("", "utterances", lambda row: f"{row[1].words.sentences:,}"),
        Field("", "WER", lambda row: percent(row[1].words.wer, 2)),
    ]
    for metric in GROUP_METRICS:
        fields += _metric_fields(metric)
    return Table(fields, labels)


def _metric_fields(metric: Metric) -> list[Field[GroupRow]]:
    def difference(row: GroupRow) -> MetricDifference:
        return row[1].differences[metric]

    return [
        Field("", metric.name, lambda row: percent(difference(row).second, 2)),
        Field("", "heard", lambda row: percent(difference(row).first, 2)),
        Field("", "diff.", lambda row: points(difference(row).difference), main=True),
    ]


def slot_f1(counts: Cascade) -> float | None:
    """Slot F1 by places, on the references only."""
    return frame_figures(counts.placed).slots.micro.f1


def sections(cascade: Cascade, notes: Sequence[tuple[str, str]] = (), ids: int = 5) -> Iterator[Section]:
    """All sections except the utterances.

    - notes: names and texts on what was compared.
    - ids: number of ids that are listed with a count of utterances.
    """
    basis = [
        ("gold", shown(cascade.pairs.gold.path, MAX_TEXT_CHARS)),
        ("heard", shown(cascade.pairs.heard.path, MAX_TEXT_CHARS)),
        ("utterances", f"{len(cascade.utterances):,}, compared without positions"),
        ("chunking", chunking_in_words(cascade.rule)),
        ("concepts", details_in_words([cascade.rule])),
        ("0/0", zero_in_words(cascade.zero)),
    ]
    yield Section("basis", "Basis", (Notes([*basis, *notes], NOTE_WIDTH),))
    words = cascade.words
    wer = f"{wer_in_words(cascade.total.words, interval_of(words))}; words compared as {words.normalisation}"
    pairs = [
        ("difference", f"transcript minus reference, {IN_POINTS}"),
        ("WER", wer),
        ("slot F1", f"{percent(slot_f1(cascade), 2)} with positions on the reference; {_PLACES_NOTE}"),
        (
            "frames",
            ", ".join(f"{len(cascade.utterances_with(change)):,} {name}" for change, name in CHANGE_NAMES.items()),
        ),
    ]
    silent = "counted as empty" if cascade.pairs.missing_is_silence else "unknown, not counted"
    for name, utterances, effect in (
        ("no transcript", cascade.pairs.without_transcript, silent),
        ("no gold", cascade.pairs.without_gold, "not counted"),
        ("not annotated", cascade.pairs.unannotated, "not counted"),
    ):
        if utterances:
            pairs.append((name, f"{listed(utterances, ids)}: {effect}"))
    for column, labels in cascade.too_many:
        name = shown(column, MAX_TEXT_CHARS)
        pairs.append(("no group", f"{name} has {labels:,} labels, too many to group by (use --by {name})"))
    yield Section("figures", "Effect of recognition errors", (metric_table(cascade.total), Notes(pairs, NOTE_WIDTH)))
    if cascade.groups:
        yield Section("groups", "Groups", [group_table(column, labels) for column, labels in cascade.groups])


def lines(
    cascade: Cascade, width: int, *, notes: Sequence[tuple[str, str]] = (), max_listed: int = LISTED
) -> Iterator[str]:
    """The whole report.

    - notes: as for `sections`.
    - max_listed: number of utterances of each change that are listed; 0 for all.
    """
    yield from join_blocks(*(section.lines(width, MAX_ROWS) for section in sections(cascade, notes)))
    for change, title in ((FrameChange.BROKEN, "Broken by recognition"), (FrameChange.REVALUED, "Other slot values")):
        changed = cascade.utterances_with(change)
        if changed:
            examples = changed[: max_listed or None]
            yield ""
            yield f"{title}: {len(examples):,} of {len(changed):,}"
            for utterance in examples:
                yield from _utterance_lines(utterance, cascade.rule, width)


def _utterance_lines(utterance: CascadeUtterance, rule: Rule, width: int) -> Iterator[str]:
    yield ""
    yield shown(f"{utterance.id}  {changes(utterance, rule)}".rstrip(), width)
    for name, text in (
        ("said", utterance.before.gold.text),
        ("heard", utterance.heard.text or NO_WORDS),
        ("gold", frame_in_words(utterance.before.gold, rule)),
        ("before", frame_in_words(utterance.before.predicted, rule)),
        ("after", frame_in_words(utterance.after.predicted, rule)),
    ):
        yield shown(f"  {name:7s}{text}", width)


FORMAT = 1
KIND = "understanding cascade"


def cascade_json(cascade: Cascade) -> str:
    """The results as JSON text, in ASCII."""
    interval = interval_of(cascade.words)
    document: Json = {
        "format": FORMAT,
        "kind": KIND,
        "harness": __version__,
        "gold": {"file": cascade.pairs.gold.path},
        "heard": {"file": cascade.pairs.heard.path},
        "normalisation": cascade.words.normalisation,
        "rule": {**rule_json(cascade.rule), "detail": cascade.rule.detail.value, "places": False},
        "zero": to_plain(cascade.zero),
        "declared_labels": None if cascade.labels is None else list(cascade.labels),
        "utterances": len(cascade.utterances),
        **picked(cascade.pairs, "without_transcript", "missing_is_silence", "without_gold", "unannotated"),
        "fates": {change.value: len(cascade.utterances_with(change)) for change in FrameChange},
        "wer_interval": None if interval is None else list(interval),
        "slot_f1_by_places_on_reference": slot_f1(cascade),
        "total": _group_json(cascade.total),
        "groups": {
            column: [{"label": label, **_group_json(group)} for label, group in labels]
            for column, labels in cascade.groups
        },
        "groups_left_out": dict(cascade.too_many),
        "frames": [
            {
                "id": utterance.id,
                "fate": utterance.change.value,
                "said": utterance.before.gold.text,
                "heard": utterance.heard.text,
                "word_errors": utterance.words.errors,
                "words": utterance.words.words,
                "gold": _frame_json(utterance.before.gold),
                "on_reference": _frame_json(utterance.before.predicted),
                "on_transcript": _frame_json(utterance.after.predicted),
            }
            for utterance in cascade.utterances
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _group_json(group: CascadeGroup) -> Json:
    return {
        "words": {**counts_of(group.words), "wer": group.words.wer},
        "figures": {metric.value: _difference_json(difference) for metric, difference in group.differences.items()},
        "counts": {"reference": counts_json(group.reference), "transcript": counts_json(group.transcript)},
    }


def _difference_json(difference: MetricDifference) -> Json:
    entry: Json = to_plain(difference)
    return {"reference": entry.pop("second"), "transcript": entry.pop("first"), **entry}


def _frame_json(utterance: Utterance) -> Json:
    entry: Json = {"intents": None if utterance.intents is None else list(utterance.intents)}
    if utterance.tags is not None:
        entry["tags"] = list(utterance.tags)
    if utterance.slots is not None:
        entry["slots"] = [{"concept": slot.concept, "value": slot.value} for slot in utterance.slots]
    return entry


MAX_UTTERANCES = 1000
MAX_IDS = 30


def page(cascade: Cascade, notes: Sequence[tuple[str, str]] = (), max_listed: int = MAX_UTTERANCES) -> str:
    """The HTML page.

    - notes: as for `sections`.
    - max_listed: most utterances in a list.
    """
    lists = [
        (CHANGE_NAMES[change], utterances[:max_listed], max(0, len(utterances) - max_listed))
        for change in (FrameChange.BROKEN, FrameChange.REVALUED, FrameChange.MENDED)
        for utterances in [cascade.utterances_with(change)]
    ]
    basis, *report_sections = sections(cascade, notes, MAX_IDS)
    return filled_page(
        "harness.understanding.reports",
        "cascade.html",
        title="Effect of recognition errors",
        of=cascade,
        basis=basis.parts[0],
        sections=report_sections,
        fates=list(CHANGE_NAMES.items()),
        slot_f1=slot_f1(cascade),
        lists=lists,
        change=partial(changes, rule=cascade.rule),
        frame=partial(frame_in_words, rule=cascade.rule),
        per_cent=partial(percent, digits=2),
    )
