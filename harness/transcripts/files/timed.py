"""Files of words and segments with times: ctm, stm and segLST."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.base.grouping import group_by
from harness.base.text_file import Problems, encoding_name, is_comment, read_text, shown
from harness.model.frozen import frozen
from harness.model.numbers import WRITTEN_NUMBER, counted, exact
from harness.model.transcript import Segment, TimedWord

_FIELD = re.compile(r"\S+")
_BLANKS = re.compile("[ \t\r\n]*")
_SECONDS = "Use seconds, such as 12.34"


def filled_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor comments, with their numbers."""
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.isspace() and not is_comment(line):
            yield number, line


def column_of(line: str, field: int) -> int:
    """The column, from 1, at which a field of a line begins. If the line has fewer fields, the column after its end."""
    starts = [match.start() + 1 for match in _FIELD.finditer(line)]
    return starts[field] if field < len(starts) else len(line.rstrip()) + 1


def seconds(text: str) -> float | None:
    """A time or a duration from its text; None for anything but a finite decimal number."""
    if WRITTEN_NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if abs(value) < float("inf") else None


def checked_time(problems: Problems, number: int, line: str, field: int, label: str, text: str) -> float | None:
    """As `seconds`. Adds a problem if the field is not a time.

    - field: index of the field in the line.
    - label: name of the field in the problem.
    """
    value = seconds(text)
    if value is None:
        problems.add(number, column_of(line, field), f"{label} {shown(text)} is not a number of seconds", _SECONDS)
    return value


Latest = dict[tuple[str, str], "TimedWord | Segment"]
"""For each file and channel, the word or segment that was read last."""


def refuse_disorder(
    problems: Problems, latest: Latest, current: TimedWord | Segment, column: int, noun: str, when: str
) -> None:
    """Adds a problem for a word or a segment that begins earlier than the previous one of its file and channel."""
    previous = latest.get(place_of(current))
    if previous is not None and current.start_s < previous.start_s:
        remedy = f"Sort the {noun}s of each file and channel by their {when}"
        problems.add(current.line, column, f"the {noun} begins before the one on line {previous.line}", remedy)
    latest[place_of(current)] = current


_CTM_EXAMPLE = (
    "Use the fields file, channel, start, duration, word and optionally confidence: f1 A 0.10 0.25 hello 0.98"
)
_LEXICAL = "lex"
_TYPES = (_LEXICAL, "frag", "fp", "un-lex", "for-lex", "non-lex", "misc", "noscore")
"""Types of words in the 7th column of a ctm file of NIST's RT evaluations. Only lexical words are scored
(hubscr.pl)."""
_BEGIN, _OR, _END = "<ALT_BEGIN>", "<ALT>", "<ALT_END>"
_MARKS = (_BEGIN, _OR, _END)
_NO_TIME = "*"
_NOTHING = "@"
_TIMES_OF_NOTHING = (0.0, 0.0)
"""Begin and end of an alternative without a word. sclite reads them from the asterisks that stand for its times."""
_NO_CONFIDENCE = "NA"


def read_ctm(
    path: Path, encoding: str | None = None, *, may_be_empty: bool = False, in_order: bool = True
) -> tuple[TimedWord, ...]:
    """The words of a ctm file, in its order. Raises InputProblems with all its mistakes.

    Files and channels may come in any order.

    - in_order: whether the words of each must come in the order of their starts, as cutting them by segments requires.
    - may_be_empty: see read_trn.

    A 7th column is the type of the word, or a number as ROVER writes it, which is ignored; an 8th is the speaker. A
    duration may be negative, as for sclite.

    Alternatives between <ALT_BEGIN>, <ALT> and <ALT_END> become one word `{ a / b c / @ }`. Its times are those of the
    word with the latest midpoint, so that it belongs to one segment.
    """
    return _CtmReader(str(path), in_order).words(read_text(path, encoding, may_be_empty=may_be_empty))


