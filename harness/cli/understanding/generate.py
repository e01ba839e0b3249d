"""`harness understanding generate`: an annotated corpus out of grammars and a seed."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import Command, Option
from harness.model.errors import HarnessError, InputError, Place
from harness.model.understanding import Corpus

JSONL, BIO = "jsonl", "bio"
MOST = 200_000


@click.command("generate", cls=Command)
@click.argument("grammars", nargs=-1, required=True, metavar="GRAMMAR.yaml…", type=click.Path(path_type=Path))
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="The same, the same files."
)
@click.option(
    "--train",
    type=click.IntRange(0, MOST),
    default=4000,
    show_default=True,
    help="Utterances to train on.",
)
@click.option("--dev", type=click.IntRange(0, MOST), default=500, show_default=True, help="Held-out utterances.")
@click.option("--test", type=click.IntRange(0, MOST), default=1000, show_default=True, help="Utterances to score on.")
@click.option(
    "--output",
    "out",
    cls=Option,
    former=("--out",),
    required=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A new folder.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([BIO, JSONL]),
    default=BIO,
    show_default=True,
    help="bio: seq.in, seq.out and label in a folder for each split. jsonl: a file for each, with values, too.",
)
def command(grammars: tuple[Path, ...], seed: int, train: int, dev: int, test: int, out: Path, form: str) -> None:
    """Make an annotated corpus from grammar files and a seed: the same on every machine, no sentence twice.

    A folder stands for the .yaml files in it. Format: docs/understanders.md

    Exit status: 0 made · 2 wrong usage or input · 3 the folder cannot be written.
    """
    from harness.understanding.files.grammar_file import load_grammars
    from harness.understanding.models.grammar import fingerprint, generate

    sizes = {"train": train, "dev": dev, "test": test}
    if not any(sizes.values()):
        raise InputError("no utterance is wanted", remedy="Give a number for --train, --dev or --test")
    _demand_new(out)
    corpus = generate(load_grammars(_files(grammars)), seed, sizes)
    _write(corpus, out, form)
    made = ", ".join(f"{size:,} {split}" for split, size in sizes.items() if size)
    click.echo(f"{out}: {made}; seed {seed}; sha256 {fingerprint(corpus)}", err=True)


def _files(named: tuple[Path, ...]) -> list[Path]:
    """The files that are meant; those of a folder in the order of their names."""
    found: list[Path] = []
    for path in named:
        inside = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not inside:
            raise InputError("there is no .yaml file in this folder", place=Place(str(path)), remedy="Name another one")
        found += inside
    return found


def _demand_new(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InputError("there is something already", place=Place(str(folder)), remedy="Name a new folder")
    if not folder.absolute().parent.is_dir():
        what = "the folder that it should lie in does not exist"
        raise InputError(what, place=Place(str(folder)), remedy="Make it, or name another")


def _write(corpus: Corpus, folder: Path, form: str) -> None:
    """Writes the folder whole or not at all."""
    from harness.base.whole_file import whole_folder
    from harness.understanding.files.corpus_writing import write_bio, write_jsonl

    if form == BIO:
        write_bio(corpus, folder)
        return
    try:
        with whole_folder(folder.absolute()) as made:
            splits = dict.fromkeys(dict(one.groups)["split"] for one in corpus.utterances)
            for split in splits:
                of_split = tuple(one for one in corpus.utterances if dict(one.groups)["split"] == split)
                write_jsonl(Corpus(corpus.path, of_split), made / f"{split}.jsonl")
    except OSError as error:
        what = f"it cannot be written: {error.strerror or error}"
        raise HarnessError(what, place=Place(str(folder)), remedy="Make room, or name another folder") from error
