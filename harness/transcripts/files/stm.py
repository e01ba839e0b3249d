"""Segment-marked references (NIST stm): file, channel, speaker, begin, end, perhaps labels, and the text.

Blank lines and lines that begin with ;; are skipped, but `;; LABEL "id" "title" "description"` declares a label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.transcript import Segment
from harness.transcripts.files.encoding import encoding_name, read_text
from harness.transcripts.files.fields import column_of, filled_lines, refuse_time, seconds

_IGNORED = re.compile("IGNORE_TIME_SEGMENT_IN_SCORING|IGNORETIMESEGMENTINSCORING", re.ASCII | re.IGNORECASE)
_EXAMPLE = "Write file, channel, speaker, begin, end, perhaps labels, and the text: f1 A ann 0.0 2.5 <o,f> hello"
_LABEL = re.compile(r'[ \t]*;;[ \t]*LABEL[ \t]+"([^"]*)"[ \t]+"([^"]*)"[ \t]+"([^"]*)"[ \t]*')


@dataclass(frozen=True, slots=True)
class Label:
    """A subset that segments can belong to, as the file declares it."""

    id: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Segments:
    """A reference in segments, in the order of the file."""

    file: str
    segments: tuple[Segment, ...]
    labels: tuple[Label, ...]
    encoding: str = "utf-8"


def read_stm(path: Path, encoding: str | None = None) -> Segments:
    """The segments of a file and the labels that it declares; InputProblems with all that is wrong with it.

    Files and channels may come in any order, the segments of each in that of their begins. Speakers that differ in
    case only are one, spelt as where they are first.
    """
    text = read_text(path, encoding)
    problems = Problems(str(path))
    segments: list[Segment] = []
    latest: dict[tuple[str, str], Segment] = {}
    speakers: dict[str, str] = {}
    for number, line in filled_lines(text):
        segment = _segment(number, line, speakers, problems)
        if segment is None:
            continue
        place = (segment.file.lower(), segment.channel.lower())
        before = latest.get(place)
        if before is not None and segment.start_s < before.start_s:
            what = f"the segment begins before the one in line {before.line}"
            remedy = "Sort the segments of each file and channel by their begin"
            problems.add(number, column_of(line, 3), what, remedy)
        latest[place] = segment
        segments.append(segment)
    problems.refuse()
    if not segments:
        problems.add(0, 0, "the file has no segments", _EXAMPLE)
        problems.refuse()
    labels = tuple(Label(*found.groups()) for line in text.split("\n") if (found := _LABEL.fullmatch(line)))
    return Segments(str(path), tuple(segments), labels, encoding_name(encoding))


def _segment(number: int, line: str, speakers: dict[str, str], problems: Problems) -> Segment | None:
    fields = line.split(maxsplit=5)
    if len(fields) < 5:
        what = f"{len(fields)} field{'s' * (len(fields) != 1)}, where a line has 5 or more"
        problems.add(number, column_of(line, len(fields)), what, _EXAMPLE)
        return None
    file, channel, speaker = fields[:3]
    start_s, end_s = seconds(fields[3]), seconds(fields[4])
    if start_s is None:
        refuse_time(problems, number, line, 3, "the begin", fields[3])
    if end_s is None:
        refuse_time(problems, number, line, 4, "the end", fields[4])
    if start_s is None or end_s is None:
        return None
    if end_s < start_s:
        what = f"the segment ends ({fields[4]}) before it begins ({fields[3]})"
        problems.add(number, column_of(line, 4), what, "The fields are begin and end, not begin and duration")
        return None
    text = fields[5].strip() if len(fields) > 5 else ""
    labels: tuple[str, ...] = ()
    if text.startswith("<"):
        written, *rest = text.split(maxsplit=1)
        text = rest[0] if rest else ""
        if not written.endswith(">"):
            what = f"the labels {shown(written)} are not closed"
            problems.add(number, column_of(line, 5), what, "Write them without spaces: <o,f0,male>")
            return None
        # A place may be empty: what a label says depends on its place.
        labels = tuple(written[1:-1].rstrip(",").split(",")) if written.strip("<,>") else ()
    words = " ".join(text.split())
    speaker = speakers.setdefault(speaker.lower(), speaker)
    ignored = _IGNORED.search(words) is not None
    return Segment(file, channel, speaker, start_s, end_s, words, labels, ignored, number)
