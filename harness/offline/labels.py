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
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePath

from harness.base.text_file import COMMENT, CsvRows, Problems, read_text, separator_of, shown, without_mark
from harness.base.user_text import to_nfc
from harness.model.errors import InputError, Place, did_you_mean, nearest
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact
from harness.model.offline import LabelledPhrase
from harness.offline.figures.phrase_matching import comparable_phrase
from harness.offline.file_sources import CollectedFiles
from harness.sound.manifests import AUDIO

LABEL_ENDINGS = (".csv", ".tsv", ".rttm", ".textgrid", ".txt")
_START = ("start", "start_s", "begin", "begin_s", "onset", "from")
_END = ("end", "end_s", "stop", "stop_s", "offset", "to")
_DURATION = ("duration", "duration_s", "dur")
_PHRASE = ("phrase", "keyword", "label", "text", "word")
_NONE = "<NA>"
_RTTM_PHRASES = ("LEXEME", "SPEAKER")
_RTTM_OTHERS = ("SEGMENT", "NOSCORE", "NO_RT_METADATA", "NON-LEX", "NON-SPEECH", "FILLER", "EDIT", "IP", "SU", "CB",
                "A/P", "SPKR-INFO")  # fmt: skip
_CSV_REMEDY = "Use the header `audio,start,end,phrase` (`audio` and `phrase` are optional), with times in seconds"
_RTTM_REMEDY = "Write each label as `LEXEME FILE 1 START DURATION PHRASE lex TALKER <NA>`"
_AUDACITY_REMEDY = "Separate start, end and label with tabs: 12.3<tab>13.1<tab>okay nabu"
_LENGTH_REMEDY = "Label the phrase from its beginning to its end"
TIER = "tier"
"""Name of the trait that holds the tier of a label."""
_GRID_REMEDY = "Save it in Praat with File > Save as text file"
_GRID_TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S)|\S+')
Labels = tuple[LabelledPhrase, ...]


@frozen
class LabelFile:
    """A file of labels.

    labels: those of each recording in order of time, by the name of the recording in the file, in NFC. The name is ""
    if the file does not name it.
    """

    path: str
    labels: dict[str, Labels]

    @property
    def names_recordings(self) -> bool:
        """Whether the file names its recordings. If not, it belongs to the recording that has its own name."""
        return "" not in self.labels


def read_labels(path: str, encoding: str | None = None, tier: str = "") -> LabelFile:
    """Reads a file of labels.

    Raises InputError or InputProblems, with the place of each line, for anything but labels, and for labels of one
    phrase that overlap by half.

    tier: the only tier of a TextGrid that is read; "" for all.
    """
    ending = PurePath(path).suffix.lower()
    if ending not in LABEL_ENDINGS:
        remedy = "Use CSV (.csv, .tsv), RTTM (.rttm), TextGrid (.TextGrid) or Audacity labels (.txt)"
        raise InputError("labels cannot be read from this type of file", place=Place(path), remedy=remedy)
    if ending == ".textgrid":
        encoding = _grid_encoding(path) or encoding
    text = read_text(Path(path), encoding, may_be_empty=True, as_written=ending in _TABLES)
    if not text.strip():  # a recording without phrases
        return LabelFile(path, {"": ()})
    problems = Problems(path)
    labels: dict[str, list[_LabelLine]] = {}
    first_lines: dict[str, dict[str, int]] = {}
    """By name in NFC: its spellings in the file, with the first line of each; 0 if unknown."""
    if ending not in (*_TABLES, ".rttm"):
        labels[""] = []  # such a file never names its recording, also if it has no labels
    match ending:
        case ".csv" | ".tsv":
            rows = _csv_labels(text, problems)
        case ".rttm":
            rows = _rttm_labels(text, problems)
        case ".textgrid":
            rows = _grid_labels(text, problems, tier)
        case _:
            rows = _audacity_labels(text, problems)
    for recording, label_line in rows:
        name = to_nfc(recording)
        first_lines.setdefault(name, {}).setdefault(recording, 0 if label_line is None else label_line.number)
        label_lines = labels.setdefault(name, [])
        if label_line is not None:
            label_lines.append(label_line)
    for name, lines in first_lines.items():
        first_line, *other_lines = lines.values()
        earlier = f" on line {first_line}" if first_line else ""
        for line in other_lines:
            problem = f"the recording {shown(name)} is spelt with other characters{earlier}, although it looks the same"
            problems.add(line, 0, problem, "Use one spelling of its name")
    problems.refuse()
    for label_lines in labels.values():
        label_lines.sort(key=lambda label_line: (label_line.label.start_s, label_line.label.end_s))
        _refuse_overlaps(label_lines, problems)
    problems.refuse()
    labels_by_name = {}
    for name, label_lines in labels.items():
        labels_by_name[name] = tuple(label_line.label for label_line in label_lines)
    return LabelFile(path, labels_by_name)


