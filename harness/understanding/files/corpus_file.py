"""Reads a file or folder of utterances, in any format, as a corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.base.text_file import Problems, shown
from harness.model.choices import DEV_SPLITS, SPLIT, CorpusFormat
from harness.model.errors import InputError, Place, nearest
from harness.model.transcript import Transcripts
from harness.model.understanding import Corpus, Utterance
from harness.understanding.files.corpus_formats import (
    LABEL,
    SEQ_IN,
    SEQ_OUT,
    csv_text,
    is_intents_file,
    numbered_lines,
    read_bio_folder,
    read_intents_csv,
    read_jsonl,
    split_words,
)

NUMBERED_FORMATS = frozenset({CorpusFormat.BIO, CorpusFormat.TXT})
"""Formats without ids: the id of an utterance is the number of its line."""
_SPLIT_ORDER = ("train", "dev", "valid", "validation", "test")


def corpus_format_of(path: Path, name: str = "", option: str | None = None) -> CorpusFormat:
    """The format of a file by its suffix, or of a folder by its files. Raises InputError if neither determines it.

    - name: name of the file in messages; "" for its path.
    - option: the option that sets the format, for remedies; None if the command has none.
    """
    place = Place(name or str(path))
    try:
        if path.is_dir():
            candidates = (CorpusFormat.BIO, CorpusFormat.JSONL, CorpusFormat.CSV)
            formats = [candidate for candidate in candidates if splits_of(path, candidate)]
            if (path / SEQ_IN).exists():
                return CorpusFormat.BIO
            if len(formats) == 1:
                return formats[0]
            if not formats:
                raise InputError(f"the folder has no {SEQ_IN}", place=place, remedy=_FOLDER_LAYOUT)
            problem = f"the folder has splits in several formats: {', '.join(formats)}"
            remedy = f"Add {option} {'|'.join(formats)}" if option else "Choose a folder with splits of a single format"
            raise InputError(problem, place=place, remedy=remedy)
        if not path.exists():
            raise InputError("the file or folder does not exist", place=place, remedy="Check the path")
    except (OSError, ValueError) as error:
        problem = f"the file or folder cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, place=place, remedy="Check the path and its permissions") from error
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in (CorpusFormat.JSONL, CorpusFormat.CSV, CorpusFormat.TXT, CorpusFormat.TRN):
        return CorpusFormat(suffix)
    problem = (
        f"the suffix {shown('.' + suffix)} is not a known format"
        if suffix
        else "the name has no suffix, so the format is unknown"
    )
    remedy = (
        f"Add {option} {'|'.join(CorpusFormat)}" if option else "Choose a .jsonl, .csv, .txt or .trn file, or a folder"
    )
    raise InputError(problem, place=place, remedy=remedy)


_FOLDER_LAYOUT = (
    f"Add {SEQ_IN}, {SEQ_OUT} and {LABEL}, or folders train, dev and test with these files, "
    "or a .jsonl file for each split"
)


def splits_of(folder: Path, file_format: CorpusFormat) -> dict[str, Path]:
    """The splits of a folder by name, with train, dev and test first: folders with seq.in, or files of the format.

    Raises OSError if the folder cannot be read.
    """
    if file_format is CorpusFormat.BIO:
        splits = {path.name: path for path in folder.iterdir() if (path / SEQ_IN).exists()}
    else:
        splits = {
            path.stem: path for path in folder.iterdir() if path.suffix.lower() == f".{file_format}" and path.is_file()
        }
    return {name: splits[name] for name in sorted(splits, key=_rank)}


def _rank(name: str) -> tuple[int, str]:
    return (_SPLIT_ORDER.index(name) if name in _SPLIT_ORDER else len(_SPLIT_ORDER), name)


def read_corpus(
    path: Path,
    format: CorpusFormat | None = None,
    split: str | None = None,
    *,
    name: str = "",
    option: str | None = None,
) -> Corpus:
    """The utterances of a file, of a folder, or of one split of a folder. Raises InputError, InputProblems.

    - format: None if the suffix or the files of the folder determine it.
    - split: train, dev (or valid), test, or any other. None for all; each utterance then has a group `split`.
    - name: name in messages, if it differs from the path.
    - option: as for `corpus_format_of`.
    """
    source = name or str(path)
    file_format = format or corpus_format_of(path, source, option)
    splits = _split_paths(path, file_format, source)
    if not splits:
        if split is not None:
            problem = f"there is no split {shown(split)}: {'the folder' if path.is_dir() else 'a file'} has no splits"
            raise InputError(problem, place=Place(source), remedy="Remove --split, or choose a folder with splits")
        return Corpus(source, tuple(_read_file(path, file_format, source)))
    if split is not None:
        names = (split, *DEV_SPLITS) if split in DEV_SPLITS else (split,)
        chosen = next((candidate for candidate in names if candidate in splits), None)
        if chosen is None:
            problem = f"there is no split {shown(split)}"
            raise InputError(problem, place=Place(source), remedy=nearest(split, list(splits), listed="Splits"))
        splits = {chosen: splits[chosen]}
    utterances = [
        utterance
        for split_name, split_path in splits.items()
        for utterance in _read_split(split_path, file_format, source, split_name)
    ]
    _refuse_duplicate_ids(utterances)
    return Corpus(source, tuple(utterances))


def read_splits(
    path: Path, format: CorpusFormat | None = None, *, name: str = "", option: str | None = None
) -> dict[str, Corpus]:
    """The splits of a folder, with train, dev and test first. Anything else is one split with the name "".

    Other arguments as for `read_corpus`.
    """
    source = name or str(path)
    file_format = format or corpus_format_of(path, source, option)
    splits = _split_paths(path, file_format, source)
    if not splits:
        return {"": read_corpus(path, file_format, name=source)}
    return {
        split: Corpus(str(split_path), tuple(_read_split(split_path, file_format, source, split)))
        for split, split_path in splits.items()
    }


def _split_paths(path: Path, file_format: CorpusFormat, name: str) -> dict[str, Path]:
    """The paths of a folder's splits by name. {} if it is a split itself, or not a folder."""
    if not path.is_dir() or (file_format is CorpusFormat.BIO and (path / SEQ_IN).exists()):
        return {}
    splits = splits_of(path, file_format)
    if not splits:
        problem = (
            f"the folder has no {SEQ_IN}"
            if file_format is CorpusFormat.BIO
            else f"the folder has no .{file_format} file"
        )
        raise InputError(
            problem, place=Place(name), remedy="Add a folder or file for each split, such as train, dev and test"
        )
    return splits


