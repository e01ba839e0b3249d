"""Understanding systems side by side, as lines, JSON and a page.

Understanders that were trained and scored on one corpus come as lines and JSON only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness import __version__
from harness.base.pages import filled_page
from harness.base.plain_json import Json, picked, to_plain
from harness.base.table import Field, Notes, Section, Table
from harness.base.text_table import Column, join_blocks, shown, text_table
from harness.model.numbers import NOTHING, counted, fixed, number, percent, points, probability
from harness.statistics.ratios import MIN_CLUSTERS
from harness.statistics.text import percent_interval, points_interval
from harness.understanding.comparison import Metric
from harness.understanding.models.training import FIGURES, ContenderRow
from harness.understanding.reports.cascade import MAX_TEXT_CHARS
from harness.understanding.reports.score_json import counts_json, rule_json
from harness.understanding.reports.score_text import (
    IN_POINTS,
    MAX_ROWS,
    NOTE_WIDTH,
    chunking_in_words,
    details_in_words,
    listed,
)
from harness.understanding.systems import (
    METRICS,
    ComparedSystems,
    LostStage,
    MetricValue,
    SystemDifference,
    SystemKind,
    SystemResult,
)

METRIC_NAMES = {
    Metric.ACCURACY: "intent accuracy",
    Metric.EMR: "EMR",
    Metric.F1MH: "F1mh",
    Metric.CER: "CER",
    Metric.VALUED_CER: "CER, values",
    Metric.SFA: "SFA",
    Metric.VALUED_SFA: "SFA, values",
}
KIND_NAMES = {
    SystemKind.TRANSCRIPTS: "reference texts → model",
    SystemKind.CASCADE: "recogniser → model",
    SystemKind.SOUND: "from sound",
    SystemKind.LIVE: "live",
}
_STAGES: tuple[LostStage | None, ...] = (None, *LostStage)
_STAGE_NAMES = {
    None: "right",
    LostStage.WORDS: "words of a value",
    LostStage.INTENT: "intent",
    LostStage.SLOT: "slot",
    LostStage.VALUE: "value",
}


def sections(compared: ComparedSystems, notes: Sequence[tuple[str, str]] = (), ids: int = 5) -> Iterator[Section]:
    """All tables.

    - notes: names and texts on what was compared.
    - ids: number of ids that are listed with a count of utterances.
    """
    column = shown(compared.talker_column, MAX_TEXT_CHARS)
    talkers = f"{compared.talkers:,} by {column}"
    if compared.nameless:
        talkers = f"no intervals: {counted(compared.nameless, 'utterance')} without a label in the column {column}"
    if 0 < compared.talkers < MIN_CLUSTERS:
        talkers += ", too few for intervals"
    condition = (
        "of gold, with missing answers counted as empty" if compared.missing_is_empty else "that every system answered"
    )
    basis = [
        ("gold", shown(compared.gold.path, MAX_TEXT_CHARS)),
        ("utterances", f"{len(compared.ids):,} {condition}, compared without positions"),
        ("talkers", talkers),
        ("words", f"compared as {compared.normalisation}"),
        ("chunking", chunking_in_words(compared.rule)),
        ("concepts", details_in_words([compared.rule])),
    ]
    for name, unanswered in compared.unanswered.items():
        if unanswered:
            basis.append(("no answer", f"{shown(name, MAX_TEXT_CHARS)}: {listed(unanswered, ids)}"))
    if compared.unannotated:
        basis.append(("no gold", f"{counted(compared.unannotated, 'utterance')} without annotations"))
    yield Section("basis", "Basis", (Notes([*basis, *notes], NOTE_WIDTH),))
    yield Section("systems", "Systems", (_systems_table(compared.results), Notes([("", _COST)])))
    yield Section(
        "losses", "Where utterances are lost", (_losses_table(compared.results), Notes([("", _STAGES_IN_WORDS)]))
    )
    yield Section("intervals", "95 % intervals", (_intervals_table(compared.results),))
    for position, difference in enumerate(compared.differences, 1):
        title = f"{shown(difference.first, MAX_TEXT_CHARS)} minus {shown(difference.second, MAX_TEXT_CHARS)}"
        unit = Notes([("difference", IN_POINTS)], NOTE_WIDTH)
        yield Section(f"d{position}", title, (_differences_table(difference), unit))


_COST = "RTF: seconds of processing per second of sound. CPU: processor seconds per hour of sound."
_STAGES_IN_WORDS = (
    "An utterance is lost at its first wrong stage: words of a slot's value, intent, slot, value. "
    "For a system without words, the first stage is the intent."
)


def _systems_table(results: Sequence[SystemResult]) -> Table[SystemResult]:
    def metric(metric: Metric) -> Field[SystemResult]:
        return Field("", METRIC_NAMES[metric], lambda row: percent(row.metrics[metric].value, 2))

    return Table(
        [
            Field("", "system", lambda row: row.system.name),
            Field("", "kind", lambda row: KIND_NAMES[row.system.kind], left=True, gives_way=1),
            Field("", "WER", lambda row: NOTHING if row.words is None else percent(row.words.wer, 2)),
            *map(metric, METRICS),
            Field("", "CPU", lambda row: _cost_text(row, hours=True)),
            Field("", "RTF", lambda row: _cost_text(row, hours=False)),
        ],
        results,
    )


def _cost_text(row: SystemResult, *, hours: bool) -> str:
    if row.cost is None:
        return NOTHING
    if hours:
        return fixed(row.cost.cpu_s / row.cost.sound_s * 3600, 0, "s")
    return fixed(row.cost.elapsed_s / row.cost.sound_s, 3)


def _losses_table(results: Sequence[SystemResult]) -> Table[SystemResult]:
    def count(row: SystemResult, stage: LostStage | None) -> str:
        if not row.lost or (stage is LostStage.WORDS and row.system.heard is None):
            return NOTHING
        return f"{row.stages.get(stage, 0):,}"

    def losses(stage: LostStage | None) -> Field[SystemResult]:
        return Field("", _STAGE_NAMES[stage], lambda row: count(row, stage))

    return Table([Field("", "system", lambda row: row.system.name), *map(losses, _STAGES)], results)


def _intervals_table(results: Sequence[SystemResult]) -> Table[tuple[str, str, MetricValue]]:
    rows = [(METRIC_NAMES[metric], row.system.name, row.metrics[metric]) for metric in METRICS for row in results]
    return Table(
        [
            Field("", "metric", lambda row: row[0]),
            Field("", "system", lambda row: shown(row[1], MAX_TEXT_CHARS), left=True),
            Field("", "value", lambda row: percent(row[2].value, 2)),
            Field("", "over utterances", lambda row: percent_interval(row[2].interval)),
            Field("", "over talkers", lambda row: percent_interval(row[2].over_talkers)),
        ],
        rows,
    )


def _differences_table(difference: SystemDifference) -> Table[Metric]:
    metrics = difference.metrics
    return Table(
        [
            Field("", "metric", lambda metric: METRIC_NAMES[metric]),
            Field("", "difference", lambda metric: points(metrics[metric].difference), main=True),
            Field("", "over utterances", lambda metric: points_interval(metrics[metric].interval)),
            Field("", "p (Holm)", lambda metric: probability(difference.p_holm[metric])),
            Field("", "over talkers", lambda metric: points_interval(difference.over_talkers[metric])),
        ],
        METRICS,
    )


def lines(compared: ComparedSystems, width: int, *, notes: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """The whole report, each table under its title. notes: as for `sections`."""
    basis, *other_sections = sections(compared, notes)

    def titled(section: Section) -> Iterator[str]:
        yield section.title
        yield from section.lines(width, MAX_ROWS)

    yield from join_blocks(basis.lines(width, MAX_ROWS), *map(titled, other_sections))


FORMAT = 1
KIND = "understanding systems"


def systems_json(compared: ComparedSystems) -> str:
    """The results as JSON text, in ASCII. Shares are 0–1."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "kind": KIND,
        "harness": __version__,
        "gold": {"file": compared.gold.path},
        "normalisation": compared.normalisation,
        "rule": {**rule_json(compared.rule), "detail": compared.rule.detail.value, "places": False},
        "utterances": len(compared.ids),
        "unanswered": {name: list(ids) for name, ids in compared.unanswered.items()},
        "unannotated": compared.unannotated,
        "missing_is_empty": compared.missing_is_empty,
        "talkers": {
            "column": compared.talker_column,
            "number": compared.talkers,
            "utterances_without": compared.nameless,
        },
        "systems": [_system_json(row) for row in compared.results],
        "differences": [
            {
                "first": difference.first,
                "second": difference.second,
                "figures": {
                    metric.value: {
                        **to_plain(difference.metrics[metric]),
                        "over_talkers": difference.over_talkers[metric],
                        "p_holm": difference.p_holm[metric],
                    }
                    for metric in METRICS
                },
            }
            for difference in compared.differences
        ],
        "frames": [
            {"id": id_, "lost": {row.system.name: to_plain(row.lost[place]) for row in compared.results if row.lost}}
            for place, id_ in enumerate(compared.ids)
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _system_json(row: SystemResult) -> dict[str, Any]:
    return {
        "name": row.system.name,
        "kind": row.system.kind.value,
        "frames": row.system.frames.path,
        "heard": None if row.system.heard is None else row.system.heard.path,
        "words": None if row.words is None else {**to_plain(row.words), "wer": row.words.wer},
        "wer_interval": None if row.wer_interval is None else list(row.wer_interval),
        "figures": {metric.value: to_plain(value) for metric, value in row.metrics.items()},
        "lost": {(stage or "right"): row.stages.get(stage, 0) for stage in _STAGES} if row.lost else None,
        "cost": None if row.cost is None else to_plain(row.cost),
        "counts": counts_json(row.counts),
    }


def page(compared: ComparedSystems, notes: Sequence[tuple[str, str]] = ()) -> str:
    """The comparison of systems as an HTML page. notes: as for `sections`."""
    basis, *other_sections = sections(compared, notes, ids=30)
    return filled_page(
        "harness.understanding.reports",
        "systems.html",
        title="Understanding systems",
        basis=basis.parts[0],
        sections=other_sections,
    )


MIN_CONTENDERS_WIDTH = 140
"""Minimum width of the table of contenders in columns, so that no name is cut."""


def contender_lines(rows: Sequence[ContenderRow], width: int) -> Iterator[str]:
    """The table of understanders: each metric, with its interval or standard deviation below it."""
    cells: list[tuple[str, ...]] = []
    for row in rows:
        texts = _contender_metric_texts(row)
        values, spreads = zip(*(texts.get(metric, (NOTHING, "")) for metric in FIGURES), strict=True)
        name = f"{row.name} *" if row.from_elsewhere else row.name
        cells.append((name, *values, number(row.train_cpu_s), number(row.predict_cpu_s)))
        if not row.from_elsewhere:
            cells.append(("", *spreads, "", ""))
    heads = ("understander", "intent accuracy", "EMR", "slot F1", "F1mh", "CER", "SFA", "CPU s", "CPU s / 1,000")
    yield from text_table(list(map(Column, heads)), cells, max(width, MIN_CONTENDERS_WIDTH))
    if any(row.from_elsewhere for row in rows):
        yield "* published result on the corpus's own splits, not measured in this run"


def _contender_metric_texts(row: ContenderRow) -> dict[Metric, tuple[str, str]]:
    """Each metric's value, and its interval or its standard deviation over folds."""
    texts = {}
    for index, (metric, value, interval) in enumerate(row.figures):
        deviation = row.deviations[index] if row.deviations else None
        spread = percent_interval(interval, 1) if deviation is None else f"± {percent(deviation, 2)}"
        texts[metric] = percent(value, 2), spread
    return texts


def contender_json(row: ContenderRow) -> Json:
    """The results of an understander for JSON; over folds, with the standard deviations `sd`."""
    figures = {
        metric.value: {"value": value, "interval_95": None if interval is None else list(interval)}
        for metric, value, interval in row.figures
    }
    for (metric, _, _), deviation in zip(row.figures, row.deviations, strict=False):
        figures[metric.value]["sd"] = deviation
    return {
        "understander": row.name, **picked(row, "from_elsewhere", "utterances"),
        "figures": figures, "train_cpu_s": row.train_cpu_s, "predict_cpu_s_per_1000": row.predict_cpu_s,
    }  # fmt: skip
