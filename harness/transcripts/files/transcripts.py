"""Reads transcripts in any of their formats, alone or as pairs of reference and hypothesis."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.base.grouping import group_by
from harness.base.text_file import COMMENT, Problems, encoding_name, read_text, shown
from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError, Place, nearest
from harness.model.transcript import TimedWord, Transcripts
from harness.transcripts.files.lists import read_csv, read_json_lines, read_kaldi
from harness.transcripts.files.sro import read_sro
from harness.transcripts.files.timed import (
    Segments,
    cut_by_segments,
    place_of,
    read_ctm,
    read_seglst,
    read_stm,
    times_of,
)
from harness.transcripts.files.utterances import ID_EXAMPLE, UtteranceLines

EITHER = "--reference-format or --hypothesis-format"
KALDI_NAME = "text"
"""The name that recipes of Kaldi give to the file."""


def format_of(path: Path, option: str = EITHER) -> Format:
    """The format that a file's suffix names, in any case. Raises InputError if it names none.

    option: the command-line option with which the user can name the format.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if path.name == KALDI_NAME:
        return Format.KALDI
    if suffix == "json":
        return Format.SEGLST
    if suffix == "tsv":
        return Format.CSV
    if suffix in tuple(Format):
        return Format(suffix)
    problem = f"the suffix .{suffix} does not name a transcript format" if suffix else "the file name has no suffix"
    formats = f"Specify the format with {option}: {', '.join(Format)}"
    remedy = f"{formats}. In trn, each line ends with its id: what day is it (spk1_001)"
    raise InputError(problem, place=Place(str(path)), remedy=remedy)


_LINE_END, _SPACE, _OPEN, _CLOSE = b"\n ()"
_REMOVED = 0  # marks bytes to be removed; no text that was read contains a NUL
_SPACES = re.compile("[ \t]+")
_NO_ID = re.compile("[ \t)]")


