"""`harness report agreement`: how far raters agree, their statistics, and disputed items."""

from __future__ import annotations

import json
import shlex

from harness.base.foreign import plain_text
from harness.cli.options import (
    OutputFormat,
    RatedSessionOptions,
    choose_one,
    demand_limits,
    flag,
    option,
    printed_options,
    verb,
)
from harness.cli.sessions import demand_known, rated_sessions
from harness.cli.streams import drawn_progress
from harness.model.judgment import RatingRound
from harness.rating.exercises import BUILT_IN_EXERCISES


@verb("agreement")
def command(
    *,
    options: RatedSessionOptions,
    disputed: bool = flag(
        "Print only the items on which raters disagree, most disputed first.", "--disagreements", former=("--disputed",)
    ),
    printed: OutputFormat = printed_options(
        "Print all results as one JSON object.", "Print one row per item: every rater's label, and the consensus."
    ),
    min_alpha: float | None = option(
        "Exit with status 1 when Krippendorff's alpha is below X or cannot be computed.", within=(-1, 1), metavar="X"
    ),
) -> None:
    """Report how well raters agree: raw, beyond chance, by category, with the consensus and with known answers.

    SESSION: a session's folder, or its name in ./sessions. Several sessions are counted together. A rater of the
    same name in several sessions is one rater. ROUND.yaml: the sessions of a round. Its known answers and exercises
    are counted separately, and only judgments of the round count. Raters may work at the same time.

    Exit status: 0 done · 1 alpha is below --min-alpha or n/a · 2 wrong usage or input · 3 a log cannot be read.
    """
    from harness.base.text_file import safe_csv
    from harness.rating.figures.agreement import agreement_figures
    from harness.rating.figures.judged_responses import read_sessions, with_selected_rows
    from harness.rating.reports import agreement as report

    choose_one(disagreements=disputed, json=printed.as_json, csv=printed.as_csv)
    sessions = rated_sessions(options)
    with drawn_progress():
        judged_sessions = read_sessions(sessions.folders)
    if options.round_id is not None:
        demand_known(options.round_id, {row.round for session in judged_sessions for row in session.rows}, "round")
    judged_sessions = with_selected_rows(judged_sessions, sessions.round_id, with_programs=options.with_programs)
    # Without a round file, rows of exercises belong to the built-in ones.
    round_ = sessions.round or RatingRound(exercises=BUILT_IN_EXERCISES)
    figures = agreement_figures(judged_sessions, round_.gold, round_.exercises)
    rated_argument = shlex.quote(plain_text(options.named[0], 200)) if sessions.round else "SESSION…"
    printed.print(
        json=lambda: json.dumps(report.to_json(figures), ensure_ascii=True),
        csv=lambda: safe_csv(report.item_rows(figures)),
        lines=lambda: report.disputed_lines(figures) if disputed else report.report_lines(figures, rated_argument),
    )
    if min_alpha is not None:
        from harness.statistics.verdict import alpha_limit

        demand_limits([alpha_limit("Krippendorff's alpha", min_alpha, figures.agreement.alpha)])
