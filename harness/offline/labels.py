"""Labels of phrases in long recordings: CSV with a header, RTTM, Praat's TextGrid, Audacity's label tracks.

Two labels of the same phrase must not overlap by half, since an engine cannot detect a phrase twice at the same time.
The tiers of two annotators overlap in this way, so one tier must be chosen.

Sources: NIST RTTM (rt-04f evaluation plan, appendix A), Praat manual "TextGrid file formats", Audacity manual
"Importing and exporting labels". Times are seconds from the start of the recording.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from harness.base.text_file import COMMENT, CsvRows, Problems, read_text, separator_of, shown, unmarked
from harness.model.errors import InputError, Place, did_you_mean, nearest
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact
from harness.model.offline import LabelledPhrase
from harness.offline.figures.phrase_matching import compared
from harness.offline.file_sources import CollectedFiles
from harness.sound.manifests import AUDIO

LABELS = (".csv", ".tsv", ".rttm", ".textgrid", ".txt")
_START = ("start", "start_s", "begin", "begin_s", "onset", "from")
_END = ("end", "end_s", "stop", "stop_s", "offset", "to")
_DURATION = ("duration", "duration_s", "dur")
_PHRASE = ("phrase", "keyword", "label", "text", "word")
_NONE = "<NA>"
_RTTM_PHRASES = ("LEXEME", "SPEAKER")
_RTTM_OTHERS = ("SEGMENT", "NOSCORE", "NO_RT_METADATA", "NON-LEX", "NON-SPEECH", "FILLER", "EDIT", "IP", "SU", "CB",
                "A/P", "SPKR-INFO")  # fmt: skip
_CSV_REMEDY = "Write the header audio,start,end,phrase (audio and phrase may be left out), with times in seconds"
_RTTM_REMEDY = "Write: LEXEME FILE 1 START DURATION PHRASE lex TALKER <NA>"
_AUDACITY_REMEDY = "Write start, end and label with tabs between: 12.3<tab>13.1<tab>okay nabu"
_LENGTH_REMEDY = "Label the phrase from its beginning to its end"
TIER = "tier"
_GRID_REMEDY = "Save it in Praat with File > Save as text file"
_GRID_TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S)|\S+')
Labels = tuple[LabelledPhrase, ...]


@frozen
class LabelFile:
    """A file of labels. of: the labels of each recording in order of time, by the name of the recording in the file.
    The name is "" if the file does not name it."""

    path: str
    of: dict[str, Labels]

    @property
    def named(self) -> bool:
        """Whether the file names its recordings. If not, it belongs to the recording that has its own name."""
        return "" not in self.of


def read_labels(path: str, encoding: str | None = None, tier: str = "") -> LabelFile:
    """Reads a file of labels. InputError or InputProblems, with the place of each line, for anything but labels, and
    for labels of one phrase that overlap by half.

    tier: the only tier of a TextGrid that is read; "" for all.
    """
    ending = PurePath(path).suffix.lower()
    if ending not in LABELS:
        remedy = "Write CSV (.csv, .tsv), RTTM (.rttm), TextGrid (.TextGrid) or Audacity labels (.txt)"
        raise InputError("label files do not have this suffix", place=Place(path), remedy=remedy)
    encoding = (_grid_encoding(path) if ending == ".textgrid" else None) or encoding
    text = read_text(Path(path), encoding, may_be_empty=True, as_written=ending in _TABLES)
    if not text.strip():  # a recording without phrases
        return LabelFile(path, {"": ()})
    problems = Problems(path)
    labels: dict[str, list[_LabelLine]] = {} if ending in (*_TABLES, ".rttm") else {"": []}
    match ending:
        case ".csv" | ".tsv":
            rows = _csv(text, problems)
        case ".rttm":
            rows = _rttm(text, problems)
        case ".textgrid":
            rows = _grid(text, problems, tier)
        case _:
            rows = _audacity(text, problems)
    for recording, label in rows:
        labels.setdefault(recording, []).extend([] if label is None else [label])
    problems.refuse()
    for label_lines in labels.values():
        label_lines.sort(key=lambda label: (label[0].start_s, label[0].end_s))
        _refuse_overlaps(label_lines, problems)
    problems.refuse()
    return LabelFile(path, {name: tuple(label for label, _ in label_lines) for name, label_lines in labels.items()})


_TABLES = (".csv", ".tsv")
_LabelLine = tuple[LabelledPhrase, int]


def _refuse_overlaps(labels: Sequence[_LabelLine], problems: Problems) -> None:
    """Adds a problem for the first label that overlaps an earlier one by at least half of the shorter of the two.
    labels: in order of time."""
    before: list[_LabelLine] = []
    pairs: list[tuple[_LabelLine, _LabelLine]] = []
    for later in labels:
        before = [earlier for earlier in before if earlier[0].end_s > later[0].start_s]
        pairs += [(earlier, later) for earlier in before if _same_phrase(earlier[0], later[0])][:1]
        before.append(later)
    if not pairs:
        return
    first, second = sorted(pairs[0], key=lambda label: label[1])
    problem = f"this label ({_label_text(second[0])}) overlaps the label on line {first[1]} ({_label_text(first[0])})"
    problem += f", and {counted(len(pairs) - 1, 'more label')} that overlap" if len(pairs) > 1 else ""
    tier = _tier(first[0])
    remedy = "Remove one of them: a phrase has one label"
    if tier != _tier(second[0]):
        remedy = f"Choose the labels of one tier: --tier {shlex.quote(tier)}"
    problems.add(second[1], 0, problem, remedy)


def _same_phrase(earlier: LabelledPhrase, later: LabelledPhrase) -> bool:
    common_s = min(earlier.end_s, later.end_s) - later.start_s
    shorter_s = min(earlier.end_s - earlier.start_s, later.end_s - later.start_s)
    phrases_agree = not earlier.phrase or not later.phrase or compared(earlier.phrase) == compared(later.phrase)
    return phrases_agree and common_s >= shorter_s / 2


def _tier(label: LabelledPhrase) -> str:
    return dict(label.traits).get(TIER, "")


def _label_text(label: LabelledPhrase) -> str:
    tier = _tier(label)
    return f"{exact(label.start_s, 9)} to {exact(label.end_s, 9)} s" + (f", tier {shown(tier)}" if tier else "")


def _label(
    problems: Problems, line: int, start: str, end: str, phrase: str, remedy: str, *, lasts: bool = False,
    traits: tuple[tuple[str, str], ...] = (),
) -> _LabelLine | None:  # fmt: skip
    """A label from the texts of its fields, with its line. None after a problem, which is added to `problems`. lasts:
    whether `end` is a duration."""
    times: list[float] = []
    for text in (start, end):
        try:
            time_s = float(text)
        except ValueError:
            time_s = math.nan
        if not (math.isfinite(time_s) and time_s >= 0):
            problems.add(line, 0, f"{shown(text)} is not a time in seconds", remedy)
            return None
        times.append(time_s)
    start_s, end_s = times[0], round(times[0] + times[1], 9) if lasts else times[1]
    if end_s < start_s:
        problems.add(line, 0, f"the phrase ends at {end} s, before it begins at {start} s", remedy)
        return None
    if end_s == start_s:
        problems.add(line, 0, f"the label at {start} s has no length", _LENGTH_REMEDY)
        return None
    return LabelledPhrase(start_s, end_s, " ".join(phrase.split()), traits), line


_Read = Iterator[tuple[str, _LabelLine | None]]
"""Name of a recording, and a label with its line; None instead for a recording that is named without a phrase."""


def _csv(text: str, problems: Problems) -> _Read:
    table = CsvRows.of(text, problems, separator_of(problems.file))
    rows = iter(table)
    first_line, fields = next(rows, (1, []))
    problems.refuse()
    header = [name.strip().lower() for name in fields]
    if twice := next((name for index, name in enumerate(header) if name in header[:index] and name), None):
        problems.add(first_line, 0, f"two columns are called {shown(twice)}", "Rename one")
        return

    def column(names: Sequence[str]) -> int | None:
        return next((header.index(name) for name in names if name in header), None)

    audio, start, phrase = column(AUDIO), column(_START), column(_PHRASE)
    end, lasts = column(_END), False
    if end is None:
        end, lasts = column(_DURATION), True
    if start is None or end is None:
        problem = f"no column has the {'start' if start is None else 'end'} of the phrases"
        problems.add(first_line, 0, problem, _CSV_REMEDY)
        return
    trait_columns = [
        index for index in range(len(header)) if index not in (audio, start, end, phrase) and header[index]
    ]
    for name in (header[index] for index in trait_columns if phrase is None):
        if difflib.get_close_matches(name, _PHRASE, n=1, cutoff=0.8):  # misspelt: then any phrase would count
            remedy = f"{did_you_mean(name, _PHRASE)}{_CSV_REMEDY}"
            problems.add(first_line, 0, f"the column {name!r} is not known", remedy)
            return
    for line, row in rows:
        if len(row) != len(header):
            problem = f"{counted(len(row), 'field')}, but the header has {len(header)}"
            problems.add(line, 0, problem, "Put a field with a comma in quotes")
            continue
        name = "" if audio is None else row[audio].strip()
        if audio is not None and not name:
            problems.add(line, 0, "the row does not name a recording", _CSV_REMEDY)
        elif audio is not None and not (row[start].strip() or row[end].strip()):
            yield name, None
        else:
            traits = tuple((header[index], " ".join(unmarked(row[index]).split())) for index in trait_columns)
            phrase_text = "" if phrase is None else unmarked(row[phrase])
            times = table.number(row[start]), table.number(row[end])
            yield name, _label(problems, line, *times, phrase_text, _CSV_REMEDY, lasts=lasts, traits=traits)
    if audio is None:
        yield "", None


def _rttm(text: str, problems: Problems) -> _Read:
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith(COMMENT) or fields[0].upper() in _RTTM_OTHERS:
            continue
        if fields[0].upper() not in _RTTM_PHRASES or len(fields) < 8:
            problem = f"{shown(fields[0])} is not an RTTM type" if len(fields) >= 8 else f"only {len(fields)} fields"
            problems.add(number, 1, problem, _RTTM_REMEDY)
            continue
        _, recording, _, start, lasts, words, _, talker, *_ = fields
        # Tools that label anything but talkers write the label in the place of the talker.
        phrase = (talker if words == _NONE else words).replace("_", " ")
        traits = () if words == _NONE or talker == _NONE else (("talker", talker),)
        phrase = "" if phrase == _NONE else phrase
        yield recording, _label(problems, number, start, lasts, phrase, _RTTM_REMEDY, lasts=True, traits=traits)


def _audacity(text: str, problems: Problems) -> _Read:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("\\"):  # frequencies of the label above
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            problems.add(number, 1, f"{shown(line)} is not an Audacity label", _AUDACITY_REMEDY)
            continue
        times = [field.replace(",", ".") for field in fields[:2]]  # as Audacity writes them in some languages
        yield "", _label(problems, number, times[0], times[1], " ".join(fields[2:]), _AUDACITY_REMEDY)


def _grid_encoding(path: str) -> str | None:
    """The encoding of a TextGrid; None for UTF-8. Praat writes UTF-16 if a text has letters beyond ASCII."""
    try:
        with open(path, "rb") as file:
            return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else None
    except OSError:
        return None  # reported when it is read


def _grid(text: str, problems: Problems, only_tier: str) -> _Read:
    """Reads both text formats of a TextGrid: the short one has the values of the long one without their names.
    only_tier: the tier that is read; "" for all."""
    values = list(_grid_values(text))
    index = 0

    def take(kind: type[str] | type[float]) -> tuple[int, str]:
        nonlocal index
        line, kind_of_value, value = (
            values[index] if index < len(values) else (text.count("\n") + 1, None, "the end of the file")
        )
        if kind_of_value is not kind:
            problem = f"{shown(value)} is not the {'text' if kind is str else 'number'} that a TextGrid has here"
            raise InputError(problem, place=Place(problems.file, line), remedy=_GRID_REMEDY)
        index += 1
        return line, value

    def count() -> int:
        line, value = take(float)
        if not 0 <= float(value) <= len(values):
            raise InputError(f"{shown(value)} is not a count", place=Place(problems.file, line), remedy=_GRID_REMEDY)
        return int(float(value))

    try:
        if (take(str)[1], take(str)[1]) != ("ooTextFile", "TextGrid"):
            raise InputError("this is not a TextGrid", place=Place(problems.file, 1), remedy=_GRID_REMEDY)
        take(float)
        take(float)
        tiers = count()
        names: list[str] = []
        intervals_seen = False
        for _ in range(tiers):
            line, kind = take(str)
            tier = take(str)[1]
            names.append(tier)
            take(float)
            take(float)
            for _ in range(count()):
                line, start = take(float)
                end = take(float)[1] if kind == "IntervalTier" else start
                phrase = take(str)[1]
                if only_tier not in ("", tier):
                    continue
                intervals_seen |= kind == "IntervalTier"
                if kind == "IntervalTier" and phrase.strip():
                    yield "", _label(problems, line, start, end, phrase, _GRID_REMEDY, traits=((TIER, tier),))
        if only_tier and only_tier not in names:
            problems.add(1, 0, f"there is no tier {shown(only_tier)}", nearest(only_tier, names, listed="Tiers"))
        elif tiers and not intervals_seen:
            problems.add(1, 0, "no tier has intervals, and points have no end", "Label phrases as intervals in Praat")
    except InputError as error:
        problems.take(error)


def _grid_values(text: str) -> Iterator[tuple[int, type[str] | type[float], str]]:
    """Line, kind and text of each value: texts in quotes, and numbers between blanks. The rest of the file is for
    people."""
    line, offset = 1, 0
    for match in _GRID_TOKEN.finditer(text):
        line, offset = line + text.count("\n", offset, match.start()), match.start()
        if match.lastindex == 1:
            yield line, str, match[1].replace('""', '"')
        elif match.lastindex == 2:
            yield line, float, match[2]


class LabelsOfRecordings:
    """Finds the labels of recordings, in files that name the recordings or have their names. places: label files, and
    folders with them; empty for files beside the recordings. encoding, tier: as for `read_labels`."""

    def __init__(self, places: Sequence[str], encoding: str | None = None, tier: str = "") -> None:
        self._places, self._encoding, self._tier = places, encoding, tier
        self._files = [read_labels(path, encoding, tier) for place in places for path in _below(place)]
        self._used: set[tuple[str, str]] = set()
        self._by_name: dict[str, tuple[LabelFile, str]] = {}
        for file in self._files:
            for recording in file.of:
                name = recording or PurePath(file.path).stem
                if name in self._by_name:
                    problem = f"it labels {shown(name)}, and so does {self._by_name[name][0].path}"
                    raise InputError(problem, place=Place(file.path), remedy="Keep one of them")
                self._by_name[name] = file, recording

    def labels_of(self, gathered: CollectedFiles) -> tuple[Labels, ...]:
        """The labels of each recording. InputError if one has none."""
        only = len(gathered.names) == 1 and len(self._files) == 1 and not self._files[0].named
        labels = []
        for name in gathered.names:
            labelled = (self._files[0], "") if only else self._label_file_of(name)
            if labelled is None:
                searched = (
                    "" if self._places else f", and no {PurePath(name).stem}.csv, .rttm, .TextGrid or .txt next to it"
                )
                remedy = (
                    "Name its labels with --long-labels. For a recording without phrases, use --out, or an empty file"
                )
                raise InputError(f"there are no labels for it{searched}", place=Place(name), remedy=remedy)
            file, recording = labelled
            self._used.add((file.path, recording))
            labels.append(file.of[recording])
        self._demand_phrases(labels)
        return tuple(labels)

    def unused(self) -> list[str]:
        """Recordings that have labels, but that `labels_of` was never given."""
        every = [(file.path, recording) for file in self._files for recording in file.of]
        return [recording or path for path, recording in every if (path, recording) not in self._used]

    def _label_file_of(self, name: str) -> tuple[LabelFile, str] | None:
        path = PurePath(name.partition("::")[0])  # within an archive
        if not self._places:
            candidates = [f"{path.with_suffix('')}{ending}" for ending in (*LABELS, ".TextGrid", ".RTTM")]
            label_files = [candidate for candidate in candidates if os.path.isfile(candidate)]
            if len(label_files) > 1:
                remedy = "Name one with --long-labels"
                raise InputError(
                    f"it has several label files: {', '.join(label_files)}", place=Place(name), remedy=remedy
                )
            if not label_files:
                return None
            file = read_labels(label_files[0], self._encoding, self._tier)
            if not file.named:
                return file, ""
            places = {recording: (file, recording) for recording in file.of}
        else:
            places = self._by_name
        endings = ("/".join(path.parts[index:]) for index in range(len(path.parts)))  # the longest first
        for key in (name, *endings, path.stem):
            if key in places:
                return places[key]
        same_names = [key for key in places if PurePath(key).name == path.name]
        if len(same_names) > 1:
            problem = f"the labels of {shown(same_names[0])} and {shown(same_names[1])} may both be its"
            raise InputError(problem, place=Place(name), remedy="Name recordings in the labels as the list does")
        return places[same_names[0]] if same_names else None

    def _demand_phrases(self, label_lists: Sequence[Labels]) -> None:
        every = [label for labels in label_lists for label in labels]
        named_count = sum(bool(label.phrase) for label in every)
        if 0 < named_count < len(every):
            nameless = next(label for label in every if not label.phrase)
            start, nameless_count = exact(nameless.start_s, 9), len(every) - named_count
            problem = f"{named_count} labels name a phrase, and {nameless_count} do not, such as the one at {start} s"
            raise InputError(problem, remedy="Name the phrase of every label, or of none: then any phrase counts")


def _below(place: str) -> list[str]:
    if not os.path.isdir(place):
        return [place]
    inside = sorted(str(path) for path in Path(place).rglob("*") if path.suffix.lower() in LABELS)
    if not inside:
        raise InputError("no label files were found", place=Place(place), remedy=f"Supported: {', '.join(LABELS)}")
    return inside
