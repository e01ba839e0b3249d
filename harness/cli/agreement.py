"""`harness agreement`: how far raters agree, what each of them did, and which items are disputed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from harness.cli.options import Command, csv_option, json_option
from harness.cli.sessions import demand_known, rated_sessions
from harness.cli.streams import standard_output
from harness.model.errors import InputError
from harness.model.judgment import RatingRound
from harness.rating.exercises import BUILT_IN_EXERCISES

if TYPE_CHECKING:
    from harness.rating.figures.agreement import AgreementFigures

TOO_LOW = 1


@click.command("agreement", cls=Command)
@click.argument("named", metavar="SESSION… | ROUND.yaml", nargs=-1, required=True)
@click.option("--round", "round_id", metavar="ID", help="Only judgments of this round.")
@click.option("--disputed", is_flag=True, help="Only the items on which raters differ, the widest apart first.")
@json_option("as_json", "All figures as one JSON object.")
@csv_option("as_csv", "A row for each item: every rater's label, and the consensus.")
@click.option(
    "--min-alpha",
    type=click.FloatRange(-1, 1),
    metavar="X",
    help="Status 1 when Krippendorff's alpha is below X, or there is none.",
)
def command(
    named: tuple[str, ...], round_id: str | None, disputed: bool, as_json: bool, as_csv: bool, min_alpha: float | None
) -> None:
    """Say how far raters agree: raw, beyond chance, by category, with the consensus and with gold items.

    SESSION: a session's folder, or its name below ./sessions; give several to put them together. A rater of the same
    name in several sessions is one rater. ROUND.yaml: the sessions of a round; its known answers and exercises are
    counted apart, and only judgments of the round count. Works while raters are at it.

    Exit status: 0 done · 1 alpha is below --min-alpha, or there is none · 2 wrong usage or input · 3 a log cannot be
    read.
    """
    from harness.cli.score_output import print_lines
    from harness.rating.figures.agreement import agreement_figures
    from harness.rating.figures.judged import of_round, read_sessions
    from harness.rating.reports import agreement as tables

    if disputed + as_json + as_csv > 1:
        raise InputError("--disputed, --json and --csv exclude each other", remedy="Choose one")
    asked = rated_sessions(named, round_id)
    found = read_sessions(asked.folders)
    if round_id is not None:
        demand_known(round_id, {row.round for one in found for row in one.rated.rows}, "round")
    if asked.round_id is not None:
        found = of_round(found, asked.round_id)
    # Without a round file the built-in exercises are known all the same.
    round_ = asked.round or RatingRound(exercises=BUILT_IN_EXERCISES)
    figures = agreement_figures([one.rated for one in found], round_.gold, round_.exercises)
    if as_json:
        from harness.rating.reports.agreement import as_json as object_of

        standard_output().write(json.dumps(object_of(figures), ensure_ascii=True) + "\n")
    elif as_csv:
        from harness.base.safe_csv import safe_csv
        from harness.cli.judgments import print_file
        from harness.rating.reports.agreement import table_of

        print_file(safe_csv(table_of(figures)).encode())
    else:
        print_lines(tables.disputed(figures) if disputed else _lines(figures))
    if min_alpha is not None and not _enough(figures, min_alpha):
        sys.exit(TOO_LOW)


def _lines(figures: AgreementFigures) -> Iterator[str]:
    from harness.rating.reports import agreement as tables

    yield from tables.lines(figures)
    if figures.disputed:
        yield ""
        yield "Disputed items: add --disputed. Settle them: harness rate SESSION… --adjudicate"


def _enough(figures: AgreementFigures, least: float) -> bool:
    """Whether alpha is high enough; says so when it is not."""
    alpha = figures.agreement.alpha
    if alpha.value is not None and alpha.value >= least:
        return True
    told = f"n/a ({alpha.why_not})" if alpha.value is None else f"{alpha.value:.3f}, below {least:g}"
    click.echo(f"harness: Krippendorff's alpha is {told}", err=True)
    return False
