"""Where the reports of scored understanding go: lines for people, JSON, a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.cells import shown, width_of
from harness.cli.read_once import STDIN
from harness.model.choices import MOST_CONFUSIONS

if TYPE_CHECKING:
    from harness.understanding.comparison import FrameComparison
    from harness.understanding.reports.score_text import Reported
    from harness.understanding.scoring import Scoring


def write_reports(
    systems: Sequence[Reported],
    *,
    json_target: str | None,
    html_target: str | None,
    scorings: Sequence[Scoring] = (),
    comparisons: Sequence[FrameComparison] = (),
    confusions: int = MOST_CONFUSIONS,
    notes: Sequence[str] = (),
) -> None:
    """Files first, then the lines, unless JSON is on standard output.

    scorings: of each system, under the first rule, where their utterances are there. notes: lines at the end.
    """
    from harness.cli import score_output as output
    from harness.understanding.reports.score_json import score_json
    from harness.understanding.reports.score_text import comparison_json
    from harness.understanding.reports.score_text import comparison_lines as compared

    if json_target is not None:
        pieces = [score_json(systems, [comparison_json(one) for one in comparisons])]
        if json_target == STDIN:
            output.print_pieces(pieces)
        else:
            output.write_pieces(Path(json_target), pieces)
    if html_target is not None:
        from harness.understanding.reports.score_html import write_html  # here, since few want a page

        write_html(systems, Path(html_target), scorings, comparisons)
    if json_target != STDIN:
        output.print_lines([*_lines(systems, confusions), *compared(comparisons, output.width()), *notes])


def _lines(systems: Sequence[Reported], confusions: int) -> Iterator[str]:
    from harness.cli import score_output as output
    from harness.understanding.reports.score_text import system_lines as lines

    width = output.width()
    for number, one in enumerate(systems):
        if len(systems) > 1:
            title = f"── {shown(one.counts.predicted, max(8, width - 8))} "
            heading = title + "─" * (width - width_of(title))
            yield from ([""] if number else [])
            yield f"\x1b[1m{heading}\x1b[0m" if output.in_colour(sys.stdout) else heading
        yield from lines(one, width, confusions=confusions)
