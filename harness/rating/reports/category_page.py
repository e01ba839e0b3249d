"""A category report as one page of HTML that needs nothing else: no script, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.base.foreign import ON_A_PAGE, plain_text
from harness.base.pages import filled_page
from harness.base.table import Section
from harness.base.whole_file import write_whole
from harness.model.choices import Derived, Reading
from harness.model.judgment import Category, JudgmentStatus
from harness.model.numbers import percent
from harness.rating.figures.categories import CategoryFigures, CountedShare, category_under
from harness.rating.figures.judged import Fate, RatedTrial
from harness.rating.guide import KEYS
from harness.rating.reports.categories import CategoryReport, name_of
from harness.rating.reports.category_text import all_in_words, given, notes, p_in_words, sections, share_span, stages
from harness.statistics.text import hundredths_interval

MOST_LISTED = 500
LONGEST_LABEL = 80
LONGEST_TEXT = 400
WIDE_ENOUGH = 0.045
"""Minimum share of a part of a bar that has room for its key."""


@dataclass(frozen=True, slots=True)
class StackPart:
    """Part of a stacked bar. key: of the category, "" without room. number: of the colour. width: per cent."""

    key: str
    number: int
    width: float


@dataclass(frozen=True, slots=True)
class Stack:
    """A stacked bar. words: its content as text, for screen readers."""

    reading: str
    parts: tuple[StackPart, ...]
    words: str


@dataclass(frozen=True, slots=True)
class ListedResponse:
    """A response in a list, as escaped text. said: the categories by rater. comments: by its raters."""

    session: str
    trial: str
    device: str
    query: str
    answer: str
    category: str
    said: str
    comments: tuple[str, ...]


def write_html(report: CategoryReport, path: Path) -> None:
    """Writes the page, whole or not at all; LogError when it cannot be written."""
    write_whole(path, page(report).encode("utf-8"))


def page(report: CategoryReport) -> str:
    """The page as text, with all foreign text escaped."""
    wrong = [one for one in report.of(Fate.CATEGORY) if category_under(one, Reading.WRONG) is Category.WRONG]
    disputed = report.of(Fate.DISPUTED)
    return filled_page(
        "harness.rating.reports",
        "categories.html",
        title="Categories of first responses",
        report=report,
        figures=report.figures,
        sessions=[plain_text(one, LONGEST_LABEL) for one in report.sessions],
        raters=[plain_text(one, LONGEST_LABEL) for one in report.selection.raters],
        round_id=None if report.selection.round_id is None else plain_text(report.selection.round_id, 80),
        stages=list(stages(report.figures)),
        keys=[(key, category, name_of(category)) for key, category in KEYS],
        derived=[(one, name_of(one)) for one in Derived],
        readings=list(Reading),
        stacks=[(_label(one.label), one.figures, _stacks(one.figures)) for one in report.devices()],
        notes=Section("notes", "", (notes(report.figures),)),
        sections=list(sections(report)),
        wrong=[_listed(one) for one in wrong[:MOST_LISTED]],
        wrong_left=len(wrong) - MOST_LISTED,
        disputed=[_listed(one) for one in disputed[:MOST_LISTED]],
        disputed_left=len(disputed) - MOST_LISTED,
        name_of=name_of,
        cell=CategoryFigures.share,
        whisker=_whisker,
        span=share_span,
        wide_span=hundredths_interval,
        p_in_words=p_in_words,
        all_in_words=all_in_words,
    )


def _stacks(figures: CategoryFigures) -> tuple[Stack, ...]:
    """Under both readings, where they differ."""
    readings = tuple(Reading) if figures.core.total else (Reading.ADMITTED,)
    return tuple(_stack(figures, reading) for reading in readings) if figures.total else ()


def _stack(figures: CategoryFigures, reading: Reading) -> Stack:
    shares = [(key, number, category, figures.share(category, reading)) for number, (key, category) in enumerate(KEYS)]
    held = [(key, number, category, share) for key, number, category, share in shares if share.count]
    parts = tuple(
        StackPart(key if (share.value or 0.0) >= WIDE_ENOUGH else "", number, 100 * (share.value or 0.0))
        for key, number, _, share in held
    )
    words = ", ".join(f"{name_of(category)} {percent(share.value, 0)}" for _, _, category, share in held)
    return Stack(reading.value.upper(), parts, words)


def _whisker(share: CountedShare) -> tuple[float, float, float] | None:
    if share.value is None or share.interval is None:
        return None
    return 100 * share.interval[0], 100 * share.value, 100 * share.interval[1]


def _label(label: str) -> str:
    return plain_text(label, LONGEST_LABEL)


def _listed(one: RatedTrial) -> ListedResponse:
    judged = one.judged
    rows = judged.judgments if judged else ()
    comments: Sequence[str] = [row.comment for row in rows if row.comment and row.status is not JudgmentStatus.SKIPPED]
    category = "" if one.category is None else name_of(one.category)
    lacks = " (core capability, wrong under B)" if one.category is Category.ADMITTED_DEFEAT else ""
    flags = "".join(f", {flag.value.replace('_', ' ')}" for flag in sorted(one.sub_flags))
    return ListedResponse(
        _label(one.session_id),
        plain_text(one.trial.id, 120),
        _label(one.trial.device),
        plain_text(one.trial.reference, LONGEST_TEXT),
        plain_text(judged.response.transcript or "", LONGEST_TEXT) if judged else "",
        category + lacks + flags,
        given(one),
        tuple(plain_text(text, LONGEST_TEXT, kept=ON_A_PAGE) for text in comments),
    )