class _CtmReader:
    """Reads the words of a ctm file line by line, and joins alternatives."""

    def __init__(self, file: str, in_order: bool) -> None:
        self._problems = Problems(file)
        self._in_order = in_order
        self._words: list[TimedWord] = []
        self._latest: Latest = {}
        self._open: TimedWord | None = None  # the mark that opened the alternatives that are being read
        self._alternatives: list[list[TimedWord]] = []

    def words(self, text: str) -> tuple[TimedWord, ...]:
        for number, line in filled_lines(text):
            fields = line.split()
            if len(fields) > 4 and fields[4].upper() in _MARKS:
                self._read_mark(number, line, fields)
            elif self._open is not None and fields[2:] == [_NO_TIME, _NO_TIME, _NOTHING]:
                pass  # `@` stands for an alternative without a word, so there is no word to add
            elif (word := self._parse_word(number, line, fields)) is not None:
                self._add_word(word, line)
        if self._open is not None:
            self._refuse_open()
        self._problems.refuse()
        return tuple(self._words)

    def _parse_word(self, number: int, line: str, fields: list[str]) -> TimedWord | None:
        """The word in the fields of a line. Adds a problem for each wrong field. None without a word or times."""
        if not 5 <= len(fields) <= 8:
            problem = f"{counted(len(fields), 'field')}, but a line needs 5 to 8"
            self._problems.add(number, column_of(line, min(len(fields), 8)), problem, _CTM_EXAMPLE)
            return None
        start_s = checked_time(self._problems, number, line, 2, "the start", fields[2])
        duration_s = checked_time(self._problems, number, line, 3, "the duration", fields[3])
        confidence = None
        if len(fields) > 5 and fields[5].upper() != _NO_CONFIDENCE:
            confidence = seconds(fields[5])
            if confidence is None:
                problem = f"the confidence {shown(fields[5])} is not a number"
                self._problems.add(number, column_of(line, 5), problem, "Use a number or NA, or omit the confidence")
        kind = fields[6].lower() if len(fields) > 6 else _LEXICAL
        if kind not in _TYPES and (len(fields) == 8 or seconds(kind) is None):
            problem = f"the type {shown(fields[6])} is not one of {', '.join(_TYPES)}"
            self._problems.add(
                number, column_of(line, 6), problem, "Put the type in column 7, and the speaker in column 8"
            )
        if start_s is None or duration_s is None:
            return None
        is_scored = kind == _LEXICAL or kind not in _TYPES
        return TimedWord(
            file=fields[0],
            channel=fields[1],
            start_s=start_s,
            duration_s=duration_s,
            text=fields[4],
            confidence=confidence,
            line=number,
            is_scored=is_scored,
        )

    def _add_word(self, word: TimedWord, line: str) -> None:
        """Adds a word to the words of the file, or to the alternatives that are open."""
        # Alternatives begin at the same time again, so only words outside of them must be in order.
        if self._open is None and self._in_order:
            refuse_disorder(self._problems, self._latest, word, column_of(line, 2), "word", "start")
        if self._open is None:
            self._words.append(word)
        elif (word.file, word.channel) != (self._open.file, self._open.channel):
            self._refuse_open()
            self._words.append(word)
        else:
            self._alternatives[-1].append(word)

    def _read_mark(self, number: int, line: str, fields: list[str]) -> None:
        """Opens or closes alternatives, or begins the next one. Adds a problem for a mark in the wrong place."""
        mark = fields[4].upper()
        if fields[2] != _NO_TIME or fields[3] != _NO_TIME:
            self._problems.add(number, column_of(line, 2), f"{mark} must not have times", f"Use f1 A * * {mark}")
        if (mark == _BEGIN) != (self._open is None):
            problem = "alternatives must not be nested" if mark == _BEGIN else f"{mark} without {_BEGIN}"
            remedy = f"Use {_BEGIN}, {_OR} between the alternatives, and {_END}"
            self._problems.add(number, column_of(line, 4), problem, remedy)
            return
        if mark == _BEGIN:
            self._open = TimedWord(
                file=fields[0],
                channel=fields[1],
                start_s=math.nan,
                duration_s=0.0,
                text="",
                confidence=None,
                line=number,
            )
            self._alternatives = [[]]
        elif mark == _OR:
            self._alternatives.append([])
        else:
            self._close_alternatives()

    def _close_alternatives(self) -> None:
        """Joins the alternatives to one word, see `read_ctm`."""
        opening, self._open = self._open, None
        assert opening is not None  # _read_mark has refused an end without it
        scored_alternatives = [[word for word in alternative if word.is_scored] for alternative in self._alternatives]
        scored_words = [word for alternative in scored_alternatives for word in alternative]
        if any(self._alternatives) and not scored_words:
            self._words += [word for alternative in self._alternatives for word in alternative]
            return
        if len(self._alternatives) < 2 or not scored_words:
            problem = "the alternatives contain no words" if not scored_words else "there is only one alternative"
            self._problems.add(opening.line, 1, problem, f"Use two or more alternatives with {_OR} between them")
            return
        latest = max(scored_words, key=lambda word: word.start_s + word.duration_s / 2)
        texts = (" ".join(word.text for word in alternative) or _NOTHING for alternative in scored_alternatives)
        text = f"{{ {' / '.join(texts)} }}"
        times: list[tuple[float, float]] = []
        for alternative in scored_alternatives:
            times += [times_of(word) for word in alternative] or [_TIMES_OF_NOTHING]
        self._words.append(
            TimedWord(
                file=opening.file,
                channel=opening.channel,
                start_s=latest.start_s,
                duration_s=latest.duration_s,
                text=text,
                confidence=None,
                line=opening.line,
                times=tuple(times),
            )
        )

    def _refuse_open(self) -> None:
        """Adds a problem for alternatives that are not closed, and drops them."""
        opening, self._open = self._open, None
        assert opening is not None
        self._problems.add(opening.line, 1, f"{_BEGIN} is not closed", f"Add f1 A * * {_END} after the alternatives")


