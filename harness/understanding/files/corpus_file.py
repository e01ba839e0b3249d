"""A file or folder of utterances of any format, as a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.choices import CorpusFormat
from harness.model.errors import InputError, Place
from harness.model.transcript import Transcripts
from harness.model.understanding import Corpus, Utterance
from harness.transcripts.files.lists import read_csv
from harness.transcripts.files.transcripts import read_trn
from harness.understanding.files.corpus_formats import (
    LABEL,
    SEQ_IN,
    SEQ_OUT,
    SPLIT,
    csv_text,
    is_intents_file,
    numbered_lines,
    read_bio_folder,
    read_intents_csv,
    read_jsonl,
    split_words,
)

_ORDER = ("train", "dev", "valid", "validation", "test")
_SAME = ("dev", "valid", "validation")


def corpus_format_of(path: Path, name: str = "", option: str = "--format") -> CorpusFormat:
    """The format of a file by its suffix, or of a folder by what lies in it; InputError when neither says it.

    name: what a person calls it. option: what else could say the format.
    """
    place = Place(name or str(path))
    try:
        if path.is_dir():
            kinds = [one for one in (CorpusFormat.BIO, CorpusFormat.JSONL, CorpusFormat.CSV) if splits_of(path, one)]
            if (path / SEQ_IN).exists():
                return CorpusFormat.BIO
            if len(kinds) == 1:
                return kinds[0]
            what = f"the folder has splits as {' and as '.join(kinds)}" if kinds else f"the folder holds no {SEQ_IN}"
            remedy = f"Say which: {option} {'|'.join(kinds)}" if kinds else _FOLDER
            raise InputError(what, place=place, remedy=remedy)
        if not path.exists():
            raise InputError("there is no such file or folder", place=place, remedy="Check the path")
    except (OSError, ValueError) as error:
        what = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(what, place=place, remedy="Check the path and its rights") from error
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in (CorpusFormat.JSONL, CorpusFormat.CSV, CorpusFormat.TXT, CorpusFormat.TRN):
        return CorpusFormat(suffix)
    what = f"the suffix {shown('.' + suffix)} names no format" if suffix else "no suffix says which format this is"
    raise InputError(what, place=place, remedy=f"Say it: {option} {'|'.join(CorpusFormat)}")


_FOLDER = f"Put {SEQ_IN}, {SEQ_OUT} and {LABEL} there, or in folders train, dev and test in it, or a .jsonl for each"


def splits_of(folder: Path, form: CorpusFormat) -> dict[str, Path]:
    """Splits of a folder by name, train, dev and test first: folders with seq.in, or files of the format; OSError."""
    if form is CorpusFormat.BIO:
        found = {one.name: one for one in folder.iterdir() if (one / SEQ_IN).exists()}
    else:
        found = {one.stem: one for one in folder.iterdir() if one.suffix.lower() == f".{form}" and one.is_file()}
    return {name: found[name] for name in sorted(found, key=_rank)}


def _rank(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def names_of_split(name: str) -> Iterator[str]:
    """A split's name, and what else it is called."""
    yield name
    if name in _SAME:
        yield from (one for one in _SAME if one != name)


def read_corpus(
    path: Path,
    format: CorpusFormat | None = None,
    split: str | None = None,
    *,
    name: str = "",
    option: str = "--format",
) -> Corpus:
    """The utterances of a file, of a folder, or of one split of a folder; InputError, InputProblems.

    format: without it the suffix, or what lies in the folder, says so. split: train, dev (valid is the same), test, or
    what else a folder has; without it all of them, each utterance with its group `split`. name: what a person calls
    the file, where that is not its path. option: how a person can say the format.
    """
    called = name or str(path)
    form = format or corpus_format_of(path, called, option)
    splits = _splits(path, form, called)
    if not splits:
        if split is not None:
            what = f"there is no split {shown(split)}: {'the folder' if path.is_dir() else 'this'} has no splits"
            raise InputError(what, place=Place(called), remedy="Leave --split out, or name a folder of splits")
        return Corpus(called, tuple(_read(path, form, called)))
    if split is not None:
        chosen = next((one for one in names_of_split(split) if one in splits), None)
        if chosen is None:
            from harness.base.findings import nearest  # here, since it takes long to import

            what = f"there is no split {shown(split)}"
            raise InputError(what, place=Place(called), remedy=nearest(split, list(splits), listed="Splits"))
        splits = {chosen: splits[chosen]}
    found = [one for known, at in splits.items() for one in _read_split(at, form, called, known)]
    _refuse_twice(found)
    return Corpus(called, tuple(found))