def read_trn(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The transcripts of a trn file. Raises InputProblems with all its mistakes.

    may_be_empty: whether a file without transcripts is allowed, as a recogniser that crashed may leave one.
    """
    text = read_text(path, encoding, may_be_empty=may_be_empty)
    lines_read = split_tidy_text(text)
    if lines_read is None:
        lines_read = split_by_line(text, str(path), may_be_empty=may_be_empty)
    ids, texts, lines = lines_read
    return Transcripts(str(path), tuple(ids), tuple(texts), tuple(lines), ("",) * len(ids), encoding_name(encoding))


def split_tidy_text(text: str) -> tuple[list[str], list[str], Sequence[int]] | None:
    """Ids, texts and line numbers of the text of a trn file without mistakes; None if anything is wrong.

    Works on the bytes of all lines together, which takes a fraction of the time of a loop over the lines.
    """
    characters, numbers = _byte_values(text), None
    if not _is_tidy(text, characters):
        text, numbers = _tidied(text)
        characters = _byte_values(text)
    ends, brackets = np.flatnonzero(characters == _LINE_END), np.flatnonzero(characters == _OPEN)
    if not len(ends) or not len(brackets):
        return None
    # The last opening bracket in each line; in a line without one, that of an earlier line.
    opens = brackets[np.searchsorted(brackets, ends) - 1]
    closes = ends - 1
    if np.any(opens >= ends) or np.any(opens[1:] < ends[:-1]) or np.any(characters[closes] != _CLOSE):
        return None
    characters[opens] = characters[closes] = _REMOVED
    characters[np.where(characters[opens - 1] == _SPACE, opens - 1, opens)] = _LINE_END
    parts = characters.tobytes().replace(bytes([_REMOVED]), b"").decode().split("\n")
    ids, texts = parts[1::2], parts[0:-1:2]
    return (ids, texts, numbers or range(1, len(ids) + 1)) if _are_ids(ids) else None


def _byte_values(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(text, "utf-8"), np.uint8)


def _is_tidy(text: str, characters: NDArray[np.uint8]) -> bool:
    """Whether `_tidied` would change nothing in a text, except a space before the id of an empty transcript.
    characters: the bytes of the text."""
    blank = characters <= _SPACE
    pairs = np.flatnonzero(blank[1:] & blank[:-1])
    empty = (
        (characters[pairs] == _LINE_END)
        & (characters[pairs + 1] == _SPACE)
        & (characters.take(pairs + 2, mode="clip") == _OPEN)
    )
    if blank[0] or not empty.all() or "\t" in text or (len(pairs) and _opens_again(characters, pairs + 2)):
        return False
    return not (";" in text and (text.startswith(COMMENT) or f"\n{COMMENT}" in text))


def _opens_again(characters: NDArray[np.uint8], brackets: NDArray[np.intp]) -> bool:
    """Whether another bracket opens in the line of one of these brackets. It then belongs to the text, not to an id."""
    positions = np.flatnonzero((characters == _OPEN) | (characters == _LINE_END))
    after = np.searchsorted(positions, brackets) + 1
    return bool(np.any(characters[positions.take(after, mode="clip")] == _OPEN))


def _tidied(text: str) -> tuple[str, Sequence[int]]:
    """The text with single spaces within lines and none around them, without tabs, blank lines and comments. Then the
    numbers of the lines that are left."""
    text = text.replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    lines = text.replace("\n ", "\n").replace(" \n", "\n").removeprefix(" ").split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line and not line.startswith(COMMENT)]
    return "".join([f"{lines[number - 1]}\n" for number in numbers]), numbers


def _are_ids(ids: Sequence[str]) -> bool:
    """Whether all texts are ids, and none occurs twice. Ids that differ only in case are the same."""
    joined = "\n".join(ids)
    lower = joined.lower()
    different = set(ids if lower == joined else lower.split("\n"))
    return len(different) == len(ids) and "" not in different and " " not in joined and ")" not in joined


def split_by_line(text: str, file: str, *, may_be_empty: bool = False) -> tuple[list[str], list[str], list[int]]:
    """Does the work of `split_tidy_text`, but line by line. Raises InputProblems with all mistakes."""
    utterances = UtteranceLines(file)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t") or line.lstrip(" \t").startswith(COMMENT):
            continue
        before, bracket, rest = line.rstrip(" \t").rpartition("(")
        id_ = rest[:-1]
        plain = bracket and len(id_) > 1 and rest.endswith(")") and not _NO_ID.search(id_)
        if not plain and (problem := _id_problem(line, bracket, rest)):
            utterances.problems.add(number, len(before) + 1 if bracket else len(line) + 1, problem, ID_EXAMPLE)
        else:
            utterances.add(number, id_, _SPACES.sub(" ", before).strip(" "), id_.lower(), len(before) + 2)
    return utterances.columns(ID_EXAMPLE, may_be_empty=may_be_empty)


def _id_problem(line: str, bracket: str, rest: str) -> str:
    """What is wrong with the id of a line; "" if nothing is. bracket, rest: the opening bracket and what follows it."""
    id_ = rest[:-1]
    if not bracket:
        return "the brackets around the id are not balanced" if rest.endswith(")") else "the line has no id"
    if not rest.endswith(")"):
        if ")" not in rest:
            return "the bracket of the id is not closed"
        return f"the line does not end with its id, but with {shown(rest.rpartition(')')[2].strip() or line)}"
    if not id_.strip():
        return "the id is empty"
    if _SPACES.search(id_):
        return f"the id {shown(id_)} contains a space"
    if ")" in id_:
        return "the brackets around the id are not balanced"
    return ""


_MAX_MATCH_S = 0.5  # a regular expression that takes longer on one id would hardly ever end


SpeakersOf = Callable[[Sequence[str]], list[str]]


def speaker_scheme(scheme: str) -> SpeakersOf:
    """A function that returns the speaker of each utterance id. scheme: a name, or a regular expression `/(…)_/`.

    spu_id, swb and rm: the speaker is the part before the first hyphen, or without one, before the first underscore.
    wsj: the first three characters. sp: every utterance is its own speaker. none: there are no speakers.
    A regular expression is searched in the id, and its first group is the speaker. Other schemes give speakers in lower
    case, since ids that differ only in case are one. "" if a scheme finds no speaker.
    Raises InputError for any other text, and if a regular expression takes too long on an id.
    """
    if len(scheme) > 2 and scheme.startswith("/") and scheme.endswith("/"):
        speaker_of = _speaker_by_expression(scheme)
    elif scheme in _SCHEMES:
        speaker_of = _SCHEMES[scheme]
    else:
        remedy = nearest(scheme, [*_SCHEMES, "/(…)_/"], listed="The schemes are")
        raise InputError(f"there is no speaker scheme {scheme!r}", remedy=remedy)
    return _before_marks if speaker_of is _before_mark else lambda ids: list(map(speaker_of, ids))


def _before_marks(ids: Sequence[str]) -> list[str]:
    """As `_before_mark`, for many ids, of which most have a speaker in common with others."""
    if any("-" in id_ for id_ in ids):
        return list(map(_before_mark, ids))
    lower = cache(str.lower)
    return [lower(before) if mark else "" for before, mark, _ in (id_.partition("_") for id_ in ids)]


def _before_mark(id_: str) -> str:
    """The part of an id before its first hyphen, or without one, before its first underscore, in lower case."""
    for mark in "-_":
        before, separator, _ = id_.partition(mark)
        if separator:
            return before.lower()
    return ""


_SCHEMES: dict[str, Callable[[str], str]] = {
    "spu_id": _before_mark,
    "swb": _before_mark,
    "rm": _before_mark,
    "wsj": lambda id_: id_[:3].lower(),
    "sp": str.lower,
    "none": lambda id_: "",
}


def _speaker_by_expression(pattern: str) -> Callable[[str], str]:
    """A function that returns the first group of a `/regular expression/` in an id; "" if it does not match."""
    import regex  # here, since it takes longer to import than most files take to score

    remedy = "Put the speaker in parentheses: /([a-z]+)[0-9]/"
    try:
        expression = regex.compile(pattern[1:-1])
    except (regex.error, RecursionError, OverflowError) as error:
        raise InputError(f"{pattern} is not a regular expression: {error}", remedy=remedy) from error
    if not expression.groups:
        raise InputError(f"{pattern} has no capturing group", remedy=remedy)

    def speaker_of(id_: str) -> str:
        try:
            match = expression.search(id_, timeout=_MAX_MATCH_S)
        except TimeoutError as error:
            raise InputError(
                f"{pattern} takes too long on {id_!r}", remedy="Use a simpler regular expression"
            ) from error
        return (match[1] or "") if match else ""

    return speaker_of


_BY_ID = (Format.TRN, Format.SRO, Format.CSV, Format.KALDI, Format.JSONL)
_WITH_IDS = "trn, sro, csv, kaldi or jsonl"


def read_transcripts(
    path: Path,
    format: Format | None = None,
    encoding: str | None = None,
    *,
    may_be_empty: bool = False,
    reference: Path | None = None,
) -> Transcripts:
    """The transcripts of a file whose utterances have ids. Raises InputProblems with all its mistakes.

    - format: None for that of the file's suffix.
    - encoding: None for UTF-8, with or without a byte order mark.
    - may_be_empty: see read_trn.
    - reference: the file of the references if hypotheses are read (JSON lines may contain both); None if references are
      read.
    """
    match format or format_of(path):
        case Format.TRN:
            return read_trn(path, encoding, may_be_empty=may_be_empty)
        case Format.SRO:
            return read_sro(path, encoding, may_be_empty=may_be_empty)
        case Format.CSV:
            return read_csv(path, encoding, may_be_empty=may_be_empty)
        case Format.KALDI:
            return read_kaldi(path, encoding, may_be_empty=may_be_empty)
        case Format.JSONL:
            return read_json_lines(path, encoding, may_be_empty=may_be_empty, reference=reference)
        case other:
            problem = f"a {other.value} file has times instead of ids"
            raise InputError(problem, place=Place(str(path)), remedy=f"Use a {_WITH_IDS} file")


def read_pair(
    reference_path: Path,
    hypothesis_path: Path,
    reference_format: Format | None = None,
    hypothesis_format: Format | None = None,
    encoding: str | None = None,
) -> tuple[Transcripts, Transcripts]:
    """A reference and a hypothesis with ids by which they can be paired.

    Raises InputError for formats that cannot be paired.

    Two files with ids are paired by them, in any mixture of formats. Ids that differ only in case are one, spelt as in
    the reference.
    stm or segLST with ctm: the words are cut by the segments, and `SPEAKER-000` is the id of a speaker's first segment.
    Two ctm files: one utterance for each file and channel, `FILE-CHANNEL-0000`, in the order of the file, as in sclite.
    A hypothesis may be empty; a reference without transcripts is an error.
    """
    formats = (reference_format or format_of(reference_path), hypothesis_format or format_of(hypothesis_path))
    match formats:
        case (Format.STM, Format.CTM):
            return _pair_by_segments(read_stm(reference_path, encoding), hypothesis_path, encoding)
        case (Format.SEGLST, Format.CTM):
            return _pair_by_segments(in_order(read_seglst(reference_path, encoding)), hypothesis_path, encoding)
        case (Format.CTM, Format.CTM):
            return _pair_by_place(reference_path, hypothesis_path, encoding)
        case (first, second) if first in _BY_ID and second in _BY_ID:
            reference = read_transcripts(reference_path, first, encoding)
            hypothesis = read_transcripts(
                hypothesis_path, second, encoding, may_be_empty=True, reference=reference_path
            )
            return reference, spelt_as(reference, hypothesis)
    problem = f"a hypothesis in {formats[1].value} cannot be scored against a reference in {formats[0].value}"
    remedy = (
        f"Supported pairs: two files in {_WITH_IDS}; a ctm hypothesis and a reference in stm, seglst or ctm. "
        "With --speakers: two files in stm or seglst"
    )
    raise InputError(problem, place=Place(str(hypothesis_path)), remedy=remedy)


def in_order(segments: Segments) -> Segments:
    """The segments sorted by their begins."""
    return replace(segments, segments=tuple(sorted(segments.segments, key=lambda segment: segment.start_s)))


def read_segments(path: Path, form: Format, encoding: str | None = None, *, may_be_empty: bool = False) -> Segments:
    """The segments of an stm or segLST file, sorted by their begins. Raises InputError with all its mistakes."""
    match form:
        case Format.STM:
            return in_order(read_stm(path, encoding, in_order=False, may_be_empty=may_be_empty))
        case Format.SEGLST:
            return in_order(read_seglst(path, encoding, may_be_empty=may_be_empty))
        case other:
            problem = f"a {other} file does not say who speaks when"
            raise InputError(
                problem, place=Place(str(path)), remedy="With --speakers, use stm or seglst for both files"
            )


def spelt_as(reference: Transcripts, hypothesis: Transcripts) -> Transcripts:
    """The hypothesis, with ids that differ from the reference's only in case spelt as in the reference.

    An id that occurs in both as it is never replaces another one.
    """
    if reference.ids == hypothesis.ids:
        return hypothesis
    reference_ids = set(reference.ids)
    unmatched = [id_ for id_ in hypothesis.ids if id_ not in reference_ids]
    if not unmatched:
        return hypothesis
    free_ids = reference_ids.difference(hypothesis.ids)
    spelling = {_caseless(id_): id_ for id_ in reference.ids if id_ in free_ids}
    # Removed, so that of two ids of the hypothesis that differ only in case, the second finds no reference.
    renamed = {id_: spelling.pop(_caseless(id_), id_) for id_ in unmatched}
    return replace(hypothesis, ids=tuple(renamed.get(id_, id_) for id_ in hypothesis.ids))


def _caseless(id_: str) -> str:
    # First to upper case, as the conversions write ids: straße becomes STRASSE.
    return id_.upper().lower()


def _pair_by_segments(
    reference: Segments, hypothesis_path: Path, encoding: str | None
) -> tuple[Transcripts, Transcripts]:
    """As `read_pair`, for segments of a reference and words of a hypothesis."""
    words, not_scored = _scored_words(read_ctm(hypothesis_path, encoding, may_be_empty=True))
    _refuse_unknown_places(words, {place_of(segment) for segment in reference.segments}, str(hypothesis_path))
    ids: list[str] = []
    heard: list[str] = []
    confidences: list[tuple[float | None, ...]] = []
    heard_lines: list[int] = []
    counts: dict[str, int] = {}
    scored = [segment for segment in reference.segments if not segment.ignored]
    for segment, piece in zip(reference.segments, cut_by_segments(words, reference.segments), strict=True):
        if segment.ignored:
            continue
        count = counts.get(segment.speaker, 0)
        counts[segment.speaker] = count + 1
        ids.append(f"{segment.speaker}-{count:03d}")
        heard.append(_join_words(piece))
        confidences.append(tuple(word.confidence for word in piece))
        heard_lines.append(piece[0].line if piece else 0)
    speakers = tuple(segment.speaker for segment in scored)
    texts = tuple(segment.text for segment in scored)
    lines = tuple(segment.line for segment in scored)
    codec = encoding_name(encoding)
    return (
        Transcripts(reference.file, tuple(ids), texts, lines, speakers, reference.encoding),
        Transcripts(
            file=str(hypothesis_path),
            ids=tuple(ids),
            texts=tuple(heard),
            lines=tuple(heard_lines),
            speakers=speakers,
            encoding=codec,
            confidences=tuple(confidences),
            not_scored=not_scored,
        ),
    )


def _pair_by_place(
    reference_path: Path, hypothesis_path: Path, encoding: str | None
) -> tuple[Transcripts, Transcripts]:
    """As `read_pair`, for two files of words."""
    references, left_out = _scored_words(read_ctm(reference_path, encoding, in_order=False))
    hypotheses, not_scored = _scored_words(read_ctm(hypothesis_path, encoding, may_be_empty=True, in_order=False))
    if not references:
        raise InputError(
            "the reference has no words", place=Place(str(reference_path)), remedy="Check that this is the right file"
        )
    names: dict[tuple[str, str], str] = {}
    for word in references:
        names.setdefault(place_of(word), f"{word.file}-{word.channel}-0000")
    _refuse_unknown_places(hypotheses, names.keys(), str(hypothesis_path))
    return (
        replace(_utterance_of_each_place(references, names, str(reference_path), encoding), not_scored=left_out),
        replace(_utterance_of_each_place(hypotheses, names, str(hypothesis_path), encoding), not_scored=not_scored),
    )


def _scored_words(words: Sequence[TimedWord]) -> tuple[tuple[TimedWord, ...], int]:
    """The words that are scored, and the number of the others."""
    scored = tuple(word for word in words if word.is_scored)
    return scored, len(words) - len(scored)


def _utterance_of_each_place(
    words: Sequence[TimedWord], names: dict[tuple[str, str], str], file: str, encoding: str | None
) -> Transcripts:
    """The transcripts of words, with one utterance for each file and channel. names: ids of the utterances."""
    places = group_by((names[place_of(word)], word) for word in words)
    ids = tuple(places)
    lines = tuple(place_words[0].line for place_words in places.values())
    texts = tuple(_join_words(place_words) for place_words in places.values())
    speakers = tuple(id_.removesuffix("-0000") for id_ in ids)
    confidences = tuple(tuple(word.confidence for word in place_words) for place_words in places.values())
    times = tuple(
        tuple(time for word in place_words for time in word.times or (times_of(word),))
        for place_words in places.values()
    )
    return Transcripts(
        file=file,
        ids=ids,
        texts=texts,
        lines=lines,
        speakers=speakers,
        encoding=encoding_name(encoding),
        confidences=confidences,
        times=times,
    )


def _join_words(words: Sequence[TimedWord]) -> str:
    return " ".join(word.text for word in words)


def _refuse_unknown_places(words: Sequence[TimedWord], places: Set[tuple[str, str]], file: str) -> None:
    """Raises InputError for words of a file or channel that the reference does not have: it is most likely spelt
    differently there. places: file and channel of all references."""
    problems = Problems(file)
    unknown_places: set[tuple[str, str]] = set()
    for word in words:
        place = place_of(word)
        if place not in places and place not in unknown_places:
            unknown_places.add(place)
            problem = f"the reference contains nothing for file {word.file!r}, channel {word.channel!r}"
            problems.add(word.line, 1, problem, "Spell file and channel as in the reference, or remove these words")
    problems.refuse()
