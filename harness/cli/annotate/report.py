"""`harness annotate report`: what was labelled how, and what it cost."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.annotation.ledger import outcome
from harness.base.safe_csv import safe_csv
from harness.cli.annotate.project_options import open_project, project_argument
from harness.cli.options import Command, csv_option, json_option
from harness.cli.streams import standard_output
from harness.model.errors import InputError


@click.command("report", cls=Command)
@project_argument
@json_option("as_object", "As one JSON object.")
@csv_option("as_csv", "As rows of section, split, what, count.")
def command(project: Path, as_object: bool, as_csv: bool) -> None:
    """Say what was labelled how: by consensus, without, struck, by hand; the final labels by split; the time it took.

    Works while annotators are at it. docs/tri-training.md has how to read it.

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read.
    """
    from harness.annotation.report import annotation_report, as_json, as_table, lines
    from harness.cli.streams import print_lines

    if as_object and as_csv:
        raise InputError("--json and --csv exclude each other", remedy="Choose one")
    room = open_project(project)
    try:
        standing = outcome(room.utterances, room.shares, room.ledger).standing
        final = {id_: one.intents for id_, one in standing.items() if one.state.is_final and one.intents is not None}
        report = annotation_report(room.utterances, room.rows, final)
        labels = room.label_set.ids
    finally:
        room.close()
    if as_object:
        standard_output().write(json.dumps(as_json(report, labels)) + "\n")
    elif as_csv:
        standard_output().write(safe_csv(as_table(report, labels)))
    else:
        print_lines(lines(report, labels))
