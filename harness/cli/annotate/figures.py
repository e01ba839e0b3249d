"""`harness annotate status`, `report` and `agreement`: progress of a project, effort, and agreement."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.safe_csv import safe_csv
from harness.cli.annotate.projects import open_project, project_argument
from harness.cli.options import Command, Option, Printed, choose_one, json_option, printed_options
from harness.cli.streams import print_lines, standard_output
from harness.model.errors import InputError
from harness.statistics import text

if TYPE_CHECKING:
    from harness.annotation.agreement import PairOfAnnotators

TOO_LOW = 1


@click.command("status", cls=Command)
@project_argument
@json_option("as_json", "Print one JSON object.")
@click.option("--check", "checking", is_flag=True, help="Check rows and files for damage and changes instead.")
def status(project: Path, as_json: bool, checking: bool) -> None:
    """Show the progress of a project: utterances by state, and work by annotator. Works during annotation.

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read, or --check found damage.
    """
    from harness.annotation.ledger import outcome
    from harness.annotation.project import check_annotation
    from harness.annotation.report import outcome_lines, outcome_object
    from harness.cli.show import print_findings

    if checking:
        sys.exit(print_findings(check_annotation(project)))
    with closing(open_project(project)) as room:
        found = outcome(room.utterances, room.shares, room.ledger)
        about = room.project.id, room.label_set.id, found
    _print([json.dumps(outcome_object(*about))] if as_json else outcome_lines(*about))


@click.command("report", cls=Command)
@project_argument
@printed_options("Print one JSON object.", "Print rows of section, split, what, count.")
def report(project: Path, printed: Printed) -> None:
    """Show how utterances were labelled, the final labels by split, and the time it took.

    Works during annotation. How to read it: docs/explanation/tri-training.md

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read.
    """
    from harness.annotation.ledger import outcome
    from harness.annotation.report import annotation_report, as_json, as_table, lines

    with closing(open_project(project)) as room:
        standing = outcome(room.utterances, room.shares, room.ledger).standing
        final = {id_: one.intents for id_, one in standing.items() if one.state.is_final and one.intents is not None}
        found = annotation_report(room.utterances, room.rows, final)
        labels = room.label_set.ids
    if printed.as_csv:
        standard_output().write(safe_csv(as_table(found, labels)))
    else:
        _print([json.dumps(as_json(found, labels))] if printed.as_json else lines(found, labels))


@click.command("agreement", cls=Command)
@project_argument
@click.option(
    "--annotator", "only", multiple=True, help="Compare only this annotator with the others named; repeatable."
)
@click.option(
    "--disagreements",
    "differing",
    cls=Option,
    former=("--differing",),
    is_flag=True,
    help="List the utterances with different labels instead.",
)
@json_option("as_json", "Print all results as one JSON object.")
@click.option(
    "--min-alpha",
    type=click.FloatRange(-1, 1),
    metavar="X",
    help="Exit with status 1 when Krippendorff's alpha (MASI) of a pair is below X or undefined.",
)
def agreement(project: Path, only: tuple[str, ...], differing: bool, as_json: bool, min_alpha: float | None) -> None:
    """Measure how well each pair of annotators agrees on the utterances that both labelled.

    Labels from files belong to the annotator `imported`. For work by hand, the labels given before the proposal was
    shown count. Works during annotation. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 done · 1 agreement is below --min-alpha or n/a · 2 wrong usage or input · 3 the project cannot be
    read.
    """
    from harness.annotation import agreement as of_annotators

    choose_one(differing=differing, json=as_json)
    with closing(open_project(project)) as room:
        ledger = room.ledger
        unknown = next((name for name in only if name not in ledger.annotators), None)
        if unknown is not None:
            known = ", ".join(plain_text(one, 64) for one in ledger.annotators)
            raise InputError(f"{unknown!r} has labelled nothing here", remedy=f"Annotators: {known or 'none'}")
        found = of_annotators.pairs_of_annotators(room.utterances, room.label_set, ledger, only)
        together = None if differing else of_annotators.all_annotators(room.utterances, ledger, only)
        if as_json:
            told = {"project": room.project.id, **of_annotators.agreement_object(found, together)}
            _print([json.dumps(told)])
        elif differing:
            texts = {one.id: one.text for one in room.utterances}
            _print(of_annotators.differing_lines(found, texts, ledger))
        else:
            _print(of_annotators.agreement_lines(found, together))
    if min_alpha is not None and not _enough(found, min_alpha):
        sys.exit(TOO_LOW)


def _enough(pairs: Sequence[PairOfAnnotators], least: float) -> bool:
    if not pairs:
        click.echo("harness: no utterance was labelled by two annotators", err=True)
        return False
    low = [one for one in pairs if one.figures.masi.value is None or one.figures.masi.value < least]
    for one in low:
        alpha = one.figures.masi
        told = f"{text.NOTHING} ({alpha.why_not})" if alpha.value is None else f"{alpha.value:.3f}, below {least:g}"
        click.echo(
            f"harness: alpha of {plain_text(one.first, 64)} and {plain_text(one.second, 64)} is {told}", err=True
        )
    return not low


def _print(lines: Iterable[str]) -> None:

    print_lines(lines)
