"""The wake-evaluation log: its lines (`KEY [subkey] [detail]`, plain text) and the totals that follow from them.

The keys are those of the manual (source: seed snsr-eval-batch, log file format). Our additions are `INFO x-…` and
`x-…=`. docs/reference/wake-log.md describes every line; `wake_log_reading` reads them.
"""

from __future__ import annotations

import re
import shlex
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, Self

from harness.model.frozen import frozen
from harness.model.numbers import NOTHING, exact
from harness.model.transcript import WordCounts

ACCEPTED = ("INVTA", "CMDTA", "STTTA")
MISSED = ("INVFR", "CMDFR", "STTFR")
SUBSTITUTED = ("CMDSB", "STTSB")
WITH_REFERENCE = ("CMDTA", "CMDSB", "CMDFR", "STTTA", "STTSB", "STTFR")
WITH_WORDS = ("STTTA", "STTSB", "STTFR")


@frozen
class StatedWords:
    """Numbers of reference words and of word errors, as lines of a log state them. They need not be consistent."""

    words: int = 0
    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0


def wake_totals(
    lines: Mapping[str, int], hours: float, *, count_in_vocabulary: bool, words: StatedWords | WordCounts
) -> dict[str, float]:
    """The totals of a log by their keys, in the log's order. Ratios and WER are per cent. Rates without data are left
    out.

    - lines: number of lines with each key.
    - hours: hours in which false accepts were counted.
    - words: sums over the STT lines. Source: seed snsr-eval-batch, log file format.
    """

    def count(*keys: str) -> int:
        return sum(lines.get(key, 0) for key in keys)

    missed, accepted = count(*MISSED), count(*ACCEPTED)
    wrong = missed + count(*SUBSTITUTED)
    files = wrong + accepted
    false_accepts = count("OOVFA", "INVFA") if count_in_vocabulary else count("OOVFA")
    totals: dict[str, float] = {}
    if hours or count("OOVFA"):
        totals["FACOUNT"] = false_accepts
    if hours:
        totals["FARATE"] = false_accepts / hours
    if files:
        totals |= {"FRCOUNT": missed, "FRRATIO": 100 * missed / files}
        if count(*WITH_REFERENCE):
            totals |= {"FR+SBCOUNT": wrong, "FR+SBRATIO": 100 * wrong / files}
        totals["TACOUNT"] = accepted
    if count(*WITH_WORDS):
        if words.words:
            totals["WER"] = 100 * (words.substitutions + words.insertions + words.deletions) / words.words
        totals |= {
            "WER_WORDS": words.words,
            "WER_SUBSTITUTIONS": words.substitutions,
            "WER_INSERTIONS": words.insertions,
            "WER_DELETIONS": words.deletions,
        }
    return totals


Extras = tuple[tuple[str, str], ...]
"""(name, value) of our additions to a line, as in `x-label=3`."""


@frozen
class Spot:
    """A wake event in a file: a true accept, or a false accept in in-vocabulary or out-of-vocabulary audio. Or a
    command that was understood (CMDTA), or another one that was understood in its place (CMDSB).

    reference: the expected command; "" for a wake phrase.
    """

    key: Literal["INVTA", "INVFA", "OOVFA", "CMDTA", "CMDSB"]
    file: str
    start_ms: float
    end_ms: float
    phrase: str
    reference: str = ""
    sv_score: float = 0.0
    extras: Extras = ()


@frozen
class MissedFile:
    """A file without a true accept. reference: the expected command or text; "" for a wake phrase."""

    key: Literal["INVFR", "CMDFR", "STTFR"]
    file: str
    reference: str = ""
    extras: Extras = ()


@frozen
class SpotCount:
    """A file with several spots. count: number of all its spots."""

    file: str
    count: int
    extras: Extras = ()
    key: Literal["INVTX"] = "INVTX"


@frozen
class TranscriptLine:
    """A transcript without mismatches (STTTA) or with some (STTSB).

    - phrase: the transcript.
    - words: number of words in the reference.
    - additions: number of inserted words.
    - wer: the number as printed, in per cent or as a share; None if the reference has no words.
    """

    key: Literal["STTTA", "STTSB"]
    file: str
    start_ms: float
    end_ms: float
    phrase: str
    reference: str
    words: int
    substitutions: int
    additions: int
    deletions: int
    wer: float | None
    extras: Extras = ()

    @classmethod
    def of_counts(
        cls, file: str, span_ms: tuple[float, float], phrase: str, reference: str, counts: WordCounts, extras: Extras
    ) -> Self:
        """The line of a transcript with these word errors, its word error rate in per cent."""
        return cls(
            "STTSB" if counts.errors else "STTTA",
            file,
            *span_ms,
            phrase,
            reference,
            words=counts.words,
            substitutions=counts.substitutions,
            additions=counts.insertions,
            deletions=counts.deletions,
            wer=None if counts.wer is None else 100 * counts.wer,
            extras=extras,
        )


