"""What was understood in a session, at its end: a table of frames, and the totals over them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from harness.base.cells import fit, shown
from harness.model.record import Understood
from harness.session.figures.names import short_names
from harness.session.figures.progress import Progress
from harness.session.figures.trials import AttemptProgress, TrialProgress, UnderstoodFigures
from harness.statistics.intervals import Share
from harness.understanding.understood import compared, parts_of, verdict_in_words, written

COLUMNS = ("#", "trial", "tries", "what was understood: = right, ≠ another value, − missing, + too many")
WIDTHS = (4, 24, 5)
GAP = "  "
LEAST_TEXT = 20


def table(progress: Progress, width: int | None = None) -> list[str]:
    """A line for each trial that was understood or not, at most `width` columns wide (None: as wide as the terminal).

    Empty where no trial expects anything.
    """
    rows = [one for one in progress.trials if one.trial.expects is not None]
    if not rows:
        return []
    columns = shutil.get_terminal_size((120, 24)).columns if width is None else width
    left = max(LEAST_TEXT, columns - sum(WIDTHS) - len(GAP) * len(WIDTHS))
    widths = (*WIDTHS, left)
    names = short_names([one.trial.id for one in rows], WIDTHS[1])
    lines = [_line(COLUMNS, widths), _line(tuple("─" * one for one in widths), widths)]
    for one, name in zip(rows, names, strict=True):
        tries = str(len(one.counting.attempts)) if one.counting else ""
        lines.append(_line((str(one.trial.number), name, tries, in_words(one)), widths))
    return lines


def told_at_last(one: TrialProgress) -> AttemptProgress | None:
    """The attempt of the take that counts by which a trial's frame is judged; None where none has ended."""
    take = one.counting
    if take is None or not take.attempts:
        return None
    return take.deciding or take.attempts[-1]


def understood_at_last(one: TrialProgress) -> Understood | None:
    """What that attempt says of the frame."""
    attempt = told_at_last(one)
    return attempt.verdict.understood if attempt and attempt.verdict else None


def in_words(one: TrialProgress) -> str:
    """The verdict on a trial's frame, with its parts; "" where it was not played."""
    attempt, told = told_at_last(one), understood_at_last(one)
    if attempt is None or attempt.verdict is None or told is None:
        return ""
    found = compared(parts_of(one.trial, attempt.verdict))
    if not found and told.intents is not None:
        found = "nothing, as it should" if told.right else "nothing"
    return f"{verdict_in_words(told)}{': ' if found else ''}{found}"


def expected(one: TrialProgress) -> str:
    """What a trial expects, on one line; "" where that is nothing at all."""
    wanted = one.trial.expects
    return "" if wanted is None else written(wanted.intents, wanted.slots)


def told(one: TrialProgress) -> str:
    """What its device told at last, on one line; "" where it told nothing."""
    found = understood_at_last(one)
    return "" if found is None or found.intents is None else written(found.intents, found.slots)


def totals(figures: UnderstoodFigures) -> Iterator[str]:
    """Lines with shares and their intervals."""
    yield f"understood           {share_in_words(figures.right)}"
    yield f"intents alone        {share_in_words(figures.intents)}"
    yield f"understood at first  {share_in_words(figures.first_right)}; intents alone {_short(figures.first_intents)}"
    needed = (
        f"{'never' if tries is None else tries}: {share.count} = {share.value:.1%}"
        for tries, share in figures.attempts_needed
        if share.value is not None
    )
    yield f"tries                {', '.join(needed) or 'n/a (of none)'}"
    if figures.unknown:
        yield f"not known            of {figures.unknown} nothing says what was understood"


def share_in_words(share: Share) -> str:
    """`7 of 8 = 87.5% (95 % interval 52.9% to 97.8%)`."""
    if share.value is None or share.interval is None:
        return "n/a (of none)"
    low, high = share.interval
    return f"{share.count} of {share.total} = {share.value:.1%} (95 % interval {low:.1%} to {high:.1%})"


def _short(share: Share) -> str:
    return "n/a" if share.value is None else f"{share.count} of {share.total}"


def _line(cells: tuple[str, ...], widths: tuple[int, ...]) -> str:
    *front, last = zip(cells, widths, strict=True)
    return GAP.join([*(fit(cell, width) for cell, width in front), shown(*last)]).rstrip()
