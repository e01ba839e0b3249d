"""Time-marked words (NIST ctm): file, channel, start, duration, word and, perhaps, its confidence, in each line.

Blank lines and lines that begin with ;; are skipped.
"""

from __future__ import annotations

import math
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.transcript import TimedWord
from harness.transcripts.files.encoding import read_text
from harness.transcripts.files.fields import column_of, filled_lines, refuse_time, seconds

_EXAMPLE = "Write file, channel, start, duration, word and, if there is one, confidence: f1 A 0.10 0.25 hello 0.98"
_BEGIN, _OR, _END = "<ALT_BEGIN>", "<ALT>", "<ALT_END>"
_MARKS = (_BEGIN, _OR, _END)
_NO_TIME = "*"
_NO_CONFIDENCE = "NA"


def read_ctm(
    path: Path, encoding: str | None = None, *, may_be_empty: bool = False, in_order: bool = True
) -> tuple[TimedWord, ...]:
    """The words of a file, in its order; InputProblems with all that is wrong with it.

    Files and channels may come in any order, the words of each in that of their starts (in_order), which cutting them
    by segments asks for. may_be_empty: see read_trn. Alternatives between
    <ALT_BEGIN>, <ALT> and <ALT_END> become one word `{ a / b c / @ }`, which has the times of that of its words with
    the latest midpoint: as a whole it belongs to one segment.
    """
    return _Reader(str(path), in_order).words(read_text(path, encoding, may_be_empty=may_be_empty))


class _Reader:
    def __init__(self, file: str, in_order: bool) -> None:
        self._problems = Problems(file)
        self._in_order = in_order
        self._words: list[TimedWord] = []
        self._latest: dict[tuple[str, str], TimedWord] = {}
        self._open: TimedWord | None = None  # the mark that opened the alternatives that are being read
        self._alternatives: list[list[TimedWord]] = []

    def words(self, text: str) -> tuple[TimedWord, ...]:
        for number, line in filled_lines(text):
            fields = line.split()
            if len(fields) > 4 and fields[4].upper() in _MARKS:
                self._mark(number, line, fields)
            elif (word := self._word(number, line, fields)) is not None:
                self._take(word, line)
        if self._open is not None:
            self._unclosed()
        self._problems.refuse()
        return tuple(self._words)

    def _word(self, number: int, line: str, fields: list[str]) -> TimedWord | None:
        if not 5 <= len(fields) <= 6:
            what = f"{len(fields)} fields, where a line has 5 or 6"
            self._problems.add(number, column_of(line, min(len(fields), 6)), what, _EXAMPLE)
            return None
        start_s, duration_s = seconds(fields[2]), seconds(fields[3])
        if start_s is None:
            refuse_time(self._problems, number, line, 2, "the start", fields[2])
        if duration_s is None:
            refuse_time(self._problems, number, line, 3, "the duration", fields[3])
        elif duration_s < 0:
            what = f"the duration {fields[3]} is negative"
            self._problems.add(number, column_of(line, 3), what, "The fields are start and duration, not start and end")
            return None
        confidence = None
        if len(fields) == 6 and fields[5].upper() != _NO_CONFIDENCE:
            confidence = seconds(fields[5])
            if confidence is None:
                what = f"the confidence {shown(fields[5])} is not a number"
                self._problems.add(number, column_of(line, 5), what, "Write a number or NA, or leave it out")
        if start_s is None or duration_s is None:
            return None
        return TimedWord(fields[0], fields[1], start_s, duration_s, fields[4], confidence, number)

    def _take(self, word: TimedWord, line: str) -> None:
        self._refuse_disorder(word, line)
        if self._open is None:
            self._words.append(word)
        elif (word.file, word.channel) != (self._open.file, self._open.channel):
            self._unclosed()
            self._words.append(word)
        else:
            self._alternatives[-1].append(word)

    def _refuse_disorder(self, word: TimedWord, line: str) -> None:
        # Alternatives are each other's time again, so that only the words outside are held to it.
        if self._open is not None or not self._in_order:
            return
        place = (word.file.lower(), word.channel.lower())
        before = self._latest.get(place)
        if before is not None and word.start_s < before.start_s:
            what = f"the word begins before the one in line {before.line}"
            remedy = "Sort the words of each file and channel by their start"
            self._problems.add(word.line, column_of(line, 2), what, remedy)
        self._latest[place] = word

    def _mark(self, number: int, line: str, fields: list[str]) -> None:
        mark = fields[4].upper()
        if fields[2] != _NO_TIME or fields[3] != _NO_TIME:
            self._problems.add(number, column_of(line, 2), f"{mark} has no times", f"Write f1 A * * {mark}")
        if (mark == _BEGIN) != (self._open is None):
            what = "alternatives within alternatives" if mark == _BEGIN else f"{mark} without {_BEGIN}"
            remedy = f"Write {_BEGIN}, {_OR} between the alternatives, and {_END}"
            self._problems.add(number, column_of(line, 4), what, remedy)
            return
        if mark == _BEGIN:
            self._open = TimedWord(fields[0], fields[1], math.nan, 0.0, "", None, number)
            self._alternatives = [[]]
        elif mark == _OR:
            self._alternatives.append([])
        else:
            self._close()

    def _close(self) -> None:
        opened, self._open = self._open, None
        assert opened is not None  # _mark has refused an end without it
        spoken = [word for one in self._alternatives for word in one]
        if len(self._alternatives) < 2 or not spoken:
            what = "alternatives without a word" if not spoken else "a single alternative"
            self._problems.add(opened.line, 1, what, f"Write two or more with {_OR} between them")
            return
        latest = max(spoken, key=lambda word: word.start_s + word.duration_s / 2)
        texts = (" ".join(word.text for word in one) or "@" for one in self._alternatives)
        text = f"{{ {' / '.join(texts)} }}"
        place = (opened.file, opened.channel)
        self._words.append(TimedWord(*place, latest.start_s, latest.duration_s, text, None, opened.line))

    def _unclosed(self) -> None:
        opened, self._open = self._open, None
        assert opened is not None
        self._problems.add(opened.line, 1, f"{_BEGIN} is not closed", f"Write f1 A * * {_END} behind the last of them")