_TABLES = (".csv", ".tsv")


@frozen
class _LabelLine:
    """A label, and the number of its line."""

    label: LabelledPhrase
    number: int


def _refuse_overlaps(label_lines: Sequence[_LabelLine], problems: Problems) -> None:
    """Adds a problem for the first label that overlaps an earlier one by at least half of the shorter of the two.
    label_lines: in order of time."""
    open_lines: list[_LabelLine] = []  # those whose label ends after the beginning of the later one
    overlaps: list[tuple[_LabelLine, _LabelLine]] = []
    for later in label_lines:
        open_lines = [earlier for earlier in open_lines if earlier.label.end_s > later.label.start_s]
        overlapped = next((earlier for earlier in open_lines if _overlap_by_half(earlier.label, later.label)), None)
        if overlapped is not None:
            overlaps.append((overlapped, later))
        open_lines.append(later)
    if not overlaps:
        return
    first_line, second_line = sorted(overlaps[0], key=lambda label_line: label_line.number)
    first, second = first_line.label, second_line.label
    problem = (
        f"this label ({_label_text(second)}) overlaps the label on line {first_line.number} ({_label_text(first)})"
    )
    if len(overlaps) > 1:
        problem += f". The file has {counted(len(overlaps) - 1, 'more overlap')}"
    tier = _tier(first)
    remedy = "Remove one of the two: a phrase has only one label"
    if tier != _tier(second):
        remedy = f"Choose one tier, such as --tier {shlex.quote(tier)}"
    problems.add(second_line.number, 0, problem, remedy)


def _overlap_by_half(earlier: LabelledPhrase, later: LabelledPhrase) -> bool:
    """Whether two labels may be of the same phrase, and overlap by at least half of the shorter one."""
    common_s = min(earlier.end_s, later.end_s) - later.start_s
    shorter_s = min(earlier.end_s - earlier.start_s, later.end_s - later.start_s)
    phrases = {comparable_phrase(label.phrase) for label in (earlier, later) if label.phrase}
    return len(phrases) < 2 and common_s >= shorter_s / 2


def _tier(label: LabelledPhrase) -> str:
    return dict(label.traits).get(TIER, "")


def _label_text(label: LabelledPhrase) -> str:
    text = f"{exact(label.start_s, 9)} to {exact(label.end_s, 9)} s"
    tier = _tier(label)
    return f"{text}, tier {shown(tier)}" if tier else text


def _parse_label(
    problems: Problems, line: int, start: str, end: str, phrase: str, remedy: str, *, is_duration: bool = False,
    traits: tuple[tuple[str, str], ...] = (),
) -> _LabelLine | None:  # fmt: skip
    """A label from the texts of its fields, with its line. None after a problem, which is added to `problems`.

    is_duration: whether `end` is a duration.
    """
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
    start_s, end_s = times
    if is_duration:
        end_s = round(start_s + end_s, 9)  # without the error of adding floats
    if end_s < start_s:
        problems.add(line, 0, f"the phrase ends at {end} s, before it begins at {start} s", remedy)
        return None
    if end_s == start_s:
        problems.add(line, 0, f"the label at {start} s has no length", _LENGTH_REMEDY)
        return None
    return _LabelLine(LabelledPhrase(start_s, end_s, " ".join(phrase.split()), traits), line)


_ReadLabels = Iterator[tuple[str, _LabelLine | None]]
"""Name of a recording, and a label with its line; None instead for a recording that is named without a phrase."""


