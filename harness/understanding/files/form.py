"""The formats that annotated utterances come in, which one a file or folder is in, and the splits of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.base.problems import shown
from harness.model.choices import CorpusFormat
from harness.model.errors import InputError, Place

SEQ_IN = "seq.in"
SEQ_OUT = "seq.out"
LABEL = "label"
SPLIT = "split"
"""The group that says which split of a folder an utterance is of."""

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