def read_splits(path: Path, format: CorpusFormat | None = None, *, name: str = "") -> dict[str, Corpus]:
    """The splits of a folder, train, dev and test first; of anything else one without name ("")."""
    called = name or str(path)
    form = format or corpus_format_of(path, called)
    splits = _splits(path, form, called)
    if not splits:
        return {"": read_corpus(path, form, name=called)}
    return {known: Corpus(str(at), tuple(_read_split(at, form, called, known))) for known, at in splits.items()}


def _splits(path: Path, form: CorpusFormat, name: str) -> dict[str, Path]:
    """Of a folder; {} where it is a split itself, or no folder."""
    if not path.is_dir() or (form is CorpusFormat.BIO and (path / SEQ_IN).exists()):
        return {}
    splits = splits_of(path, form)
    if not splits:
        what = f"the folder holds no {SEQ_IN}" if form is CorpusFormat.BIO else f"the folder holds no .{form} file"
        raise InputError(what, place=Place(name), remedy="Put a folder or file for each split there: train, dev, test")
    return splits


def _read_split(path: Path, form: CorpusFormat, name: str, split: str) -> list[Utterance]:
    called = f"{name}/{path.name}"
    if form is CorpusFormat.BIO:
        return read_bio_folder(path, called, split)
    return [_of_split(one, split) for one in _read(path, form, called)]


def _of_split(one: Utterance, split: str) -> Utterance:
    groups = ((SPLIT, split), *(group for group in one.groups if group[0] != SPLIT))
    return Utterance(one.id, one.words, one.intents, one.tags, one.slots, groups, one.place)


def _read(path: Path, form: CorpusFormat, name: str) -> list[Utterance]:
    match form:
        case CorpusFormat.BIO:
            if not path.is_dir():
                remedy = f"Name the folder in which {SEQ_IN} lies"
                raise InputError("this is a file, where a folder is wanted", place=Place(name), remedy=remedy)
            return read_bio_folder(path, name)
        case CorpusFormat.JSONL:
            return read_jsonl(path, name)
        case CorpusFormat.CSV:
            if is_intents_file(csv_text(path, name)):
                return read_intents_csv(path, name)
            return _unannotated(read_csv(path), name)
        case CorpusFormat.TRN:
            return _unannotated(read_trn(path), name)
        case CorpusFormat.TXT:
            return _lines(path, name)


def _lines(path: Path, name: str) -> list[Utterance]:
    """One utterance a line, whose number is its id."""
    problems = Problems(name)
    found = [
        Utterance(str(number), tuple(split_words(line or "")), place=Place(name, number))
        for number, line in enumerate(numbered_lines(path, name, problems), 1)
    ]
    problems.refuse()
    if not found:
        raise InputError("the file is empty", place=Place(name), remedy="Check what was to write it")
    return found


def _unannotated(read: Transcripts, name: str) -> list[Utterance]:
    rows = zip(read.ids, read.texts, read.lines, strict=True)
    return [Utterance(id_, tuple(split_words(text)), place=Place(name, line)) for id_, text, line in rows]


def _refuse_twice(utterances: list[Utterance]) -> None:
    """InputError for an id that two splits have."""
    first: dict[str, Utterance] = {}
    for one in utterances:
        if (known := first.setdefault(one.id, one)) is not one:
            what = f"the id {shown(one.id)} is there already, in {known.place}"
            raise InputError(what, place=one.place, remedy="Rename one, or name one split: --split")