@frozen
class RejectedFile:
    """An unusable file, which no count includes."""

    file: str
    reason: str
    extras: Extras = ()
    key: Literal["REJECT"] = "REJECT"


@frozen
class ErrorLine:
    """An error of the engine, in its own words."""

    text: str
    key: Literal["ERROR"] = "ERROR"


WakeLogEvent = Spot | MissedFile | SpotCount | TranscriptLine | RejectedFile | ErrorLine
TOTALS = ("FACOUNT", "FARATE", "FRCOUNT", "FRRATIO", "FR+SBCOUNT", "FR+SBRATIO", "TACOUNT", "WER", "WER_WORDS",
          "WER_SUBSTITUTIONS", "WER_INSERTIONS", "WER_DELETIONS")  # fmt: skip
_FLAGS_WITH_U = re.compile(r"-[anvw]*u[anuvw]*")
"""-u, alone or among other flags."""
FORMULA = "OOVFA / oov-hours"
FORMULA_WITH_U = "(OOVFA + INVFA) / (oov-hours + inv/oov-hours)"
MAX_MISSED_NAMES = 5
DECIMALS = {"FARATE": 4, "FRRATIO": 4, "FR+SBRATIO": 4, "WER": 3}
"""Number of decimals with which these totals are written."""


@frozen
class WakeLog:
    """A whole log.

    - info: names and texts of the INFO lines, in their order; names may repeat.
    - totals: key and value of its total lines.
    - decimals: key and number of decimals of each total that was read from a file.
    """

    info: Extras = ()
    events: tuple[WakeLogEvent, ...] = ()
    totals: tuple[tuple[str, float], ...] = ()
    decimals: tuple[tuple[str, int], ...] = ()

    def about(self, name: str) -> str | None:
        """The text of the first INFO line of a name; None without one."""
        return next((detail for key, detail in self.info if key == name), None)

    def seconds(self, kind: str) -> float:
        """Seconds of audio. kind: `inv`, `oov` or `inv/oov`. Taken from the INFO line with hours, which has
        milliseconds; without one, from the line with seconds."""
        hours = self.about(f"{kind}-hours")
        if hours is not None:
            return seconds_of(hours)
        return float(self.about(f"{kind}-seconds") or 0)

    @property
    def exposure_hours(self) -> float:
        """The hours of out-of-vocabulary audio. With -u, those of in-vocabulary audio outside true accepts are
        added."""
        kinds = ("oov", "inv/oov") if self.counts_in_vocabulary else ("oov",)
        return sum(map(self.seconds, kinds)) / 3600

    @property
    def counts_in_vocabulary(self) -> bool:
        """Whether false accepts in in-vocabulary files count (-u)."""
        stated = self.about("x-count-in-vocabulary")
        if stated is not None:
            return stated == "yes"
        command_line = self.about("command-line") or ""
        try:
            words = shlex.split(command_line, posix=False)
        except ValueError:
            words = command_line.split()
        return any(_FLAGS_WITH_U.fullmatch(word) for word in words)


class LineSums:
    """Sums over the lines of files, which are added one by one. Keeps 16 bytes per file with words, and nothing of
    other files.

    - lines: number of lines with each key.
    - rejected: number of rejected files by reason.
    - missed: names of the first MAX_MISSED_NAMES missed files.
    - stated_words: sums of the words and their errors.
    - word_errors, words: for each file with words, its number of word errors, and of reference words.
    """

    def __init__(self, events: Iterable[WakeLogEvent] = ()) -> None:
        self.lines: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.missed: list[str] = []
        self.stated_words = StatedWords()
        self.word_errors, self.words = array("q"), array("q")
        for event in events:
            self.add(event)

    def add(self, event: WakeLogEvent) -> None:
        self.lines[event.key] += 1
        if isinstance(event, MissedFile) and len(self.missed) < MAX_MISSED_NAMES:
            self.missed.append(event.file)
        match event:
            case RejectedFile():
                self.rejected[event.reason] += 1
            case TranscriptLine():
                self._add_words(event.words, event.substitutions, event.additions, event.deletions)
            case MissedFile(key="STTFR"):
                # Without a result every word of the reference is a deletion.
                words = len(event.reference.split())
                self._add_words(words, 0, 0, words)

    def _add_words(self, words: int, substitutions: int, additions: int, deletions: int) -> None:
        before = self.stated_words
        self.stated_words = StatedWords(
            before.words + words,
            before.substitutions + substitutions,
            before.insertions + additions,
            before.deletions + deletions,
        )
        self.word_errors.append(substitutions + additions + deletions)
        self.words.append(words)


