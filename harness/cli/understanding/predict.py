"""`harness understanding predict`: texts → intents and slots."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click

from harness.base.ports import Understander
from harness.base.whole_file import WholeFile
from harness.cli.options import Command, Option
from harness.cli.read_once import STDIN, named, readable, refuse_overwriting
from harness.cli.understanding.training_options import tell
from harness.model.choices import CorpusFormat
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus, Utterance
from harness.understanding.files.corpus_writing import slots_of

AT_ONCE = 256
JSONL, BIO = "jsonl", "bio"


@click.command("predict", cls=Command)
@click.argument("file", default=STDIN, metavar="[FILE|FOLDER|-]")
@click.option("--model", required=True, metavar="MODEL", type=click.Path(path_type=Path), help="Folder of a model.")
@click.option(
    "--format",
    "form",
    type=click.Choice([one.value for one in CorpusFormat]),
    help="Where the suffix does not say it; standard input is txt, one text a line.",
)
@click.option("--split", metavar="NAME", help="Only this split of a folder.")
@click.option(
    "--output",
    "out",
    cls=Option,
    former=("--out",),
    default=STDIN,
    show_default=True,
    metavar="FILE",
    help="Where to; - is standard output.",
)
@click.option(
    "--as", "written", type=click.Choice([JSONL, BIO]), default=JSONL, show_default=True, help="bio is a new folder."
)
@click.option("--scores", is_flag=True, help="With the probability of every intent; JSONL only.")
def command(file: str, model: Path, form: str | None, split: str | None, out: str, written: str, scores: bool) -> None:
    """Turn texts into intents and slots with a model of `harness understanding train`.

    Texts: one a line (txt), or JSONL, a BIO folder, trn or CSV, whose annotations are not looked at. A line on standard
    input is answered before the next is waited for when --out is standard output.

    Exit status: 0 done · 2 wrong usage or input · 3 the result cannot be written.
    """
    from harness.understanding.files.corpus_file import corpus_format_of, read_corpus
    from harness.understanding.models.model_folder import load_model

    if written == BIO and (scores or out == STDIN):
        raise InputError("--as bio makes a folder, without scores", remedy="Give --out FOLDER, and leave --scores out")
    refuse_overwriting(out, [file])
    form = form or (CorpusFormat.TXT.value if file == STDIN else None)
    loaded = load_model(model).understander
    if file == STDIN and form == CorpusFormat.TXT and written == JSONL and out == STDIN and split is None:
        _answer_lines(loaded, scores)
        return
    with readable(file) as source:
        try:
            chosen = CorpusFormat(form) if form else corpus_format_of(source.path, source.name)
            corpus = read_corpus(source.path, chosen, split, name=source.name)
        except InputError as error:
            raise named(error, source) from error
    if written == BIO:
        from harness.understanding.files.corpus_writing import write_bio

        understood = tuple(one for one, _ in _understood(loaded, corpus.utterances))
        write_bio(Corpus(corpus.path, understood), Path(out))
    elif out == STDIN:
        for one, pairs in _understood(loaded, corpus.utterances):
            click.echo(_line(one, pairs if scores else None))
    else:
        with WholeFile(out) as target:
            for one, pairs in _understood(loaded, corpus.utterances):
                target.write((_line(one, pairs if scores else None) + "\n").encode())
            target.keep()
    tell(f"{len(corpus.utterances):,} utterances")


Scores = Sequence[tuple[str, float]]


def _answer_lines(model: Understander, scores: bool) -> None:
    """A line of standard input is a text, whose number is its id."""
    from harness.understanding.files.corpus_formats import split_words

    if sys.stdin is None:
        raise InputError("standard input is closed", remedy="Name a file")
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            place = Place("<stdin>", number)
            raise InputError("the line is not UTF-8", place=place, remedy="Send UTF-8") from error
        asked = Utterance(str(number), tuple(split_words(text.rstrip("\r\n"))))
        for one, pairs in _understood(model, (asked,)):
            click.echo(_line(one, pairs if scores else None))


def _understood(model: Understander, utterances: Sequence[Utterance]) -> Iterator[tuple[Utterance, Scores]]:
    """Utterances with what the model makes of them, in their order, some hundred at a time."""
    left = iter(utterances)
    while part := list(islice(left, AT_ONCE)):
        for one, said in zip(part, model.predict([one.words for one in part]), strict=True):
            understood = Utterance(one.id, one.words, said.intents, said.tags, None, one.groups, one.place)
            yield understood, said.scores


def _line(one: Utterance, scores: Scores | None) -> str:
    from harness.understanding.files.corpus_writing import jsonl_line

    with_slots = Utterance(one.id, one.words, one.intents, one.tags, slots_of(one), one.groups, one.place)
    line = jsonl_line(with_slots)
    if scores is None:
        return line
    return json.dumps({**json.loads(line), "scores": {label: round(score, 6) for label, score in scores}})
