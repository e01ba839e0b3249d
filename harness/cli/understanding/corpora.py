"""`harness understand distribution` and `generate`: count the labels of a corpus; generate one from grammars."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.grouping import group_by
from harness.base.text_table import first_lines, shown
from harness.base.whole_file import demand_folder
from harness.cli.options import (
    LIMIT_FAILED,
    SHIPPED_FILE,
    argument,
    flag,
    option,
    output_option,
    seed_option,
    target_option,
    verb,
)
from harness.cli.streams import (
    STREAM,
    drawn_progress,
    open_input,
    print_lines,
    refuse_overwriting,
    refuse_stdin_twice,
    width,
    write_output,
)
from harness.cli.understanding.options import (
    attributes_option,
    chunking_option,
    declared_labels,
    named_file,
    separator_option,
)
from harness.model.choices import SPLIT, CorpusFormat
from harness.model.errors import InputError, Place
from harness.model.understanding import Chunking, Corpus, Detail, joined

if TYPE_CHECKING:
    from harness.model.annotation import LabelSet
    from harness.understanding.distribution import LabelCounts


MAX_ROWS = 20
MAX_UTTERANCES = 200_000
MAX_LISTED = 20
"""Up to this many undeclared labels are named in an error."""
JSONL, BIO = "jsonl", "bio"


def _parse_shares(ctx: click.Context, param: click.Parameter, value: str) -> tuple[tuple[str, float], ...]:
    """A callback: the name and the share of each part of `train=80,dev=20`. BadParameter for another text."""
    shares: dict[str, float] = {}
    for text in value.split(","):
        name, _, share_text = (field.strip() for field in text.partition("="))
        try:
            share = float(share_text)
        except ValueError:
            share = math.nan
        if not name or not 0 < share < math.inf or name in shares:
            raise click.BadParameter(
                f"{text!r} does not have the form NAME=SHARE. Write train=80,dev=10,test=10", ctx, param
            )
        shares[name] = share
    return tuple(shares.items())


@verb("distribution")
def distribution(
    *,
    files: tuple[str, ...] = argument("[SPLIT=]FILE|FOLDER…", required=True),
    form: CorpusFormat | None = option(
        "Format of the files.", "--format", show_default="by suffix, or by the files in a folder"
    ),
    by: str = option(
        "Column that assigns the rows of a single file to splits.",
        "--split-column",
        former=("--by",),
        default=SPLIT,
        metavar="COLUMN",
    ),
    labels: str | None = option(
        "Declared intents. Each gets a row, even if unused; any other intent makes the exit status 1.",
        metavar="LABELS.yaml|A,B,…",
    ),
    chunking: Chunking = chunking_option(),
    separator: str = separator_option(),
    attributes: tuple[str, ...] = attributes_option(),
    max_rows: int = option(
        "Rows per table; 0 for all.", "--max-rows", former=("--most",), within=(0, None), default=MAX_ROWS
    ),
    shares: bool = flag("Print shares of each split's utterances instead of counts."),
    json_target: str | None = target_option("--json", "Print JSON instead of text."),
    csv_target: str | None = target_option("--csv", "Print a CSV table instead of text."),
) -> None:
    """Count intents, combinations of intents, and concepts by split, with totals.

    Reads files of intents (CSV: id,intent), BIO folders and JSONL. A folder contains its splits. A file is one split,
    named after the file or by a prefix: train=a.csv dev=b.csv.

    Exit status: 0 counted · 1 labels do not fit --labels · 2 wrong usage or input · 3 writing failed.
    """
    from harness.understanding.counts import Rule
    from harness.understanding.distribution import Distribution, count_labels
    from harness.understanding.files.corpus_file import NUMBERED_FORMATS, corpus_format_of
    from harness.understanding.reports.distribution import as_csv, as_json, lines

    declared = declared_labels(labels) if labels else None
    named_files = [named_file(file_text) for file_text in files]
    for target in filter(None, (json_target, csv_target)):
        refuse_overwriting(target, [path for _, path in named_files])
    refuse_stdin_twice([path for _, path in named_files])
    if json_target == csv_target == STREAM:
        raise InputError("--json - and --csv - both go to standard output", remedy="Write one of the two to a file")
    counts_by_split: dict[str, LabelCounts] = {}
    paths: list[str] = []
    first_split_by_id: dict[str, str] = {}
    notes: list[str] = []
    for split, path in named_files:
        for name, corpus in _read_splits(split, path, form, by).items():
            if name in counts_by_split:
                problem = f"two splits are named {name!r}"
                raise InputError(problem, place=Place(path), remedy="Rename one: other=FILE")
            counts_by_split[name] = count_labels(corpus.utterances, chunking)
            paths.append(corpus.path)
            if (form or corpus_format_of(Path(path))) not in NUMBERED_FORMATS:
                notes += _shared_id_notes(name, corpus, first_split_by_id)
    declared_ids = () if declared is None else declared.ids
    relax = Rule(detail=Detail.RELAX, separator=separator, attributes=attributes)
    label_distribution = Distribution(tuple(counts_by_split.items()), declared_ids, relax)
    if json_target is not None:
        write_output(json_target, [json.dumps(as_json(label_distribution, paths), indent=1) + "\n"])
    if csv_target is not None:
        write_output(csv_target, [as_csv(label_distribution)])
    if STREAM not in (json_target, csv_target):
        print_lines([*lines(label_distribution, width(), max_rows, shares=shares), *notes])
    else:
        for note in notes:
            click.echo(f"harness: {note}", err=True)
    if declared is not None:
        _demand_declared(declared, label_distribution.total)


def _read_splits(split: str, path: str, form: CorpusFormat | None, column: str) -> dict[str, Corpus]:
    """The splits of a file or folder, by name.

    split: the name of the only split; "" takes the splits of a folder, or those that a file names in a column. A file
    without that column is one split, named after the file.
    """
    from harness.understanding.files.corpus_file import read_corpus, read_splits

    with open_input(path) as file:
        if split:
            return {split: read_corpus(file.path, form, name=file.name, option="--format")}
        splits = read_splits(file.path, form, name=file.name, option="--format")
    if list(splits) != [""]:
        return splits
    corpus = splits[""]
    utterances_by_split = group_by(
        (dict(utterance.groups).get(column, ""), utterance) for utterance in corpus.utterances
    )
    if list(utterances_by_split) == [""]:
        return {Path(file.name).stem or file.name: corpus}
    return {
        name or "(none)": Corpus(corpus.path, tuple(utterances)) for name, utterances in utterances_by_split.items()
    }


def _shared_id_notes(split: str, corpus: Corpus, first_split_by_id: dict[str, str]) -> list[str]:
    """A note for each earlier split with ids of this one: a model may be tested on its own training data.

    first_split_by_id: gets the ids of this split that no earlier one has.
    """
    ids_by_split = group_by(
        (first_split_by_id.setdefault(utterance.id, split), utterance.id) for utterance in corpus.utterances
    )
    return [
        f"{len(ids):,} ids of {shown(split, 40)} are also in {shown(other_split, 40)}, such as {shown(ids[0], 40)}"
        for other_split, ids in ids_by_split.items()
        if other_split != split
    ]


def _demand_declared(declared: LabelSet, counts: LabelCounts) -> None:
    """Ends with status 1 if labels are not as declared, after printing why and how often."""
    problems = [
        f"{count:,} × {shown(joined(labels) or '(none)', 80)}: {shown(refusal, 80)}"
        for labels, count in sorted(counts.sets.items(), key=lambda entry: (-entry[1], entry[0]))
        if (refusal := declared.refusal(labels))
    ]
    for line in first_lines(problems, MAX_LISTED):
        click.echo(f"harness: {line}", err=True)
    if problems:
        sys.exit(LIMIT_FAILED)


@verb("generate")
def generate(
    *,
    grammars: tuple[Path, ...] = argument("GRAMMAR.yaml…", required=True, type=SHIPPED_FILE),
    seed: int = seed_option("Random seed; the same seed gives the same files.", 1, max_seed=2**63 - 1),
    train: int = option("Number of utterances for training.", within=(0, MAX_UTTERANCES), default=4000),
    dev: int = option("Number of held-out utterances.", within=(0, MAX_UTTERANCES), default=500),
    test: int = option("Number of utterances for scoring.", within=(0, MAX_UTTERANCES), default=1000),
    out: Path = output_option("New folder for the corpus.", metavar="FOLDER", folder=True, required=True),
    form: str = option(
        "Format of the result. bio: seq.in, seq.out and label in a folder per split. jsonl: a file per split, with "
        "slot values too.",
        "--output-format",
        former=("--format",),
        type=click.Choice([BIO, JSONL]),
        default=BIO,
    ),
) -> None:
    """Generate an annotated corpus from grammar files and a seed.

    The corpus is the same on every machine, and no sentence occurs twice. A folder means all .yaml files in it.
    The format of grammars: docs/how-to/train-understanders.md

    Exit status: 0 generated · 2 wrong usage or input · 3 the folder cannot be written.
    """
    from harness.understanding import grammar
    from harness.understanding.files.corpus_writing import write_bio, write_jsonl_folder
    from harness.understanding.files.grammar_file import load_grammars

    sizes = {"train": train, "dev": dev, "test": test}
    if not any(sizes.values()):
        raise InputError("all splits are empty", remedy="Set --train, --dev or --test to a number above 0")
    loaded_grammars = load_grammars(_grammar_files(grammars))
    _demand_new_folder(out)
    corpus = grammar.generate(loaded_grammars, seed, sizes)
    write_folder = write_bio if form == BIO else write_jsonl_folder
    write_folder(corpus, out)
    sizes_text = ", ".join(f"{size:,} {split}" for split, size in sizes.items() if size)
    click.echo(f"{out}: {sizes_text} (seed {seed}, sha256 {grammar.fingerprint(corpus)})", err=True)


@verb("split")
def split_corpus(
    *,
    corpus: str = argument("FILE|FOLDER"),
    parts: tuple[tuple[str, float], ...] = option(
        "Names of the parts, and their shares.",
        default="train=80,dev=10,test=10",
        metavar="NAME=SHARE,…",
        callback=_parse_shares,
    ),
    seed: int = seed_option("Random seed; the same seed gives the same split.", 1, max_seed=2**63 - 1),
    out: Path = output_option("New folder for the parts.", metavar="FOLDER", folder=True, required=True),
    form: CorpusFormat | None = option(
        "Format of the corpus.", "--format", show_default="by suffix, or by the files in the folder"
    ),
    output_format: str = option(
        "Format of the parts. bio: a folder per part, without ids, groups and slot values. jsonl: a file per part with "
        "all of these.",
        "--output-format",
        former=("--as",),
        type=click.Choice([BIO, JSONL]),
        default=BIO,
    ),
) -> None:
    """Split an annotated corpus into parts for training, development and test.

    Every part gets its share of each intent and concept, as far as possible. Utterances with the same words go to
    the same part, so that no model is tested on what it has learnt.

    Exit status: 0 split · 2 wrong usage or input · 3 the folder cannot be written.
    """
    from harness.understanding.files.corpus_file import read_corpus
    from harness.understanding.files.corpus_writing import write_bio, write_jsonl_folder
    from harness.understanding.splitting import stratified

    with open_input(corpus) as file:
        whole = read_corpus(file.path, form, name=file.name, option="--format")
    _demand_new_folder(out)
    corpora = stratified(whole, [share for _, share in parts], seed)
    utterances = []
    for (name, _), part in zip(parts, corpora, strict=True):
        for utterance in part.utterances:
            other_groups = (group for group in utterance.groups if group[0] != SPLIT)
            utterances.append(replace(utterance, groups=((SPLIT, name), *other_groups)))
    write_folder = write_bio if output_format == BIO else write_jsonl_folder
    write_folder(Corpus(whole.path, tuple(utterances)), out)
    sizes_text = ", ".join(f"{len(part.utterances):,} {name}" for (name, _), part in zip(parts, corpora, strict=True))
    click.echo(f"{shown(str(out))}: {sizes_text} (seed {seed})", err=True)


def _grammar_files(paths: tuple[Path, ...]) -> list[Path]:
    """The named files; those of a folder in the order of their names. Raises InputError for a folder without any."""
    files: list[Path] = []
    for path in paths:
        named_files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not named_files:
            raise InputError(
                "there is no .yaml file in this folder", place=Place(str(path)), remedy="Choose another folder"
            )
        files += named_files
    return files


def _demand_new_folder(folder: Path) -> None:
    """Raises InputError if the folder exists and is not empty, or if it cannot be made here."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InputError("the path already exists", place=Place(str(folder)), remedy="Choose a new or empty folder")
    demand_folder(folder)


