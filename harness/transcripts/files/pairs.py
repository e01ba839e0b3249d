"""A file of transcripts of any format, and a reference with its hypothesis."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path

from harness.base.problems import Problems
from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError, Place
from harness.model.transcript import TimedWord, Transcripts
from harness.transcripts.files.csv_list import read_csv
from harness.transcripts.files.ctm import read_ctm
from harness.transcripts.files.encoding import encoding_name
from harness.transcripts.files.form import format_of
from harness.transcripts.files.sro import read_sro
from harness.transcripts.files.stm import Segments, read_stm
from harness.transcripts.files.trn import read_trn
from harness.transcripts.segmentation import cut, place_of

_BY_ID = (Format.TRN, Format.SRO, Format.CSV)


def read_transcripts(
    path: Path, format: Format | None = None, encoding: str | None = None, *, may_be_empty: bool = False
) -> Transcripts:
    """The transcripts of a trn, .sro or CSV file; InputProblems with all that is wrong with it.

    format: without it the file's suffix says so. encoding: without it UTF-8, with or without a byte order mark.
    may_be_empty: see read_trn.
    """
    match format or format_of(path):
        case Format.TRN:
            return read_trn(path, encoding, may_be_empty=may_be_empty)
        case Format.SRO:
            return read_sro(path, encoding, may_be_empty=may_be_empty)
        case Format.CSV:
            return read_csv(path, encoding, may_be_empty=may_be_empty)
        case other:
            what = f"a {other.value} file has times and no ids"
            raise InputError(what, place=Place(str(path)), remedy="Write trn, sro or csv; stm and ctm go together")


def read_pair(
    reference_path: Path,
    hypothesis_path: Path,
    reference_format: Format | None = None,
    hypothesis_format: Format | None = None,
    encoding: str | None = None,
) -> tuple[Transcripts, Transcripts]:
    """A reference and a hypothesis whose ids pair, whatever their formats; InputError when the two do not go together.

    trn, .sro and CSV pair by their ids, in any mixture; ids that differ in case only are one, and the hypothesis takes
    the reference's spelling. stm and ctm: the words are cut by the segments, `SPEAKER-000` is a speaker's first. Two
    ctm files: one for each file and channel, `FILE-CHANNEL-0000`, its words in the order of the file, as in sclite.
    A hypothesis without transcripts has none for any reference; a reference without any is an error.
    """
    formats = (reference_format or format_of(reference_path), hypothesis_format or format_of(hypothesis_path))
    match formats:
        case (Format.STM, Format.CTM):
            return _cut_by_segments(read_stm(reference_path, encoding), hypothesis_path, encoding)
        case (Format.CTM, Format.CTM):
            return _by_place(reference_path, hypothesis_path, encoding)
        case (first, second) if first in _BY_ID and second in _BY_ID:
            reference = read_transcripts(reference_path, first, encoding)
            heard = read_transcripts(hypothesis_path, second, encoding, may_be_empty=True)
            return reference, spelt_as(reference, heard)
    what = f"a hypothesis in {formats[1].value} cannot be scored against a reference in {formats[0].value}"
    remedy = "trn, sro and csv go with each other, ctm goes with stm or ctm"
    raise InputError(what, place=Place(str(hypothesis_path)), remedy=remedy)


def spelt_as(reference: Transcripts, hypothesis: Transcripts) -> Transcripts:
    """The hypothesis with ids spelt as the reference spells them, where that is in another case.

    An id that is the same in both is never given to another one.
    """
    if reference.ids == hypothesis.ids:
        return hypothesis
    known = set(reference.ids)
    strange = [id_ for id_ in hypothesis.ids if id_ not in known]
    if not strange:
        return hypothesis
    free = known.difference(hypothesis.ids)
    spelling = {_caseless(id_): id_ for id_ in reference.ids if id_ in free}
    # pop: of two hypotheses that differ in case only, the second stays a stranger.
    renamed = {id_: spelling.pop(caseless) for id_ in strange if (caseless := _caseless(id_)) in spelling}
    return replace(hypothesis, ids=tuple(renamed.get(id_, id_) for id_ in hypothesis.ids)) if renamed else hypothesis


def _caseless(id_: str) -> str:
    # By way of the upper case, which the conversions write: STRASSE is what they make of straße.
    return id_.upper().lower()


def _cut_by_segments(
    reference: Segments, hypothesis_path: Path, encoding: str | None
) -> tuple[Transcripts, Transcripts]:
    words = read_ctm(hypothesis_path, encoding, may_be_empty=True)
    _refuse_strangers(words, {place_of(segment) for segment in reference.segments}, str(hypothesis_path))
    ids: list[str] = []
    heard: list[str] = []
    heard_lines: list[int] = []
    counts: dict[str, int] = {}
    scored = [segment for segment in reference.segments if not segment.ignored]
    for segment, piece in zip(reference.segments, cut(words, reference.segments), strict=True):
        if segment.ignored:
            continue
        count = counts.get(segment.speaker, 0)
        counts[segment.speaker] = count + 1
        ids.append(f"{segment.speaker}-{count:03d}")
        heard.append(_joined(piece))
        heard_lines.append(piece[0].line if piece else 0)
    speakers = tuple(segment.speaker for segment in scored)
    texts = tuple(segment.text for segment in scored)
    lines = tuple(segment.line for segment in scored)
    codec = encoding_name(encoding)
    return (
        Transcripts(reference.file, tuple(ids), texts, lines, speakers, reference.encoding),
        Transcripts(str(hypothesis_path), tuple(ids), tuple(heard), tuple(heard_lines), speakers, codec),
    )


def _by_place(reference_path: Path, hypothesis_path: Path, encoding: str | None) -> tuple[Transcripts, Transcripts]:
    references = read_ctm(reference_path, encoding, in_order=False)
    hypotheses = read_ctm(hypothesis_path, encoding, may_be_empty=True, in_order=False)
    if not references:
        raise InputError("the reference has no words", place=Place(str(reference_path)), remedy="Check the path")
    names: dict[tuple[str, str], str] = {}
    for word in references:
        names.setdefault(place_of(word), f"{word.file}-{word.channel}-0000")
    _refuse_strangers(hypotheses, names.keys(), str(hypothesis_path))
    return (
        _one_for_each_place(references, names, str(reference_path), encoding),
        _one_for_each_place(hypotheses, names, str(hypothesis_path), encoding),
    )


def _one_for_each_place(
    words: Sequence[TimedWord], names: dict[tuple[str, str], str], file: str, encoding: str | None
) -> Transcripts:
    places: dict[str, list[TimedWord]] = {}
    for word in words:
        places.setdefault(names[place_of(word)], []).append(word)
    ids = tuple(places)
    lines = tuple(those[0].line for those in places.values())
    texts = tuple(_joined(those) for those in places.values())
    speakers = tuple(id_.removesuffix("-0000") for id_ in ids)
    return Transcripts(file, ids, texts, lines, speakers, encoding_name(encoding))


def _joined(words: Sequence[TimedWord]) -> str:
    return " ".join(word.text for word in words)


def _refuse_strangers(words: Sequence[TimedWord], known: Set[tuple[str, str]], file: str) -> None:
    """Words of a file or channel of which the reference has nothing are most likely a name that is spelt otherwise."""
    problems = Problems(file)
    strangers: set[tuple[str, str]] = set()
    for word in words:
        place = place_of(word)
        if place not in known and place not in strangers:
            strangers.add(place)
            what = f"the reference has nothing of file {word.file!r}, channel {word.channel!r}"
            problems.add(word.line, 1, what, "Spell both as the reference does, or take these words out")
    problems.refuse()
