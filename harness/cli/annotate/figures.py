"""`harness understand annotate status`, `report` and `agreement`: progress of a project, effort, and agreement."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.text_file import safe_csv
from harness.base.user_text import known_name
from harness.cli.annotate.projects import open_project, project_argument
from harness.cli.options import (
    OutputFormat,
    choose_one,
    demand_limits,
    flag,
    json_option,
    option,
    printed_options,
    repeatable,
    verb,
)
from harness.cli.streams import print_lines, standard_output, width
from harness.model.annotation import LabellingOrder
from harness.model.errors import InputError


@verb("status")
def status(
    *,
    project: Path = project_argument,
    as_json: bool = json_option("Print one JSON object."),
    checking: bool = flag("Check rows and files for damage and changes instead.", "--check"),
) -> None:
    """Show the progress of a project: utterances by state, and work by annotator. Works during annotation.

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read, or --check found damage.
    """
    from harness.annotation.ledger import project_outcome
    from harness.annotation.project import check_annotation
    from harness.annotation.report_text import outcome_lines, outcome_object
    from harness.cli.show import print_findings

    if checking:
        sys.exit(print_findings(check_annotation(project)))
    with closing(open_project(project)) as room:
        progress = project_outcome(room.utterances, room.assignment, room.ledger)
        guesses = None
        if room.project.order is LabellingOrder.DOUBT:
            from harness.annotation.uncertainty import guess_project

            guesses = guess_project(room.utterances, room.assignment, room.ledger, room.label_set, room.project.seed)
        annotation_project, label_set = room.project, room.label_set.id
    if as_json:
        print_lines([json.dumps(outcome_object(annotation_project, label_set, progress, guesses))])
    else:
        print_lines(outcome_lines(annotation_project, label_set, progress, guesses, str(project), width()))


@verb("report")
def report(
    *,
    project: Path = project_argument,
    printed: OutputFormat = printed_options("Print one JSON object.", "Print CSV rows `section,split,what,count`."),
) -> None:
    """Show how utterances were labelled, the final labels by split, and the time it took.

    Works during annotation. How to read it: docs/explanation/tri-training.md

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read.
    """
    from harness.annotation.ledger import project_outcome
    from harness.annotation.report import annotation_report
    from harness.annotation.report_text import report_csv_rows, report_lines, report_object

    with closing(open_project(project)) as room:
        statuses = project_outcome(room.utterances, room.assignment, room.ledger).statuses
        final_intents = {
            id_: status.intents
            for id_, status in statuses.items()
            if status.state.is_final and status.intents is not None
        }
        counts = annotation_report(room.utterances, room.rows, final_intents)
        labels = room.label_set.ids
    printed.print(
        json=lambda: json.dumps(report_object(counts, labels)),
        csv=lambda: safe_csv(report_csv_rows(counts, labels)),
        lines=lambda: report_lines(counts, labels),
    )


@verb("agreement")
def agreement(
    *,
    project: Path = project_argument,
    only: tuple[str, ...] = repeatable("Compare only the named annotators; repeatable, at least two.", "--annotator"),
    differing: bool = flag(
        "List the utterances whose labels differ instead.", "--disagreements", former=("--differing",)
    ),
    as_json: bool = json_option("Print all results as one JSON object."),
    spans: bool = flag("Print the marked slots as CSV rows `annotator,concept,begin,end` instead.", "--spans"),
    min_alpha: float | None = option(
        "Exit with status 1 when Krippendorff's alpha (MASI) of a pair is below X or undefined.",
        within=(-1, 1),
        metavar="X",
    ),
) -> None:
    """Measure how well each pair of annotators agrees on the utterances that both labelled.

    Labels from files belong to the annotator `imported`. For work by hand, the labels given before the proposal was
    shown are compared. Works during annotation. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 done · 1 agreement is below --min-alpha or n/a · 2 wrong usage or input · 3 the project cannot be
    read.
    """
    from harness.annotation.agreement import all_annotators, pairs_of_annotators
    from harness.annotation.report_text import (
        NOTHING_SHARED,
        agreement_lines,
        agreement_object,
        differing_lines,
        span_rows,
    )

    choose_one(differing=differing, json=as_json, spans=spans)
    with closing(open_project(project)) as room:
        ledger = room.ledger
        only = tuple(known_name(name, ledger.annotators) for name in only)
        unknown = next((name for name in only if name not in ledger.annotators), None)
        if unknown is not None:
            annotators = ", ".join(plain_text(annotator, 64) for annotator in ledger.annotators)
            raise InputError(
                f"{unknown!r} has not labelled anything in this project", remedy=f"Annotators: {annotators or 'none'}"
            )
        if len(set(only)) == 1:
            problem = f"--annotator names only {only[0]!r}, but a comparison needs two annotators"
            raise InputError(problem, remedy="Add another --annotator, or compare all of them without it")
        pairs = pairs_of_annotators(room.utterances, room.label_set, ledger, only)
        joint_agreement = None if differing else all_annotators(room.utterances, ledger, only)
        if spans:
            standard_output().write(safe_csv(span_rows(room.utterances, ledger, only)))
        elif as_json:
            output = {"project": room.project.id, **agreement_object(pairs, joint_agreement)}
            print_lines([json.dumps(output)])
        elif differing:
            print_lines(differing_lines(pairs, room.utterances, ledger))
        else:
            print_lines(agreement_lines(pairs, joint_agreement))
    if min_alpha is not None:
        from harness.statistics.agreement import Figure
        from harness.statistics.verdict import alpha_limit

        alphas = {
            f"{plain_text(pair.first, 64)} and {plain_text(pair.second, 64)}": pair.figures.masi for pair in pairs
        }
        if not alphas:
            alphas = {"annotators": Figure(None, why_not=NOTHING_SHARED)}
        demand_limits(alpha_limit(f"alpha of {names}", min_alpha, alpha) for names, alpha in alphas.items())