def computed_totals(log: WakeLog, sums: LineSums | None = None) -> dict[str, float]:
    """The totals computed from the log's own lines. Rates without data are left out. sums: the sums of the lines, if
    `log` does not contain its events."""
    line_sums = sums if sums is not None else LineSums(log.events)
    return wake_totals(
        line_sums.lines, log.exposure_hours, count_in_vocabulary=log.counts_in_vocabulary, words=line_sums.stated_words
    )


def differences(log: WakeLog, sums: LineSums | None = None) -> tuple[str, ...]:
    """Totals that differ from the sum of the log's lines, in words for people; empty for a correct log."""
    totals = computed_totals(log, sums)
    written_decimals = dict(log.decimals)
    wrong: list[str] = []
    for key, stated in log.totals:
        by_lines = totals.get(key)
        usual_decimals = DECIMALS.get(key, 0)
        decimals = min(usual_decimals, written_decimals.get(key, usual_decimals))
        # Half of the last decimal, and the rounding of floats.
        allowed = 0.51 * 10**-decimals if key in DECIMALS else 0.0
        if by_lines is None:
            if stated:
                wrong.append(f"{key} is {_total_text(stated)}, but no line counts towards it")
        elif abs(stated - by_lines) > allowed:
            wrong.append(f"{key} is {_total_text(stated)}, but its lines add up to {_total_text(by_lines)}")
    return tuple(wrong)


def _total_text(value: float) -> str:
    return exact(round(value, 4), 12)


def summary(log: WakeLog, sums: LineSums | None = None) -> str:
    """The console's last line, in the manual's form: n/a for a rate without data, no speed if the log states none."""
    totals = computed_totals(log, sums) | dict(log.totals)
    files = int(log.about("inv-files") or 0) + int(log.about("oov-files") or 0)
    hours = (log.seconds("inv") + log.seconds("oov")) / 3600
    factor = log.about("real-time-factor")
    speed = None if factor is None else f"{float(factor):.1f}"
    if "WER_WORDS" in totals:
        words = (
            f"{files} files, {hours:.3f} hr, {totals['WER_WORDS']:.0f} Words, "
            f"{totals['WER_SUBSTITUTIONS']:.0f} Substitutions, {totals['WER_INSERTIONS']:.0f} Insertions, "
            f"{totals['WER_DELETIONS']:.0f} Deletions, {_rounded_text(totals, 'WER', 3)}% WER"
        )
        return words if speed is None else f"{words}, {speed} xRT"
    # With references the percentage covers all errors.
    ratio = "FR+SBRATIO" if "FR+SBRATIO" in totals else "FRRATIO"
    nothing = "all in-vocabulary files rejected" if _all_rejected(log) else "no in-vocabulary files"
    rejects = f"{_rounded_text(totals, ratio, 2)}% FR" if ratio in totals else nothing
    detections = (
        f"{files} files, {hours:.3f} hr, {totals.get('FACOUNT', 0):.0f} FA {_rounded_text(totals, 'FARATE', 2)}/hr, "
        f"{rejects}, {totals.get('TACOUNT', 0):.0f} TA"
    )
    # The original tool spells the speed differently in its two lines.
    return detections if speed is None else f"{detections}, {speed}x RT"


def _all_rejected(log: WakeLog) -> bool:
    """Whether there was a list of in-vocabulary files, of which none is usable or left to be played."""
    has_list = any(name == "x-list" and detail.startswith(("inv ", "referenced ")) for name, detail in log.info)
    is_part = log.about("x-partial") is not None or log.about("x-shard") is not None
    return has_list and not is_part and log.about("inv-files") == "0" and log.about("rejected-files") != "0"


