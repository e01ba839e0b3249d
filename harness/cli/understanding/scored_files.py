"""Files of gold and predicted utterances, read for each other and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.base.foreign import plain_text
from harness.cli.read_once import Readable
from harness.model.choices import CorpusFormat
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus, Detail
from harness.transcripts.files.lists import read_groups
from harness.understanding.counts import Rule
from harness.understanding.files.corpus_file import corpus_format_of, read_corpus
from harness.understanding.files.corpus_formats import SEQ_IN, SPLIT
from harness.understanding.scoring import Scoring, SystemCounts, counted, score


@dataclass(frozen=True, slots=True)
class Scored:
    """A system, scored under one rule for each detail."""

    scorings: tuple[Scoring, ...]
    counts: SystemCounts


def scored(gold: Corpus, predicted: Corpus, rule: Rule, details: Sequence[Detail], by: Sequence[str] | None) -> Scored:
    """InputError for a column that gold does not have."""
    columns = {name for one in gold.utterances for name, _ in one.groups}
    for column in by or ():
        if column not in columns:
            from harness.base.findings import nearest  # here, since it takes long to import

            what = f"--by: gold has no group {plain_text(column, 60)!r}"
            remedy = nearest(column, sorted(columns)) if columns else "Name a list of them: --groups FILE.csv"
            raise InputError(what, remedy=remedy)
    scorings = tuple(score(gold, predicted, replace(rule, detail=one), by) for one in details)
    return Scored(scorings, counted(scorings))


def read_gold(file: Readable, form: CorpusFormat | None, split: str | None) -> tuple[Corpus, str | None]:
    """Gold, and the name of the split that it is of, as its ids have it."""
    gold = read_corpus(file.path, form, split, name=file.name, option="--gold-format")
    if not any(one.intents is not None or one.tags is not None or one.slots is not None for one in gold.utterances):
        raise InputError("nothing of it is annotated", place=Place(file.name), remedy="Name annotated utterances")
    return gold, None if split is None else dict(gold.utterances[0].groups)[SPLIT]


def read_predicted(file: Readable, form: CorpusFormat | None, split: str | None, gold: Corpus) -> Corpus:
    """Predictions for gold; InputError where not one id is there in both.

    split: of gold. A BIO folder without splits is then of that split.
    """
    form = form or corpus_format_of(file.path, file.name, "--pred-format")
    if not file.path.is_dir():
        predicted = read_corpus(file.path, form, name=file.name)
    elif form is CorpusFormat.BIO and (file.path / SEQ_IN).exists():
        predicted = read_corpus(file.path, form, name=file.name)
        if split is not None:
            renamed = (replace(one, id=f"{split}/{one.id}") for one in predicted.utterances)
            predicted = Corpus(predicted.path, tuple(renamed))
    else:
        predicted = read_corpus(file.path, form, split, name=file.name)
    known = {one.id for one in gold.utterances}
    if predicted.utterances and not any(one.id in known for one in predicted.utterances):
        first, like = predicted.utterances[0].id, gold.utterances[0].id
        what = f"no id of these predictions is one of gold: the first is {plain_text(first, 60)!r}"
        remedy = f"Write ids as {plain_text(gold.path)} does, such as {plain_text(like, 60)!r}"
        raise InputError(what, place=Place(file.name), remedy=remedy)
    return predicted


def grouped(gold: Corpus, path: Path, name: str) -> Corpus:
    """Gold with more groups, by a list; InputError for a list of other utterances."""
    listed = read_groups(path, case_counts=True)
    rows = {id_: at for at, id_ in enumerate(listed.ids)}
    if not any(one.id in rows for one in gold.utterances):
        what = f"no id of this list is one of gold: the first is {plain_text(listed.ids[0], 60)!r}"
        like = plain_text(gold.utterances[0].id, 60)
        raise InputError(what, place=Place(name), remedy=f"Write ids as gold does, such as {like!r}")
    taken = {column for one in gold.utterances for column, _ in one.groups}
    if twice := next((one.name for one in listed.groupings if one.name in taken), None):
        what = f"gold has a group {plain_text(twice, 60)!r} already"
        raise InputError(what, place=Place(name), remedy="Rename the column")
    found = []
    for one in gold.utterances:
        at = rows.get(one.id)
        more = tuple((column.name, "" if at is None else column.labels[at]) for column in listed.groupings)
        found.append(replace(one, groups=(*one.groups, *more)))
    return Corpus(gold.path, tuple(found))
