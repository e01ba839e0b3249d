"""`harness understand annotate new`, `import`, `export`: create a project, import labels, export the final labels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text
from harness.base.plugins import pip_install
from harness.base.user_text import refuse_same_names
from harness.cli.options import (
    A_FOLDER,
    SHIPPED_FILE,
    EnumChoice,
    FiniteRange,
    argument,
    choose_one,
    flag,
    option,
    option_group,
    output_option,
    parse_share,
    repeatable,
    verb,
)
from harness.cli.streams import STREAM, write_output
from harness.model.annotation import MAX_ON_A_PAGE, LabellingOrder, LabelProposalShown, SecondAnnotatorMode
from harness.model.choices import SPLIT
from harness.model.errors import InputError, Place
from harness.model.numbers import counted
from harness.model.understanding import Corpus, Utterance

if TYPE_CHECKING:
    from harness.annotation.project import AnnotationRoom
    from harness.annotation.project_creation import LabelImport

FORMATS = ("jsonl", "bio", "csv")
MAX_LISTED_IDS = 3
PATH = click.Path(path_type=Path)
project_argument = argument("PROJECT", type=A_FOLDER)
map_option = option(
    "Rename labels with a CSV file (columns from and to), or with the list for MEDIA (media).",
    "--rename-labels",
    former=("--map",),
    metavar="FILE|media",
)


def open_project(folder: Path) -> AnnotationRoom:
    """The room of a project. Raises InputError when the folder is not a project."""
    from harness.annotation.project import AnnotationRoom

    if not (folder / "project.json").is_file():
        raise InputError(
            f"{folder} is not an annotation project", remedy="Create one with: harness understand annotate new"
        )
    return AnnotationRoom(folder)


@verb(
    "new", sections={"Annotators": "annotators double_share second", "Order": "seed order batch target_error page_size"}
)
def new(
    *,
    project: Path = argument("PROJECT"),
    options: dict[str, Any] = option_group(
        data=repeatable(
            "Utterances: a folder with seq.in, or a .jsonl, .csv, .trn or .txt file; repeatable.",
            required=True, type=PATH, metavar="FOLDER|FILE",
        ),
        labels=option("Label set.", required=True, type=SHIPPED_FILE, metavar="LABELS.yaml"),
        splits=repeatable("Use only this split of the data; repeatable.", "--split"),
        take_labels=flag("Import the labels that the data has.", "--import-labels", former=("--take-labels",)),
        intents=option("Import labels from this file, by id.", type=PATH, metavar="FILE.csv"),
        mapping=map_option,
        annotators=repeatable("Annotator; repeatable.", "--annotator", show_default="anyone"),
        double_share=option(
            "Share of the utterances that two annotators label; 1 means all.",
            "--double", type=FiniteRange(0, 1), default=0.0, metavar="SHARE",
        ),
        second=option(
            "What the second annotator does: label by hand, or review proposals too.",
            type=EnumChoice(SecondAnnotatorMode), default=SecondAnnotatorMode.HAND,
        ),
        proposal=option(
            "When an annotator who labels by hand sees the proposal: after the choice is saved, or before.",
            type=EnumChoice(LabelProposalShown), default=LabelProposalShown.AFTER,
        ),
        page_size=option(
            "Utterances per page of a group.",
            type=click.IntRange(1, MAX_ON_A_PAGE), default=10,
        ),
        seed=option(
            "Random seed for the order, and for who labels which utterance.",
            type=click.IntRange(0, 2**31), default=0,
        ),
        order=option(
            "Order for labelling by hand: the utterances a classifier is least sure of first, or random.",
            type=EnumChoice(LabellingOrder), show_default="doubt, if scikit-learn is installed",
        ),
        batch=option(
            "Number of new labels after which the classifier is retrained.",
            type=click.IntRange(1, 10_000), default=50,
        ),
        target_error=option(
            "Estimated error below which a classifier may label the rest.",
            callback=parse_share, default="1%", metavar="X",
        ),
    ),
) -> None:  # fmt: skip
    """Create a project: a folder with copies of the utterances and the label set, and a file for the labels.

    The copies never change. To change the data, make a new project. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 created · 2 wrong usage or input, nothing created · 3 it cannot be written.
    """
    from harness.annotation.project import annotator_name
    from harness.annotation.project_creation import make_project
    from harness.understanding.files.label_set_file import load_label_map

    options["order"] = _choose_order(options["order"])
    names = tuple(annotator_name(name) for name in options.pop("annotators"))
    refuse_same_names(names, "annotator")
    mapping = options.pop("mapping")
    if len(set(names)) < len(names):
        raise InputError("an annotator is listed twice", remedy="List each annotator only once")
    if options["double_share"] and len(names) == 1:
        raise InputError(
            "--double needs two annotators", remedy="Add a second annotator with --annotator, or remove --double"
        )
    if mapping is not None and not (options["take_labels"] or options["intents"]):
        raise InputError("--rename-labels has no labels to rename", remedy="Add --import-labels or --intents FILE.csv")
    label_map = None if mapping is None else load_label_map(mapping)
    project_facts, label_set, imports = make_project(project, annotators=names, mapping=label_map, **options)
    shown = plain_text(str(project), 300)
    sizes = f"{counted(project_facts.utterances, 'utterance')}, {counted(len(label_set.labels), 'label')}"
    if label_set.concepts:
        sizes += f", {counted(len(label_set.concepts), 'concept')}"
    click.echo(f"made {shown}: {sizes}")
    for import_result in imports:
        _print_import(import_result)
    click.echo(f"next: harness understand annotate review {shown}")


def _choose_order(order: LabellingOrder | None) -> LabellingOrder:
    """The requested order, otherwise `doubt` if scikit-learn is installed. Raises InputError for `doubt` without it."""
    installed = find_spec("sklearn") is not None
    if order is LabellingOrder.DOUBT and not installed:
        remedy = f"Install it: {pip_install('understanding')}, or use --order random"
        raise InputError("--order doubt needs scikit-learn", remedy=remedy)
    return order or (LabellingOrder.DOUBT if installed else LabellingOrder.RANDOM)


@verb("import")
def import_intents(
    *, project: Path = project_argument, file: Path = argument("FILE"), mapping: str | None = map_option
) -> None:
    """Import labels from a file, by the ids of the utterances, as labels of the annotator `imported`.

    FILE is a CSV file `id,intent` with labels joined by #, or annotated utterances as JSONL or BIO. For the public
    intent files of MEDIA, --rename-labels media replaces the French labels with English ones.

    If any label is unknown or breaks a rule, nothing is imported. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 done · 2 wrong usage or input, nothing is imported · 3 the project cannot be read or written.
    """
    from harness.annotation.project_creation import import_file
    from harness.understanding.files.label_set_file import load_label_map

    label_map = {} if mapping is None else load_label_map(mapping)
    with closing(open_project(project)) as room:
        _print_import(import_file(room, file, label_map))


def _print_import(import_result: LabelImport) -> None:
    """Prints what was imported, and what did not match."""
    same_text = f", {import_result.same} already had the same labels" if import_result.same else ""
    click.echo(f"labelled {counted(len(import_result.rows), 'utterance')}{same_text}")
    unmatched, unlabelled = import_result.without_text, import_result.without_labels
    unmatched_count = counted(len(unmatched), "id in the file matches", "ids in the file match")
    unlabelled_count = counted(len(unlabelled), "utterance has", "utterances have")
    for ids, text in (
        (unmatched, f"{unmatched_count} no utterance of this project"),
        (unlabelled, f"{unlabelled_count} no labels in the file"),
    ):
        if ids:
            examples = [plain_text(id_, 60) for id_ in ids[:MAX_LISTED_IDS]]
            if len(ids) > MAX_LISTED_IDS:
                examples.append("…")
            click.echo(f"{text}: {', '.join(examples)}")


@verb("export")
def export(
    *,
    project: Path = project_argument,
    out: Path = output_option(
        "File to write, or a new folder for bio; - is standard output.",
        type=click.Path(path_type=Path),
        required=True,
        metavar="FILE",
    ),
    form: str | None = option(
        "Format of the result.",
        "--output-format",
        former=("--format",),
        type=click.Choice(FORMATS),
        show_default="by the suffix of FILE, else jsonl",
    ),
    splits: tuple[str, ...] = repeatable("Export only this split of the data; repeatable.", "--split"),
    final_only: bool = flag("Leave out utterances without final labels, and report how many."),
    proposed: bool = flag("Export unreviewed proposals as labels."),
    mark: bool = flag("Write all utterances, each with a group `state` (jsonl only)."),
) -> None:
    """Write the utterances with their final labels and slots, and with the groups of the data.

    If any utterance has no final labels, nothing is written. Use --final-only to leave such utterances out, or --mark
    to add the state of each. How-to: docs/how-to/annotate-utterances.md

    Exit status: 0 written · 2 wrong usage or input, nothing is written · 3 it cannot be written.
    """
    from harness.annotation.ledger import project_outcome, with_labels, with_proposals
    from harness.understanding.files.corpus_writing import intents_csv, jsonl, write_bio

    form = form or ("csv" if out.suffix == ".csv" else "jsonl")
    choose_one(final_only=final_only, mark=mark)
    if mark and form != "jsonl":
        raise InputError(
            f"--mark does not work with {form}", remedy="Use --output-format jsonl, or --final-only instead of --mark"
        )
    is_printed = str(out) == STREAM
    if is_printed and form == "bio":
        raise InputError(
            "bio creates a folder, which cannot go to standard output", remedy="Choose a new folder with --output"
        )
    with closing(open_project(project)) as room:
        if out.absolute().is_relative_to(room.folder.path.absolute()):
            raise InputError(
                "this file is inside the project's folder",
                place=Place(str(out)),
                remedy="Choose a file outside the project",
            )
        progress = project_outcome(room.utterances, room.assignment, room.ledger)
        proposed_ids = frozenset[str]()
        if proposed:
            progress, proposed_ids = with_proposals(progress, room.ledger)
        utterances = _select_splits(room.utterances, splits)
        without_labels = [
            utterance
            for utterance in utterances
            if not (progress.statuses[utterance.id].state.is_final or utterance.id in proposed_ids)
        ]
        if without_labels and not (final_only or mark):
            example_id = plain_text(without_labels[0].id, 60)
            raise InputError(
                f"{len(without_labels)} of {counted(len(utterances), 'utterance')} have no final labels, "
                f"such as {example_id}",
                remedy="Continue with harness understand annotate review, or add --final-only, --proposed or --mark",
            )
        corpus = Corpus(str(project), with_labels(utterances, progress, proposed_ids, with_state=mark))
        if not corpus.utterances:
            raise InputError(
                "no utterance has final labels", remedy="Continue with: harness understand annotate review"
            )
        match form:
            case "jsonl":
                write_output(str(out), [jsonl(corpus)])
            case "csv":
                write_output(str(out), [intents_csv(corpus)])
            case _:
                write_bio(corpus, out)
    if not is_printed:
        click.echo(f"wrote {plain_text(str(out), 300)}: {counted(len(corpus.utterances), 'utterance')}")
    if proposed_ids:
        unreviewed_count = sum(utterance.id in proposed_ids for utterance in corpus.utterances)
        click.echo(f"harness: exported {counted(unreviewed_count, 'utterance')} with unreviewed labels", err=True)
    if without_labels:
        verb_text = "marked" if mark else "left out"
        count_text = counted(len(without_labels), "utterance")
        click.echo(f"harness: {verb_text} {count_text} without final labels", err=True)


def _select_splits(utterances: Sequence[Utterance], splits: tuple[str, ...]) -> list[Utterance]:
    """The utterances of these splits; () selects all. Raises InputError if there are none."""
    if not splits:
        return list(utterances)
    selected = [utterance for utterance in utterances if dict(utterance.groups).get(SPLIT) in splits]
    if not selected:
        split_names = sorted({dict(utterance.groups).get(SPLIT, "") for utterance in utterances} - {""})
        remedy = f"Splits: {', '.join(split_names)}" if split_names else "The data has no splits, so remove --split"
        raise InputError("no utterance belongs to the split given with --split", remedy=remedy)
    return selected
