"""`harness annotate new`, `import` and `export`: a project made, given labels of a file, and its labels written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import counted, plain_text
from harness.cli.options import Command, Option, WordOf, choose_one
from harness.model.annotation import MOST_ON_A_PAGE, LabelProposalShown, SecondWork
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus

if TYPE_CHECKING:
    from harness.annotation.making import Import
    from harness.annotation.project import AnnotationRoom

FORMATS = ("jsonl", "bio", "csv")
SPLIT = "split"
LONGEST_NAME = 64
LISTED = 3
PATH = click.Path(path_type=Path)
project_argument = click.argument("project", type=click.Path(path_type=Path, file_okay=False), metavar="PROJECT")
map_option = click.option(
    "--map", "mapping", metavar="FILE|media", help="Names of labels there → names here: CSV `from,to`."
)


def annotator_name(written: str) -> str:
    """A name that may stand in rows; InputError."""
    name = written.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{written!r} is no name of an annotator", remedy=f"Write 1 to {LONGEST_NAME} printable characters"
        )
    return name


def open_project(folder: Path) -> AnnotationRoom:
    """The room of a project; InputError when the folder is none."""
    from harness.annotation.project import AnnotationRoom

    if not (folder / "project.json").is_file():
        raise InputError(f"{folder} is no annotation project", remedy="Make one with: harness annotate new")
    return AnnotationRoom(folder)


@click.command("new")
@click.argument("project", type=PATH, metavar="PROJECT")
@click.option(
    "--data",
    multiple=True,
    required=True,
    type=PATH,
    metavar="FOLDER|FILE",
    help="Utterances: a folder of seq.in, a .jsonl, .csv, .trn or .txt file; may be repeated.",
)
@click.option("--labels", required=True, type=PATH, metavar="LABELS.yaml", help="The label set.")
@click.option("--split", "splits", multiple=True, help="Only this split of the data; may be repeated.")
@click.option("--take-labels", is_flag=True, help="Take the labels in the data as given, by the annotator `imported`.")
@click.option("--intents", type=PATH, metavar="FILE.csv", help="Take labels from this file by id.")
@map_option
@click.option("--annotator", "annotators", multiple=True, help="Who takes part; may be repeated. Default: who comes.")
@click.option(
    "--double",
    "double_share",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="This share of the utterances goes to two annotators; 1 is all. Default 0.",
)
@click.option(
    "--second",
    type=WordOf(SecondWork),
    default=SecondWork.HAND.value,
    help="The second of two labels by hand, or reviews by groups too. Default hand.",
)
@click.option(
    "--proposal",
    type=WordOf(LabelProposalShown),
    default=LabelProposalShown.AFTER.value,
    help="Who labels by hand sees what is proposed after their choice is saved, or before. Default after.",
)
@click.option(
    "--page-size",
    type=click.IntRange(1, MOST_ON_A_PAGE),
    default=10,
    help="Utterances on a page of a group. Default 10.",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, help="Of orders and shares. Default 0.")
def new(project: Path, annotators: tuple[str, ...], mapping: str | None, **wanted: Any) -> None:
    """Make a project: a folder with copies of the utterances and of the label set, and a file of all that is given.

    The copies are frozen: change the data, and make a new project. docs/annotation.md, docs/format-labels.md

    Exit status: 0 made · 2 wrong usage or input, nothing is made · 3 it cannot be written.
    """  # fmt: skip
    from harness.annotation.making import NewProject, make_project
    from harness.understanding.files.label_set_file import load_label_map

    names = tuple(annotator_name(one) for one in annotators)
    if len(set(names)) < len(names):
        raise InputError("an annotator is named twice", remedy="Name each once")
    if wanted["double_share"] and len(names) == 1:
        raise InputError("--double wants two annotators", remedy="Name another one with --annotator, or name none")
    if mapping is not None and not (wanted["take_labels"] or wanted["intents"]):
        raise InputError("--map is of labels that are taken", remedy="Add --take-labels or --intents FILE.csv")
    names_here = None if mapping is None else load_label_map(mapping)
    made = make_project(project, NewProject(annotators=names, mapping=names_here, **wanted))
    shown = plain_text(str(project), 300)
    labelled = f"{counted(made.project.utterances, 'utterance')}, {counted(len(made.label_set.labels), 'label')}"
    click.echo(f"made {shown}: {labelled}")
    for one in made.imported:
        _say_imported(one)
    click.echo(f"next: harness annotate review {shown}")


@click.command("import")
@project_argument
@click.argument("file", type=PATH, metavar="FILE")
@map_option
def import_intents(project: Path, file: Path, mapping: str | None) -> None:
    """Take labels from a file, by the ids of the utterances; they count as those of the annotator `imported`.

    FILE: a CSV file `id,intent` with labels joined by #, as the public intent files of MEDIA are (--map media makes
    their French labels those of the seed's English tables), or annotated utterances as JSONL or BIO. All of it is
    taken or, when a label is unknown or against the rules, nothing. docs/annotation.md

    Exit status: 0 done · 2 wrong usage or input, nothing is taken · 3 the project cannot be read or written.
    """
    from harness.annotation.making import import_file
    from harness.understanding.files.label_set_file import load_label_map

    names = {} if mapping is None else load_label_map(mapping)
    with closing(open_project(project)) as room:
        _say_imported(import_file(room, file, names))


def _say_imported(found: Import) -> None:
    """What was taken, and what did not match."""
    same = f", {found.same} had the same labels before" if found.same else ""
    click.echo(f"labelled {counted(len(found.rows), 'utterance')}{same}")
    for ids, one, how in (
        (found.without_text, "id", "of the file with no utterance here"),
        (found.without_labels, "utterance", "without labels in the file"),
    ):
        if ids:
            such = ", ".join(plain_text(id_, 60) for id_ in ids[:LISTED]) + ", …" * (len(ids) > LISTED)
            click.echo(f"{counted(len(ids), one)} {how}: {such}")


@click.command("export", cls=Command)
@project_argument
@click.option(
    "--output",
    "out",
    cls=Option,
    former=("--out",),
    required=True,
    type=PATH,
    metavar="FILE",
    help="A file; a new folder for bio.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the suffix of FILE, else jsonl.")
@click.option("--split", "splits", multiple=True, help="Only this split of the data; may be repeated.")
@click.option("--final-only", is_flag=True, help="Leave out what is not final, and say how many those are.")
@click.option("--mark", is_flag=True, help="Write all; jsonl only: each utterance with its state in a group `state`.")
def export(project: Path, out: Path, form: str | None, splits: tuple[str, ...], final_only: bool, mark: bool) -> None:
    """Write the utterances with their final labels; slots and groups of the data stay.

    Refused while an utterance has no final labels, unless --final-only leaves those out or --mark writes their state
    beside them. docs/annotation.md

    Exit status: 0 written · 2 wrong usage or input, nothing is written · 3 it cannot be written.
    """
    from harness.annotation.ledger import outcome, with_labels
    from harness.understanding.files.corpus_writing import write_bio, write_intents_csv, write_jsonl

    form = form or ("csv" if out.suffix == ".csv" else "jsonl")
    choose_one(final_only=final_only, mark=mark)
    if mark and form != "jsonl":
        raise InputError(f"{form} cannot say what is not final", remedy="Write --format jsonl, or --final-only")
    with closing(open_project(project)) as room:
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
    click.echo(f"wrote {plain_text(str(out), 300)}: {counted(len(corpus.utterances), 'utterance')}")
    if left:
        how = "marked" if mark else "left out"
        click.echo(f"harness: {counted(len(left), 'utterance')} without final labels, {how}", err=True)
