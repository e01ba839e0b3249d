"""Options of verbs that train: settings, and the splits of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus, Utterance
from harness.understanding.files.corpus_writing import tags_of

HELD_OUT = ("dev", "valid", "validation")


@dataclass(frozen=True, slots=True)
class Splits:
    """Of a folder of data. held_out, test: None where the folder has none."""

    train: Corpus
    held_out: Corpus | None
    test: Corpus | None


def tell(line: str) -> None:
    """A line on how far it is."""
    click.echo(plain_text(line), err=True)


def settings_of(written: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of `name=value`; InputError for something else."""
    found = []
    for one in written:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise InputError(f"{one!r} is no setting", remedy="Write -s name=value")
        found.append((name.strip(), value.strip()))
    return found


def splits_of(folder: Path, form: str | None = None) -> Splits:
    """The splits of a folder, with tags made of slots that have places; InputError without a split `train`."""
    from harness.model.choices import CorpusFormat
    from harness.understanding.files.corpus_file import read_splits

    found = read_splits(folder, CorpusFormat(form) if form else None)
    train = found.get("train", found.get(""))
    if train is None:
        what = f"there is no split train; splits: {', '.join(found)}"
        raise InputError(what, place=Place(str(folder)), remedy="Call the folder or file to train on train")
    held_out = next((found[name] for name in HELD_OUT if name in found), None)
    return Splits(_tagged(train), held_out and _tagged(held_out), found.get("test"))


def _tagged(corpus: Corpus) -> Corpus:
    return Corpus(corpus.path, tuple(_with_tags(one) for one in corpus.utterances))


def _with_tags(one: Utterance) -> Utterance:
    if one.tags is not None or one.slots is None:
        return one
    return Utterance(one.id, one.words, one.intents, tags_of(one), one.slots, one.groups, one.place)