_IGNORED = re.compile("IGNORE_TIME_SEGMENT_IN_SCORING|IGNORETIMESEGMENTINSCORING", re.ASCII | re.IGNORECASE)
_STM_EXAMPLE = (
    "Use the fields file, channel, speaker, begin, end, optionally labels, and text: f1 A ann 0.0 2.5 <o,f> hello"
)


def declaration(word: str) -> re.Pattern[str]:
    """Matches `;; WORD "id" "title" "description"`."""
    blank, quoted = r"[ \t]", r'[ \t]+"([^"]*)"'
    return re.compile(f"{blank}*;;{blank}*{word}{quoted * 3}{blank}*")


_LABEL = declaration("LABEL")


@frozen
class Segments:
    """A file in segments, in its order. labels: id and title of each label that the file declares."""

    file: str
    segments: tuple[Segment, ...]
    labels: tuple[tuple[str, str], ...]
    encoding: str = "utf-8"


def read_stm(path: Path, encoding: str | None = None, *, in_order: bool = True, may_be_empty: bool = False) -> Segments:
    """The segments of an stm file and the labels that it declares. Raises InputProblems with all its mistakes.

    Files and channels may come in any order.

    - in_order: whether the segments of each must come in the order of their begins. Names of speakers that differ only
      in case are one speaker, spelt as at the first occurrence.
    - may_be_empty: see read_trn.
    """
    text = read_text(path, encoding, may_be_empty=may_be_empty)
    problems = Problems(str(path))
    segments: list[Segment] = []
    latest: Latest = {}
    speakers: dict[str, str] = {}
    for number, line in filled_lines(text):
        segment = _parse_segment(number, line, speakers, problems)
        if segment is None:
            continue
        if in_order:
            refuse_disorder(problems, latest, segment, column_of(line, 3), "segment", "begin")
        segments.append(segment)
    problems.demand(segments or may_be_empty, "the file has no segments", _STM_EXAMPLE)
    labels = tuple((match[1], match[2]) for line in text.split("\n") if (match := _LABEL.fullmatch(line)))
    return Segments(str(path), tuple(segments), labels, encoding_name(encoding))