def _rounded_text(totals: dict[str, float], key: str, decimals: int) -> str:
    """A total as text. It is first rounded as in the log, so that the last digits of console and log agree."""
    return f"{round(totals[key], DECIMALS[key]):.{decimals}f}" if key in totals else NOTHING


def hours_text(seconds: float) -> str:
    """Seconds as H:MM:SS.sss."""
    minutes, rest_ms = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest_ms // 1000:02d}.{rest_ms % 1000:03d}"


def seconds_of(hours: str) -> float:
    """Seconds of H:MM:SS.sss. Raises ValueError for another form."""
    parts = hours.strip().split(":")
    if len(parts) != 3:
        raise ValueError(f"{hours!r} is not H:MM:SS.sss")
    return int(parts[0]) * 3600 + int(parts[1]) * 60 + float(parts[2])


def utc_text(wall_s: float) -> str:
    """A Unix time as `2024-03-01 10:00:00.123 UTC`."""
    return datetime.fromtimestamp(round(wall_s, 3), UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


NAMES = "x-names"
ESCAPED = "escaped"
"""A log with the line `INFO x-names escaped` has escapes in names and phrases. In other logs they are literal."""
UNITS = {"FARATE": "/ hr", "FRRATIO": "%", "FR+SBRATIO": "%", "WER": "%"}
KEYS_WITH_DECIMAL = frozenset({"FRCOUNT", "FR+SBCOUNT"})
"""Counts that the original tool writes with one decimal, though they are whole."""

_PLAIN = re.compile(r"[\w.:+/-]+", re.ASCII)
SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write(log: WakeLog) -> str:
    """The log's text: settings, events, totals."""
    lines = [info_line(name, detail) for name, detail in ((NAMES, ESCAPED), *log.info) if name]
    lines += [event_line(event) for event in log.events]
    lines += [total_line(key, value) for key, value in log.totals]
    return "\n".join(lines) + "\n"


def total_line(key: str, value: float) -> str:
    """One line of the totals, with the decimals and units of its key."""
    if key in DECIMALS:
        return f"{key} {value:.{DECIMALS[key]}f} {UNITS[key]}"
    return f"{key} {value:.1f}" if key in KEYS_WITH_DECIMAL else f"{key} {value:.0f}"


def info_line(name: str, detail: str) -> str:
    return f"INFO {name} {_bare(detail)}".rstrip()


def event_line(event: WakeLogEvent) -> str:
    """The line of an event, with escaped names."""
    match event:
        case Spot(key="CMDTA" | "CMDSB"):
            text = f"{_span(event)} {quoted(event.reference)} sv-score {event.sv_score:g}"
        case Spot():
            text = f"{_span(event)} sv-score {event.sv_score:g}"
        case TranscriptLine():
            wer = NOTHING if event.wer is None else f"{event.wer:.3f}"
            counts = f"{event.words}, {event.substitutions}, {event.additions}, {event.deletions}, {wer}"
            text = f"{_span(event)} {quoted(event.reference)} {counts}"
        case MissedFile(key="INVFR"):
            text = quoted(event.file)
        case MissedFile():
            text = f"{quoted(event.file)} {quoted(event.reference)}"
        case SpotCount():
            text = f"{quoted(event.file)} {event.count} spots"
        case RejectedFile():
            text = f"{quoted(event.file)} {_bare(event.reason)}"
        case ErrorLine():
            return f"ERROR {_bare(event.text)}"
    extras = ((name, value if _PLAIN.fullmatch(value) else quoted(value)) for name, value in event.extras)
    return f"{event.key} {text}" + "".join(f" {name}={value}" for name, value in extras)


def _span(event: Spot | TranscriptLine) -> str:
    return f"{quoted(event.file)} {_ms(event.start_ms)} {_ms(event.end_ms)} {quoted(event.phrase)}"


def _ms(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def quoted(text: str) -> str:
    """The text in quotes. Quotes, line ends and everything that a terminal would take for a command are escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:  # nearly every name, and far quicker
        return f'"{text}"'
    return '"' + "".join(map(_safe, text)) + '"'


def _bare(text: str) -> str:
    """A text outside of quotes, escaped as in `quoted`, but with its quotes and backslashes as they are."""
    return "".join(character if character in '"\\' else _safe(character) for character in text)


def _safe(character: str) -> str:
    if character in SHORT:
        return SHORT[character]
    if character.isprintable():
        return character
    point = ord(character)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
