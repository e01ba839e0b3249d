"""A category report as one page of HTML that needs nothing else: no script, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.base.foreign import ON_A_PAGE, plain_text
from harness.base.pages import filled_page
from harness.base.table import Section
from harness.base.whole_file import write_atomically
from harness.model.choices import CategoryGroup, Reading
from harness.model.judgment import Category, JudgmentStatus
from harness.model.numbers import percent
from harness.rating.figures.categories import CategoryFigures, CountedShare, category_under
from harness.rating.figures.judged_responses import QueryOutcome, RatedTrial
from harness.rating.guide import KEYS
from harness.rating.reports.categories import CategoryReport, name_of
from harness.rating.reports.category_text import (
    all_in_words,
    categories_given,
    difference_in_words,
    notes,
    sections,
    share_span,
    stages,
)
from harness.statistics.text import hundredths_interval

MAX_LISTED = 500
MAX_LABEL_CHARS = 80
MAX_TEXT_CHARS = 400
MIN_LABELLED_SHARE = 0.045
"""A part of a bar shows its key only if its share is at least this."""


def write_html(report: CategoryReport, path: Path) -> None:
    """Writes the page, completely or not at all. Raises LogError if it cannot be written."""
    write_atomically(path, page(report).encode("utf-8"))


def page(report: CategoryReport) -> str:
    """The page as text, with all foreign text escaped."""
    wrong = [
        trial
        for trial in report.trials_with(QueryOutcome.CATEGORY)
        if category_under(trial, Reading.WRONG) is Category.WRONG
    ]
    tied = report.trials_with(QueryOutcome.TIED)
    return filled_page(
        "harness.rating.reports",
        "categories.html",
        title="Categories of first responses",
        report=report,
        figures=report.figures,
        sessions=[plain_text(session, MAX_LABEL_CHARS) for session in report.sessions],
        raters=[plain_text(rater, MAX_LABEL_CHARS) for rater in report.selection.raters],
        round_id=None if report.selection.round_id is None else plain_text(report.selection.round_id, 80),
        stages=list(stages(report.figures)),
        keys=[(key, category, name_of(category)) for key, category in KEYS],
        derived=[(group, name_of(group)) for group in CategoryGroup],
        readings=list(Reading),
        stacks=[(_label(group.label), group.figures, _stacks(group.figures)) for group in report.devices()],
        notes=Section("notes", "", (notes(report.figures),)),
        sections=list(sections(report)),
        wrong=[_response_row(trial) for trial in wrong[:MAX_LISTED]],
        wrong_left=len(wrong) - MAX_LISTED,
        tied=[_response_row(trial) for trial in tied[:MAX_LISTED]],
        tied_left=len(tied) - MAX_LISTED,
        name_of=name_of,
        cell=CategoryFigures.share,
        whisker=_whisker,
        span=share_span,
        wide_span=hundredths_interval,
        difference_in_words=difference_in_words,
        all_in_words=all_in_words,
    )


def _stacks(figures: CategoryFigures) -> list[dict[str, Any]]:
    """The stacked bars, one for each reading if these differ."""
    readings = tuple(Reading) if figures.core.total else (Reading.ADMITTED,)
    return [_stack(figures, reading) for reading in readings] if figures.total else []


def _stack(figures: CategoryFigures, reading: Reading) -> dict[str, Any]:
    """A stacked bar. Each part has the key of its category if there is room, and the number of its colour. words: the
    text for screen readers."""
    parts: list[dict[str, Any]] = []
    words: list[str] = []
    for number, (key, category) in enumerate(KEYS):
        share = figures.share(category, reading)
        if not share.count:
            continue
        width = share.value or 0.0
        shown_key = key if width >= MIN_LABELLED_SHARE else ""
        parts.append({"key": shown_key, "number": number, "width": 100 * width})
        words.append(f"{name_of(category)} {percent(share.value, 0)}")
    return {"reading": reading.value.upper(), "parts": parts, "words": ", ".join(words)}


def _whisker(share: CountedShare) -> tuple[float, float, float] | None:
    """Low end, value and high end in percent; None without an interval."""
    if share.value is None or share.interval is None:
        return None
    low, high = share.interval
    return 100 * low, 100 * share.value, 100 * high


def _label(label: str) -> str:
    return plain_text(label, MAX_LABEL_CHARS)


def _response_row(trial: RatedTrial) -> dict[str, Any]:
    """A response in a list, as escaped text."""
    judged = trial.judged
    rows = judged.judgments if judged else ()
    comments: Sequence[str] = [row.comment for row in rows if row.comment and row.status is not JudgmentStatus.SKIPPED]
    category = "" if trial.category is None else name_of(trial.category)
    lacks = " (core capability, wrong under B)" if trial.category is Category.ADMITTED_DEFEAT else ""
    flags = "".join(f", {flag.value.replace('_', ' ')}" for flag in sorted(trial.sub_flags))
    return {
        "session": _label(trial.session_id),
        "trial": plain_text(trial.trial.id, 120),
        "device": _label(trial.trial.device),
        "query": plain_text(trial.trial.reference, MAX_TEXT_CHARS),
        "answer": plain_text(judged.response.transcript or "", MAX_TEXT_CHARS) if judged else "",
        "category": category + lacks + flags,
        "judgments_text": categories_given(trial),
        "comments": [plain_text(text, MAX_TEXT_CHARS, kept=ON_A_PAGE) for text in comments],
    }