def _parse_segment(number: int, line: str, speakers: dict[str, str], problems: Problems) -> Segment | None:
    """The segment of a line. Adds a problem if it has none, and returns None. speakers: the first spelling of each
    speaker, by its name in lower case; is extended."""
    fields = line.split(maxsplit=5)
    if len(fields) < 5:
        problem = f"{counted(len(fields), 'field')}, but a line needs at least 5"
        problems.add(number, column_of(line, len(fields)), problem, _STM_EXAMPLE)
        return None
    file, channel, speaker = fields[:3]
    start_s = checked_time(problems, number, line, 3, "the start", fields[3])
    end_s = checked_time(problems, number, line, 4, "the end", fields[4])
    if start_s is None or end_s is None:
        return None
    if end_s < start_s:
        problem = f"the segment ends ({fields[4]}) before it begins ({fields[3]})"
        problems.add(number, column_of(line, 4), problem, "The fields are begin and end, not begin and duration")
        return None
    text = fields[5].strip() if len(fields) > 5 else ""
    labels: tuple[str, ...] = ()
    if text.startswith("<"):
        label_text, *rest = text.split(maxsplit=1)
        text = rest[0] if rest else ""
        if not label_text.endswith(">"):
            problem = f"the labels {shown(label_text)} are not closed"
            problems.add(
                number, column_of(line, 5), problem, "Close the labels with >, without spaces between them: <o,f0,male>"
            )
            return None
        # Keep empty positions, since the meaning of a label depends on its position.
        labels = tuple(label_text[1:-1].rstrip(",").split(",")) if label_text.strip("<,>") else ()
    words = " ".join(text.split())
    speaker = speakers.setdefault(speaker.lower(), speaker)
    ignored = _IGNORED.search(words) is not None
    return Segment(
        file=file,
        channel=channel,
        speaker=speaker,
        start_s=start_s,
        end_s=end_s,
        text=words,
        labels=labels,
        ignored=ignored,
        line=number,
    )


_SEGLST_EXAMPLE = (
    'Use [{"session_id": "f1", "speaker": "ann", "start_time": 0.0, "end_time": 2.5, "words": "hello"}, …]'
)
_SEGLST_TEXTS, _SEGLST_TIMES = ("session_id", "speaker", "words"), ("start_time", "end_time")