def _csv_labels(text: str, problems: Problems) -> _ReadLabels:
    """Reads a table with a header. A row with a recording but no times says that it has no phrase."""
    table = CsvRows.of(text, problems, separator_of(problems.file))
    rows = iter(table)
    first_line, fields = next(rows, (1, []))
    problems.refuse()
    header = [name.strip().lower() for name in fields]
    columns = _csv_columns(header, first_line, problems)
    if columns is None:
        return
    audio = columns.audio
    for line, row in rows:
        if len(row) != len(header):
            problem = f"{counted(len(row), 'field')}, but the header has {len(header)}"
            problems.add(line, 0, problem, "Put fields that contain a comma in quotes")
            continue
        name = "" if audio is None else row[audio].strip()
        if audio is not None and not name:
            problems.add(line, 0, "the row does not name a recording", _CSV_REMEDY)
        elif audio is not None and not (row[columns.start].strip() or row[columns.end].strip()):
            yield name, None
        else:
            traits = tuple((header[index], " ".join(without_mark(row[index]).split())) for index in columns.traits)
            phrase = "" if columns.phrase is None else without_mark(row[columns.phrase])
            start, end = table.number(row[columns.start]), table.number(row[columns.end])
            yield (
                name,
                _parse_label(
                    problems, line, start, end, phrase, _CSV_REMEDY, is_duration=columns.end_is_duration, traits=traits
                ),
            )
    if audio is None:
        yield "", None  # also if the table has no rows


@frozen
class _CsvColumns:
    """Indices of the columns of a table of labels; None without such a column."""

    audio: int | None
    start: int
    end: int
    end_is_duration: bool
    phrase: int | None
    traits: tuple[int, ...]


def _csv_columns(header: Sequence[str], line: int, problems: Problems) -> _CsvColumns | None:
    """The columns that a header in lower case names. None after a problem, which is added to `problems`."""
    for index, name in enumerate(header):
        if name and name in header[:index]:
            problems.add(line, 0, f"two columns are named {shown(name)}", "Rename one of the columns")
            return None

    def column(names: Sequence[str]) -> int | None:
        return next((header.index(name) for name in names if name in header), None)

    audio, start, phrase, end = column(AUDIO), column(_START), column(_PHRASE), column(_END)
    end_is_duration = end is None
    if end is None:
        end = column(_DURATION)
    if start is None or end is None:
        problem = f"there is no column for the {'start' if start is None else 'end'} of the phrases"
        problems.add(line, 0, problem, _CSV_REMEDY)
        return None
    traits = tuple(index for index, name in enumerate(header) if name and index not in (audio, start, end, phrase))
    if phrase is None:
        for name in (header[index] for index in traits):
            # A misspelt column of phrases must not be taken for a trait: any phrase would then count.
            if difflib.get_close_matches(name, _PHRASE, n=1, cutoff=0.8):
                remedy = f"{did_you_mean(name, _PHRASE)}{_CSV_REMEDY}"
                problems.add(line, 0, f"the column {name!r} is not known", remedy)
                return None
    return _CsvColumns(audio, start, end, end_is_duration, phrase, traits)


def _rttm_labels(text: str, problems: Problems) -> _ReadLabels:
    """Reads RTTM: type, file, channel, start, duration, words, subtype, talker, and fields that are ignored."""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith(COMMENT) or fields[0].upper() in _RTTM_OTHERS:
            continue
        if fields[0].upper() not in _RTTM_PHRASES or len(fields) < 8:
            problem = f"{shown(fields[0])} is not an RTTM type" if len(fields) >= 8 else f"only {len(fields)} fields"
            problems.add(number, 1, problem, _RTTM_REMEDY)
            continue
        _, recording, _, start, duration, words, _, talker, *_ = fields
        traits: tuple[tuple[str, str], ...] = ()
        if words == _NONE:
            # Tools that label anything but talkers write the label in the place of the talker.
            phrase = "" if talker == _NONE else talker.replace("_", " ")
        else:
            phrase = words.replace("_", " ")
            if talker != _NONE:
                traits = (("talker", talker),)
        yield (
            recording,
            _parse_label(problems, number, start, duration, phrase, _RTTM_REMEDY, is_duration=True, traits=traits),
        )


