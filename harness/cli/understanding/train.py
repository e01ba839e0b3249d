"""`harness understanding train`: an understander out of annotated utterances."""

from __future__ import annotations

from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.cli.options import Command, Option
from harness.cli.understanding.training_options import settings_of, splits_of, tell
from harness.model.choices import CorpusFormat

DEFAULT = "crf"


@click.command("train", cls=Command)
@click.option("--data", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="With train, and dev.")
@click.option(
    "--output",
    "out",
    cls=Option,
    former=("--out",),
    required=True,
    metavar="MODEL",
    type=click.Path(path_type=Path),
    help="Folder of the model.",
)
@click.option(
    "--understander",
    default=DEFAULT,
    show_default=True,
    metavar="NAME",
    help="A plug-in: crf, transformer.",
)
@click.option(
    "-s",
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of it; more than once for several.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="The same, the same model."
)
@click.option(
    "--format",
    "form",
    type=click.Choice([CorpusFormat.BIO, CorpusFormat.JSONL]),
    help="Where what lies in the folder does not say it.",
)
@click.option("--force", is_flag=True, help="Replace a model that is there.")
def command(
    data: Path, out: Path, understander: str, settings: tuple[str, ...], seed: int, form: str | None, force: bool
) -> None:
    """Train an understander on the split train of a folder; the split dev, if there is one, decides when to end.

    The model's folder is there whole or not at all. docs/understanders.md

    Exit status: 0 trained · 2 wrong usage or input · 3 the model cannot be written.
    """
    from harness.understanding.models.model_folder import demand_place, save_model
    from harness.understanding.models.training import make_understander, train

    demand_place(out, force=force)
    given = settings_of(settings)
    make_understander(understander, given, seed)  # what is wrong is said before anything is read
    splits = splits_of(data, form)
    trained = train(understander, given, seed, splits.train, splits.held_out, tell)
    save_model(understander, trained.understander, out, trained.facts, force=force)
    facts = trained.facts
    figures = ", ".join(f"{name} {100 * value:.2f} %" for name, value in facts.held_out)
    on = f"; held-out ({facts.held_out_utterances:,}): {figures}" if figures else ""
    for note in facts.notes:
        tell(note)
    shown = plain_text(str(out))
    click.echo(f"{shown}: {understander}, {facts.utterances:,} utterances, {facts.cpu_s:.1f} CPU s{on}")