@verb("speak")
def speak(
    *,
    corpus: str = argument("FILE|FOLDER"),
    voices: str = option("Voices, each as ENGINE:NAME.", required=True, metavar="VOICE,…"),
    test_voices: str | None = option("Voices for the test split only.", metavar="VOICE,…", show_default="the same"),
    seed: int = seed_option("Random seed; the same seed gives each utterance the same voice.", 1, max_seed=2**63 - 1),
    out: Path = output_option("New folder for sounds and lists.", metavar="FOLDER", folder=True, required=True),
    form: CorpusFormat | None = option(
        "Format of the corpus.", "--format", show_default="by suffix, or by the files in the folder"
    ),
) -> None:
    """Speak the texts of a corpus with synthetic voices, one voice for each utterance.

    The folder gets WAV files (16 kHz) and a CSV list for each split, with the columns id, audio and voice. These are
    the lists of `understand train --audio`, `predict --audio` and `cascade --groups`.

    Exit status: 0 spoken · 2 wrong usage or input · 3 a voice failed, or the folder cannot be written.
    """
    from harness.understanding import speaking
    from harness.understanding.files.corpus_file import read_splits

    voices_by_split = {"": speaking.voices_of(voices)}  # "" stands for all other splits
    if test_voices is not None:
        voices_by_split["test"] = speaking.voices_of(test_voices)
        if shared := set(voices_by_split[""]) & set(voices_by_split["test"]):
            problem = f"the voice {min(voice.name for voice in shared)!r} is in --voices and in --test-voices"
            raise InputError(problem, remedy="Remove the voice from one list: test voices must be unseen in training")
    _demand_new_folder(out)
    with open_input(corpus) as file:
        splits = read_splits(file.path, form, name=file.name, option="--format")
    utterances = [utterance for part in splits.values() for utterance in part.utterances]
    if silent := next((utterance for utterance in utterances if not utterance.words), None):
        raise InputError(f"{silent.id!r} has no text", place=silent.place, remedy="Use a corpus with texts")
    if test_voices is not None and not any((SPLIT, "test") in utterance.groups for utterance in utterances):
        remedy = "Remove --test-voices, or rename the split for testing to `test`"
        raise InputError("there is no split named test", place=Place(corpus), remedy=remedy)
    with drawn_progress():
        sizes = speaking.speak(utterances, voices_by_split, seed, out)
    click.echo(f"{out}: " + ", ".join(f"{size:,} {split}" for split, size in sizes.items()), err=True)