def _audacity_labels(text: str, problems: Problems) -> _ReadLabels:
    """Reads a label track: start, end and text, with tabs between."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("\\"):  # such a line has the frequencies of the label above
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            problems.add(number, 1, f"{shown(line)} is not an Audacity label", _AUDACITY_REMEDY)
            continue
        times = [field.replace(",", ".") for field in fields[:2]]  # as Audacity writes them in some languages
        yield "", _parse_label(problems, number, times[0], times[1], " ".join(fields[2:]), _AUDACITY_REMEDY)


def _grid_encoding(path: str) -> str | None:
    """The encoding of a TextGrid; None for UTF-8. Praat writes UTF-16 if a text has letters beyond ASCII."""
    try:
        with open(path, "rb") as file:
            return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else None
    except OSError:
        return None  # reported when it is read


class _GridReader:
    """Takes the values of a TextGrid one by one. Raises InputError if the next value is of another kind."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._values = list(_grid_values(text))
        self._index = 0
        self._last_line = text.count("\n") + 1

    def text(self) -> tuple[int, str]:
        """The next value and its line."""
        return self._take(str, "a text in quotes")

    def number(self) -> tuple[int, str]:
        """The next value, as it is written, and its line."""
        return self._take(float, "a number")

    def count(self) -> int:
        line, value = self.number()
        if not 0 <= float(value) <= len(self._values):
            raise InputError(f"{shown(value)} is not a count", place=Place(self._file, line), remedy=_GRID_REMEDY)
        return int(float(value))

    def _take(self, kind: type[str] | type[float], noun: str) -> tuple[int, str]:
        line, value_kind, value = self._last_line, None, ""
        if self._index < len(self._values):
            line, value_kind, value = self._values[self._index]
        if value_kind is not kind:
            problem = f"expected {noun}, but found {shown(value) if value_kind else 'the end of the file'}"
            raise InputError(problem, place=Place(self._file, line), remedy=_GRID_REMEDY)
        self._index += 1
        return line, value