def _read_split(path: Path, file_format: CorpusFormat, name: str, split: str) -> list[Utterance]:
    split_source = f"{name}/{path.name}"
    if file_format is CorpusFormat.BIO:
        return read_bio_folder(path, split_source, split)
    return [
        replace(utterance, groups=((SPLIT, split), *(group for group in utterance.groups if group[0] != SPLIT)))
        for utterance in _read_file(path, file_format, split_source)
    ]


def _read_file(path: Path, file_format: CorpusFormat, name: str) -> list[Utterance]:
    # Readers of transcripts are imported where they are used, since few corpora are transcripts.
    match file_format:
        case CorpusFormat.BIO:
            if not path.is_dir():
                remedy = f"Choose the folder that contains {SEQ_IN}"
                raise InputError("this is a file, not a folder", place=Place(name), remedy=remedy)
            return read_bio_folder(path, name)
        case CorpusFormat.JSONL:
            return read_jsonl(path, name)
        case CorpusFormat.CSV:
            text = csv_text(path, name)
            if is_intents_file(text, name):
                return read_intents_csv(text, name)
            from harness.transcripts.files.lists import read_csv

            return _as_utterances(read_csv(path), name)
        case CorpusFormat.TRN:
            from harness.transcripts.files.transcripts import read_trn

            return _as_utterances(read_trn(path), name)
        case CorpusFormat.TXT:
            return _read_lines(path, name)


def _read_lines(path: Path, name: str) -> list[Utterance]:
    """One utterance per line. Its id is the line number."""
    problems = Problems(name)
    utterances = [
        Utterance(str(number), tuple(split_words(line or "")), place=Place(name, number))
        for number, line in enumerate(numbered_lines(path, name, problems), 1)
    ]
    problems.refuse()
    if not utterances:
        raise InputError("the file is empty", place=Place(name), remedy="Check the program that writes the file")
    return utterances


def _as_utterances(transcripts: Transcripts, name: str) -> list[Utterance]:
    rows = zip(transcripts.ids, transcripts.texts, transcripts.lines, strict=True)
    return [Utterance(id_, tuple(split_words(text)), place=Place(name, line)) for id_, text, line in rows]


def _refuse_duplicate_ids(utterances: list[Utterance]) -> None:
    """Raises InputError for an id that occurs in two splits."""
    first_by_id: dict[str, Utterance] = {}
    for utterance in utterances:
        if (original := first_by_id.setdefault(utterance.id, utterance)) is not utterance:
            problem = f"the id {shown(utterance.id)} is already in {original.place}"
            raise InputError(
                problem, place=utterance.place, remedy="Change one of the ids, or choose a split with --split"
            )