def read_seglst(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Segments:
    """The segments of a segLST file. Raises InputProblems with all its mistakes. Speakers: as for read_stm."""
    text = read_text(path, encoding)
    problems = Problems(str(path))
    segments: list[Segment] = []
    speakers: dict[str, str] = {}
    for number, row in _objects(text, problems):
        texts = [row.get(key) for key in _SEGLST_TEXTS]
        times = [seconds(str(row.get(key))) for key in _SEGLST_TIMES]
        wrong = [key for key, field in zip(_SEGLST_TEXTS, texts, strict=True) if not isinstance(field, str)]
        wrong += [key for key, time_s in zip(_SEGLST_TIMES, times, strict=True) if time_s is None]
        start_s, end_s = times
        if wrong or start_s is None or end_s is None:
            problems.add(number, 1, f"the segment has no valid {', '.join(wrong)}", _SEGLST_EXAMPLE)
        elif end_s < start_s:
            problem = f"the segment ends ({exact(end_s)}) before it begins ({exact(start_s)})"
            problems.add(number, 1, problem, "Use the times of start and end, not start and duration")
        else:
            file, speaker, words = (" ".join(str(field).split()) for field in texts)
            speaker = speakers.setdefault(speaker.lower(), speaker)
            segments.append(
                Segment(
                    file=file,
                    channel="",
                    speaker=speaker,
                    start_s=start_s,
                    end_s=end_s,
                    text=words,
                    labels=(),
                    ignored=False,
                    line=number,
                )
            )
    problems.demand(segments or may_be_empty, "the file has no segments", _SEGLST_EXAMPLE)
    return Segments(str(path), tuple(segments), (), encoding_name(encoding))


def _objects(text: str, problems: Problems) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a JSON list, each with the line in which it begins."""
    decoder = json.JSONDecoder()
    index = _past_blanks(text, 0)
    if text[index : index + 1] != "[":
        problems.add(1, 1, "the file is not a JSON list", _SEGLST_EXAMPLE)
        return
    index = _past_blanks(text, index + 1)
    line, position = 1, 0
    while text[index : index + 1] != "]":
        line, position = line + text.count("\n", position, index), index
        try:
            row, end = decoder.raw_decode(text, index)
        except (ValueError, RecursionError) as error:
            problems.add(line, 1, f"not JSON: {error}", _SEGLST_EXAMPLE)
            return
        if isinstance(row, dict):
            yield line, row
        else:
            problems.add(line, 1, "the list contains something other than an object", _SEGLST_EXAMPLE)
        index = _past_blanks(text, end)
        if text[index : index + 1] == ",":
            index = _past_blanks(text, index + 1)
        elif text[index : index + 1] != "]":
            problems.add(
                line,
                1,
                "the list is not closed after this segment",
                "Add a comma before the next segment, or close the list with ]",
            )
            return
    end_of_list = _past_blanks(text, index + 1)
    if end_of_list < len(text):
        line += text.count("\n", position, end_of_list)
        problems.add(line, 1, "there is more text after the list", "Put all segments in one list")


def _past_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def times_of(word: TimedWord) -> tuple[float, float]:
    """Begin and end of a word, in seconds."""
    return word.start_s, word.start_s + word.duration_s


def cut_by_segments(words: Sequence[TimedWord], segments: Sequence[Segment]) -> tuple[tuple[TimedWord, ...], ...]:
    """The words of each segment, in the order of `segments`. Words of a file and channel without segments are in none.

    Within a file and channel (compared without case), each segment takes the next words, up to the first whose midpoint
    is not before its end. The last segment takes the rest. So words between two segments go to the later one, and words
    before the first segment go to that one. If two segments overlap, the earlier one takes the words that lie in both.
    Words and segments of one file and channel are taken in the given order. A midpoint on a border belongs to the later
    segment, unless the time of the border rounds up in single precision, which sclite uses.
    """
    words_by_place = group_by((place_of(word), word) for word in words)
    last_segment = {place_of(segment): number for number, segment in enumerate(segments)}
    ends = dict.fromkeys(words_by_place, 0)
    pieces: list[tuple[TimedWord, ...]] = []
    for number, segment in enumerate(segments):
        place = place_of(segment)
        place_words = words_by_place.get(place, [])
        start = end = ends.get(place, 0)
        if number == last_segment[place]:
            end = len(place_words)
        else:
            border_s = _single(segment.end_s)
            while end < len(place_words) and place_words[end].start_s + place_words[end].duration_s / 2 < border_s:
                end += 1
        ends[place] = end
        pieces.append(tuple(place_words[start:end]))
    return tuple(pieces)


def place_of(timed: Segment | TimedWord) -> tuple[str, str]:
    """File and channel in lower case, since sclite compares them so."""
    return timed.file.lower(), timed.channel.lower()


def _single(time_s: float) -> float:
    """A time in single precision. sclite keeps the times of segments so, which decides about midpoints on a border."""
    try:
        return float(struct.unpack("f", struct.pack("f", time_s))[0])
    except OverflowError:
        return time_s
