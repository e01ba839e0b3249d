"""`harness understanding distribution`: how often each label is there, by split."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import click

from harness.cli.options import Command, target_option
from harness.cli.read_once import STDIN, named, readable, refuse_overwriting
from harness.cli.understanding.declared_labels import declared_labels
from harness.cli.understanding.rule_options import separator_option
from harness.model.choices import CorpusFormat
from harness.model.errors import InputError, Place
from harness.model.understanding import Chunking, Corpus
from harness.understanding.reports.distribution import Distribution, LabelCounts, as_csv, as_json, count_labels, lines

MOST = 20
SPLIT = "split"
FORMATS = click.Choice([one.value for one in CorpusFormat])


@click.command("distribution", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="[SPLIT=]FILE|FOLDER…")
@click.option("--format", "form", type=FORMATS, help="Where the suffix, or what lies in the folder, does not say it.")
@click.option("--by", default=SPLIT, show_default=True, metavar="COLUMN", help="The group that parts a single file.")
@click.option("--labels", metavar="LABELS.yaml|A,B,…", help="Declared intents: each has a row, and others are told.")
@click.option(
    "--chunking",
    type=click.Choice([one.value for one in Chunking]),
    default=Chunking.CONLLEVAL.value,
    show_default=True,
    help="How BIO tags are read as slots.",
)
@separator_option
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=MOST,
    show_default=True,
    help="Rows of a table; 0 for all.",
)
@click.option("--shares", is_flag=True, help="Shares of each split's utterances in place of counts.")
@target_option("--json", "json_target", "Print JSON and no text.")
@target_option("--csv", "csv_target", "Print a CSV table and no text.")
def command(
    files: tuple[str, ...],
    form: str | None,
    by: str,
    labels: str | None,
    chunking: str,
    separator: str,
    most: int,
    shares: bool,
    json_target: str | None,
    csv_target: str | None,
) -> None:
    """Count intents, combinations of intents and concepts by split, with sums.

    Files of intents (CSV: id,intent), BIO folders and JSONL. A folder has its own splits; a file is one, called by
    its name or by what stands before it: train=a.csv dev=b.csv.

    Exit status: 0 counted · 1 a label is not declared in --labels · 2 wrong usage or input · 3 a report cannot be
    written.
    """
    from harness.cli import score_output as output

    declared = declared_labels(labels) if labels else None
    wanted = [_named_file(one) for one in files]
    for target in filter(None, (json_target, csv_target)):
        refuse_overwriting(target, [path for _, path in wanted])
    if sum(path == STDIN for _, path in wanted) > 1:
        raise InputError("only one file can come from standard input", remedy="Name the others")
    if json_target == csv_target == STDIN:
        raise InputError("--json - and --csv - both go to standard output", remedy="Name a file for one of them")
    splits: dict[str, tuple[LabelCounts, str]] = {}
    first_in: dict[str, str] = {}
    notes: list[str] = []
    for split, path in wanted:
        for name, corpus in _read(split, path, CorpusFormat(form) if form else None, by).items():
            if name in splits:
                what = f"two splits are called {name!r}"
                raise InputError(what, place=Place(path), remedy="Call one otherwise: other=FILE")
            splits[name] = count_labels(corpus.utterances, Chunking(chunking)), corpus.path
            notes += _twice(name, corpus, first_in)
    found = Distribution(
        tuple((name, counts) for name, (counts, _) in splits.items()),
        () if declared is None else declared.ids,
        separator,
    )
    if json_target is not None:
        text = json.dumps(as_json(found, [file for _, file in splits.values()]), indent=1) + "\n"
        _write(json_target, text)
    if csv_target is not None:
        _write(csv_target, as_csv(found))
    if STDIN not in (json_target, csv_target):
        output.print_lines([*lines(found, output.width(), most, shares=shares), *notes])
    if declared is not None:
        declared.demand(found.total)


def _named_file(written: str) -> tuple[str, str]:
    """A split's name and its file; the name is "" where none is given. A file that has = in its name is one."""
    name, sign, path = written.partition("=")
    if not sign or not name or not path or Path(written).exists():
        return "", written
    return name, path


def _read(split: str, path: str, form: CorpusFormat | None, by: str) -> dict[str, Corpus]:
    from harness.understanding.files.corpus_file import read_corpus, read_splits

    with ExitStack() as stack:
        file = stack.enter_context(readable(path))
        try:
            if split:
                return {split: read_corpus(file.path, form, name=file.name)}
            found = read_splits(file.path, form, name=file.name)
        except InputError as error:
            raise named(error, file) from error
    if list(found) != [""]:
        return found
    corpus = found[""]
    parted: dict[str, list[int]] = {}
    for at, one in enumerate(corpus.utterances):
        parted.setdefault(dict(one.groups).get(by, ""), []).append(at)
    if list(parted) == [""]:
        return {Path(file.name).stem or file.name: corpus}
    return {
        label or "(none)": Corpus(corpus.path, tuple(corpus.utterances[at] for at in places))
        for label, places in parted.items()
    }


def _twice(name: str, corpus: Corpus, first_in: dict[str, str]) -> list[str]:
    """A note when ids of another split are in this one: what is learned from one would be tested with itself."""
    from harness.base.cells import shown

    shared = [one.id for one in corpus.utterances if first_in.setdefault(one.id, name) != name]
    if not shared or all(one.isdigit() for one in shared):  # BIO folders have no ids but lines
        return []
    return [
        f"{len(shared):,} ids of {shown(name, 40)} are in {shown(first_in[shared[0]], 40)} too: {shown(shared[0], 40)}"
    ]


def _write(target: str, text: str) -> None:
    from harness.cli import score_output as output

    if target == STDIN:
        output.print_pieces([text])
        return
    from harness.base.whole_file import WholeFile

    with WholeFile(target) as file:
        file.write(text.encode("utf-8"))
        file.keep()