def _grid_labels(text: str, problems: Problems, only_tier: str) -> _ReadLabels:
    """Reads both text formats of a TextGrid: the short one has the values of the long one without their names.
    only_tier: the tier that is read; "" for all."""
    grid = _GridReader(text, problems.file)
    try:
        _, file_type = grid.text()
        _, object_class = grid.text()
        if (file_type, object_class) != ("ooTextFile", "TextGrid"):
            raise InputError("this is not a TextGrid", place=Place(problems.file, 1), remedy=_GRID_REMEDY)
        grid.number()  # begin and end of the grid
        grid.number()
        tier_count = grid.count()
        tiers: list[str] = []
        has_intervals = False
        for _ in range(tier_count):
            _, tier_class = grid.text()
            is_interval = tier_class == "IntervalTier"
            _, tier = grid.text()
            tiers.append(tier)
            grid.number()  # begin and end of the tier
            grid.number()
            for _ in range(grid.count()):
                line, start = grid.number()
                end = grid.number()[1] if is_interval else start
                phrase = grid.text()[1]
                if only_tier not in ("", tier):
                    continue
                has_intervals |= is_interval
                if is_interval and phrase.strip():
                    yield "", _parse_label(problems, line, start, end, phrase, _GRID_REMEDY, traits=((TIER, tier),))
        if only_tier and only_tier not in tiers:
            problems.add(1, 0, f"there is no tier {shown(only_tier)}", nearest(only_tier, tiers, listed="Tiers"))
        elif tier_count and not has_intervals:
            problems.add(
                1,
                0,
                "no tier has intervals, and points do not mark the end of a phrase",
                "Label phrases as intervals in Praat",
            )
    except InputError as error:
        problems.add_error(error)


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
    """Finds the labels of recordings, in files that name the recordings or have their names.

    places: label files, and folders with them; empty for files beside the recordings. encoding, tier: as for
    `read_labels`.
    """

    def __init__(self, places: Sequence[str], encoding: str | None = None, tier: str = "") -> None:
        self._places, self._encoding, self._tier = places, encoding, tier
        self._files = [read_labels(path, encoding, tier) for place in places for path in _label_files_in(place)]
        self._used: set[tuple[str, str]] = set()
        self._by_name: dict[str, tuple[LabelFile, str]] = {}
        for file in self._files:
            for recording in file.labels:
                name = recording or to_nfc(PurePath(file.path).stem)
                if name in self._by_name:
                    problem = f"{shown(name)} also has labels in {self._by_name[name][0].path}"
                    raise InputError(problem, place=Place(file.path), remedy="Remove the labels from one of the files")
                self._by_name[name] = file, recording

    def labels_of(self, files: CollectedFiles) -> tuple[Labels, ...]:
        """The labels of each recording. Raises InputError if one has none."""
        # One file without names belongs to one recording, whatever both are called.
        is_pair = len(files.names) == 1 and len(self._files) == 1 and not self._files[0].names_recordings
        labels = []
        for name in files.names:
            source = (self._files[0], "") if is_pair else self._label_file_of(name)
            if source is None:
                searched = ""
                if not self._places:
                    searched = f": there is no {PurePath(name).stem}.csv, .rttm, .TextGrid or .txt next to it"
                raise InputError(
                    f"no labels were found for this recording{searched}",
                    place=Place(name),
                    remedy="Add its label file with --long-labels. "
                    "For a recording without phrases, use --out or an empty label file",
                )
            file, recording = source
            self._used.add((file.path, recording))
            labels.append(file.labels[recording])
        self._demand_phrases_of_all_or_none(labels)
        return tuple(labels)

    def unused(self) -> list[str]:
        """Recordings that have labels, but that `labels_of` was never given."""
        labelled = [(file.path, recording) for file in self._files for recording in file.labels]
        return [recording or path for path, recording in labelled if (path, recording) not in self._used]

    def _label_file_of(self, name: str) -> tuple[LabelFile, str] | None:
        """The file that labels a recording, and the recording's name in it; None without one."""
        path = PurePath(name.partition("::")[0])  # of a file in an archive: its name there
        if not self._places:
            paths = [f"{path.with_suffix('')}{ending}" for ending in (*LABEL_ENDINGS, ".TextGrid", ".RTTM")]
            label_files = [candidate for candidate in paths if os.path.isfile(candidate)]
            if len(label_files) > 1:
                remedy = "Choose one with --long-labels"
                raise InputError(
                    f"this recording has several label files: {', '.join(label_files)}",
                    place=Place(name),
                    remedy=remedy,
                )
            if not label_files:
                return None
            file = read_labels(label_files[0], self._encoding, self._tier)
            if not file.names_recordings:
                return file, ""
            recording = _named_recording(file.labels, name)
            if recording is None:
                problem, remedy = (
                    f"no label in this file is for {shown(path.name)}",
                    "Use the name of the sound file in the labels",
                )
                raise InputError(problem, place=Place(file.path), remedy=remedy)
            return file, recording
        recording = _named_recording(self._by_name, name)
        return None if recording is None else self._by_name[recording]

    def _demand_phrases_of_all_or_none(self, label_lists: Sequence[Labels]) -> None:
        all_labels = [label for labels in label_lists for label in labels]
        named_count = sum(bool(label.phrase) for label in all_labels)
        if 0 < named_count < len(all_labels):
            nameless = next(label for label in all_labels if not label.phrase)
            start, nameless_count = exact(nameless.start_s, 9), len(all_labels) - named_count
            problem = f"{named_count} labels name a phrase, and {nameless_count} do not, such as the one at {start} s"
            raise InputError(problem, remedy="Name the phrase in every label, or in none to count any phrase")


def _named_recording(labelled_names: Collection[str], name: str) -> str | None:
    """The name by which labels call a recording; None if they do not.

    Raises InputError if two of their names may be its. name: that of the recording in its list.
    """
    name = to_nfc(name)  # some file systems and tools write é as two characters
    path = PurePath(name.partition("::")[0])
    endings = ("/".join(path.parts[index:]) for index in range(len(path.parts)))  # the longest first
    for key in (name, *endings, path.stem):
        if key in labelled_names:
            return key
    same_names = [key for key in labelled_names if PurePath(key).name == path.name]
    if len(same_names) > 1:
        problem = (
            f"the labels are ambiguous: {shown(same_names[0])} and {shown(same_names[1])} both match this recording"
        )
        raise InputError(problem, place=Place(name), remedy="Use the same names in the labels as in the list")
    return same_names[0] if same_names else None


def _label_files_in(place: str) -> list[str]:
    if not os.path.isdir(place):
        return [place]
    inside = sorted(str(path) for path in Path(place).rglob("*") if path.suffix.lower() in LABEL_ENDINGS)
    if not inside:
        raise InputError(
            "no label files were found", place=Place(place), remedy=f"Supported: {', '.join(LABEL_ENDINGS)}"
        )
    return inside
