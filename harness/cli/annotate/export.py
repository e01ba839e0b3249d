"""`harness annotate export`: the final labels as a corpus, or as a file of intents."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.annotation.ledger import outcome, with_labels
from harness.base.cells import counted
from harness.base.foreign import plain_text
from harness.cli.annotate.project_options import open_project, project_argument
from harness.cli.options import Command, Option
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus

FORMATS = ("jsonl", "bio", "csv")
SPLIT = "split"


@click.command("export", cls=Command)
@project_argument
@click.option(
    "--output",
    "out",
    cls=Option,
    former=("--out",),
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file; a new folder for bio.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the suffix of FILE, else jsonl.")
@click.option("--split", "splits", multiple=True, help="Only this split of the data; may be repeated.")
@click.option("--final-only", is_flag=True, help="Leave out what is not final, and say how many those are.")
@click.option("--mark", is_flag=True, help="Write all; jsonl only: each utterance with its state in a group `state`.")
def command(project: Path, out: Path, form: str | None, splits: tuple[str, ...], final_only: bool, mark: bool) -> None:
    """Write the utterances with their final labels; slots and groups of the data stay.

    Refused while an utterance has no final labels, unless --final-only leaves those out or --mark writes their state
    beside them. docs/annotation.md

    Exit status: 0 written · 2 wrong usage or input, nothing is written · 3 it cannot be written.
    """
    from harness.understanding.files.corpus_writing import write_bio, write_intents_csv, write_jsonl

    form = form or ("csv" if out.suffix == ".csv" else "jsonl")
    if final_only and mark:
        raise InputError("--final-only and --mark exclude each other", remedy="Choose one")
    if mark and form != "jsonl":
        raise InputError(f"{form} cannot say what is not final", remedy="Write --format jsonl, or --final-only")
    room = open_project(project)
    try:
        if out.absolute().is_relative_to(room.folder.path.absolute()):
            raise InputError(
                "this is in the project's folder",
                place=Place(str(out)),
                remedy="Its files are frozen: name another place",
            )
        found = outcome(room.utterances, room.shares, room.ledger)
        wanted = [one for one in room.utterances if not splits or dict(one.groups).get(SPLIT) in splits]
        if not wanted:
            known = sorted({split for one in room.utterances if (split := dict(one.groups).get(SPLIT))})
            listed = f"Splits: {', '.join(known)}" if known else "The data has no splits: leave --split out"
            raise InputError("no utterance is of that split", remedy=listed)
        left = [one for one in wanted if not found.standing[one.id].state.is_final]
        if left and not (final_only or mark):
            first = plain_text(left[0].id, 60)
            raise InputError(
                f"{counted(len(left), 'utterance')} of {len(wanted)} without final labels, such as {first}",
                remedy="Go on with: harness annotate review; or add --final-only, or --mark",
            )
        corpus = Corpus(str(project), with_labels(wanted, found, marked=mark))
        if not corpus.utterances:
            raise InputError("no utterance has final labels", remedy="Go on with: harness annotate review")
        match form:
            case "jsonl":
                write_jsonl(corpus, out)
            case "csv":
                write_intents_csv(corpus, out)
            case _:
                write_bio(corpus, out)
    finally:
        room.close()
    click.echo(f"wrote {plain_text(str(out), 300)}: {counted(len(corpus.utterances), 'utterance')}")
    if left:
        how = "marked" if mark else "left out"
        click.echo(f"harness: {counted(len(left), 'utterance')} without final labels, {how}", err=True)
    sys.exit(0)
