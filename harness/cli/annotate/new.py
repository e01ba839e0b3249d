"""`harness annotate new`: a project of utterances and a label set."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.cells import counted
from harness.base.foreign import plain_text
from harness.cli.annotate.project_options import annotator_name, import_lines
from harness.model.annotation import MOST_ON_A_PAGE, ProposalShown, SecondWork
from harness.model.errors import InputError


@click.command("new")
@click.argument("project", type=click.Path(path_type=Path), metavar="PROJECT")
@click.option(
    "--data",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER|FILE",
    help="Utterances: a folder of seq.in, a .jsonl, .csv, .trn or .txt file; may be repeated.",
)
@click.option(
    "--labels",
    required=True,
    type=click.Path(path_type=Path),
    metavar="LABELS.yaml",
    help="The label set.",
)
@click.option("--split", "splits", multiple=True, help="Only this split of the data; may be repeated.")
@click.option(
    "--take-labels",
    is_flag=True,
    help="Take the labels in the data as given, by the annotator `imported`.",
)
@click.option(
    "--intents", type=click.Path(path_type=Path), metavar="FILE.csv", help="Take labels from this file by id."
)
@click.option("--map", "mapping", metavar="FILE|media", help="Names of labels there → names here: CSV `from,to`.")
@click.option("--annotator", "annotators", multiple=True, help="Who takes part; may be repeated. Default: who comes.")
@click.option(
    "--double",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="This share of the utterances goes to two annotators; 1 is all. Default 0.",
)
@click.option(
    "--second",
    type=click.Choice([one.value for one in SecondWork]),
    default=SecondWork.HAND.value,
    help="The second of two labels by hand, or reviews by groups too. Default hand.",
)
@click.option(
    "--proposal",
    type=click.Choice([one.value for one in ProposalShown]),
    default=ProposalShown.AFTER.value,
    help="Who labels by hand sees what is proposed after their choice is saved, or before. Default after.",
)
@click.option(
    "--page-size",
    type=click.IntRange(1, MOST_ON_A_PAGE),
    default=10,
    help="Utterances on a page of a group. Default 10.",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, help="Of orders and shares. Default 0.")
def command(
    project: Path,
    data: tuple[Path, ...],
    labels: Path,
    splits: tuple[str, ...],
    take_labels: bool,
    intents: Path | None,
    mapping: str | None,
    annotators: tuple[str, ...],
    double: float,
    second: str,
    proposal: str,
    page_size: int,
    seed: int,
) -> None:
    """Make a project: a folder with copies of the utterances and of the label set, and a file of all that is given.

    The copies are frozen: change the data, and make a new project. docs/annotation.md, docs/format-labels.md

    Exit status: 0 made · 2 wrong usage or input, nothing is made · 3 it cannot be written.
    """
    from harness.annotation.making import NewProject, make_project
    from harness.understanding.files.label_set_file import load_label_map

    names = tuple(annotator_name(one) for one in annotators)
    if len(set(names)) < len(names):
        raise InputError("an annotator is named twice", remedy="Name each once")
    if double and len(names) == 1:
        raise InputError("--double wants two annotators", remedy="Name another one with --annotator, or name none")
    if mapping is not None and not (take_labels or intents):
        raise InputError("--map is of labels that are taken", remedy="Add --take-labels or --intents FILE.csv")
    made = make_project(
        project,
        NewProject(
            data=data,
            labels=labels,
            splits=splits,
            take_labels=take_labels,
            intents=intents,
            mapping=None if mapping is None else load_label_map(mapping),
            proposal=ProposalShown(proposal),
            second=SecondWork(second),
            page_size=page_size,
            annotators=names,
            double_share=double,
            seed=seed,
        ),
    )
    shown = plain_text(str(project), 300)
    labelled = f"{counted(made.project.utterances, 'utterance')}, {counted(len(made.label_set.labels), 'label')}"
    click.echo(f"made {shown}: {labelled}")
    for one in made.imported:
        for line in import_lines(one):
            click.echo(line)
    click.echo(f"next: harness annotate review {shown}")
