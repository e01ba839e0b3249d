"""Offline evaluation: files of audio, what an engine found in them, and the settings of a run.

Source of the terms: seed snsr-eval-batch. Positions are samples at the engine's rate, from the start of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.model.frozen import frozen
from harness.model.stimulus import SoundCondition
from harness.model.understanding import Slot

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


TOLERANCE_S = 1.0
INLINE = "text:"
"""Start of a reference that is the text itself, not the path of its file."""
PHRASE = "phrase"
"""Name of the column with the phrases of labels, in tables."""


class ListKind(StrEnum):
    """The list that a file is from, by the option that names it: -i, --oov, -c or --long, in this order."""

    INV = "inv"
    OOV = "oov"
    REFERENCED = "referenced"
    LABELLED = "labelled"


class RejectReason(StrEnum):
    """Why a file is out of every numerator, denominator and total of hours; the values are the words of the log."""

    UNREADABLE = "unreadable"
    EMPTY = "empty"
    SILENT = "no sound"
    SHORT = "shorter than the lead-in"
    RATE = "wrong rate"
    CHANNELS = "wrong channels"
    ENCODING = "wrong encoding"
    REFERENCE = "unreadable reference"
    TWICE = "listed twice"
    BOTH = "listed in both lists"
    ERROR = "engine error"
    CRASH = "engine crash"
    HANG = "engine hang"


class LeadInRef(StrEnum):
    """Which end of a detection decides whether it lies in the lead-in."""

    END = "end"
    START = "start"


@frozen
class LabelledPhrase:
    """A phrase in a long recording.

    - start_s, end_s: in seconds from the start of the recording.
    - phrase: "" stands for any phrase of the engine.
    - traits: (column, value), such as its talker.
    """

    start_s: float
    end_s: float
    phrase: str = ""
    traits: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.start_s <= self.end_s:
            raise ValueError(f"a phrase cannot go from {self.start_s} to {self.end_s}")


@frozen
class ListedFile:
    """A file that a list names.

    - number: its place among the files of the list, from 0.
    - line: its line, from 1.
    - listed: the file as the list and the log name it.
    - path: its absolute path, or an address in a store.
    - reference: for a REFERENCED file, the path of its text, or INLINE followed by the text.
    - rejected: why it was rejected before it was opened (listed twice, for example); None if it was not.
    - labels: for a LABELLED file, its phrases in order of time.
    - size: in bytes, when the list was read; 0 if unknown.
    """

    kind: ListKind
    number: int
    listed: str
    path: str
    line: int = 0
    reference: str = ""
    rejected: RejectReason | None = None
    labels: tuple[LabelledPhrase, ...] = ()
    size: int = 0

    def outcome_rejected(self, reason: RejectReason, detail: str = "", error: str = "") -> FileOutcome:
        """The outcome of this file if it is left out of all results.

        - detail: for people.
        - error: the engine's message, which becomes an ERROR line of the log.
        """
        return FileOutcome(self.kind, self.number, rejected=reason, detail=detail, error=error, labels=self.labels)


@frozen
class OfflineSpot:
    """A wake phrase that an engine detected.

    - start, end: samples; `end` is the one at which it was detected.
    - score: the detector's; None if it gives none.
    """

    phrase: str
    start: int
    end: int
    score: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a spot cannot go from {self.start} to {self.end}")


@frozen
class Said:
    """What a recogniser understood in a file.

    - text: the words; "" from a system that gives only intents and slots.
    - start, end: the samples in which it was said.
    - intents, slots: intents sorted, each once; slots in order, without their words. Both None if it recognises only
      words.
    """

    text: str
    start: int
    end: int
    score: float | None = None
    intents: tuple[str, ...] | None = None
    slots: tuple[Slot, ...] | None = None


@frozen
class FileOutcome:
    """The outcome of one listed file."""

    kind: ListKind
    number: int
    """As in `ListedFile`, like kind."""
    samples: int = 0
    rate_hz: int = 0
    """Number of samples and sample rate of the file, before resampling."""
    engine_rate_hz: int = 0
    """The rate to which positions in spots and said refer."""
    spots: tuple[OfflineSpot, ...] = ()
    said: Said | None = None
    """None if nothing was understood."""
    reference: str = ""
    rejected: RejectReason | None = None
    """Why it cannot be used, with `detail` for people. If it is used, `detail` says what was assumed about its
    length."""
    detail: str = ""
    error: str = ""
    """The engine's own message, which becomes an ERROR line; "" for none."""
    cpu_s: float = 0.0
    sha256: str = ""
    """Hash of the file's bytes; "" if not computed."""
    labels: tuple[LabelledPhrase, ...] = ()
    """Its labelled phrases, as in `ListedFile`."""
    tail_ms: int | None = None
    """Length of the quiet at its end. None if it was not measured, as with most detections, or if noise hides it."""
    silent_labels: tuple[int, ...] = ()
    """Indices of labels that do not count, since all samples in their time have the same value."""

    @property
    def seconds(self) -> float:
        """Length of the file's audio."""
        return self.samples / self.rate_hz if self.rate_hz else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTrack:
    """A detector's scores for one phrase over time.

    scores: shape (n,), float32; scores[i] was computed at sample `first_end + i · step`.
    """

    phrase: str
    scores: npt.NDArray[np.float32]
    first_end: int
    step: int


@frozen
class SpotRule:
    """How scores become detections: a score above the threshold, unless the last one above it is within the refractory
    time.

    spot_samples: assumed length of a detection, back from its end, if the engine reports only the end.
    """

    threshold: float
    refractory_samples: int
    spot_samples: int


@frozen
class OperatingPoint:
    """One of an engine's numbered operating points: 1 is the strictest."""

    number: int
    threshold: float


class EngineKind(StrEnum):
    """What an engine does.

    WAKE: detects phrases in continuous sound. The others understand one file at a time. COMMAND: commands, TRANSCRIPT:
    words, FRAME: intents and slots.
    """

    WAKE = "wake"
    COMMAND = "command"
    TRANSCRIPT = "transcript"
    FRAME = "frame"


@frozen
class OfflineModel:
    """A model that is installed for an engine.

    - name: its name after the colon in a task.
    - what: a description in one line.
    """

    name: str
    phrases: tuple[str, ...]
    licence: str
    what: str = ""


class SettingKind(StrEnum):
    """What a setting's text must be."""

    NUMBER = "number"
    WHOLE = "whole number"
    CHOICE = "choice"
    TEXT = "text"
    FILE = "file"


@frozen
class Setting:
    """A setting of an engine, given as -s name=value, or as -f name file for a FILE.

    - default: as text; "" is "the model's own".
    - what: a description in one line.
    - low, high: the limits, inclusive.
    - scores: whether scores depend on it, so that a cache must keep them apart.
    """

    name: str
    kind: SettingKind
    default: str
    what: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    scores: bool = False


@frozen
class Task:
    """What the option -t names: an engine and a model of it, with its settings.

    - engine: an entry point of `harness.offline_engines`.
    - settings: (name, value), each name once, in the order of their names; already checked.
    """

    engine: str
    model: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.engine}:{self.model}" if self.model else self.engine


@frozen
class Evaluation:
    """Everything that decides what a file's outcome is; plain data, the same in every process and on every machine.

    - resample: whether files of another rate are converted to the engine's rate.
    - continuous: whether the engine keeps its state from one out-of-vocabulary file to the next.
    - vad: whether a speech detector cuts off silence before a recogniser (-a).
    - hashes: whether each file's SHA-256 is computed.
    - cache: folder of cached scores; "" for none.
    - conditions: every file is played in each of them; file number n in condition n mod len(conditions). () plays files
      unaltered.
    - tail_s: silence that is added after each file with the phrase or a reference.
    """

    task: Task
    resample: bool = False
    continuous: bool = False
    vad: bool = False
    hashes: bool = False
    cache: str = ""
    conditions: tuple[SoundCondition, ...] = ()
    tail_s: float = 0.0

    def condition(self, number: int) -> SoundCondition | None:
        """The condition in which the file with that number is played; None if it is played unaltered."""
        condition = self.conditions[number % len(self.conditions)] if self.conditions else None
        return None if condition is None or condition.is_unaltered else condition


def file_number(number: int, conditions: int) -> int:
    """The number of a file among those of its kind, the same in every condition.

    - number: number of the file in a condition (see `Evaluation.condition`).
    - conditions: number of conditions; 0 if files are played unaltered.
    """
    return number // max(1, conditions)


@frozen
class CountingRules:
    """Everything that decides what outcomes count as.

    - count_in_vocabulary, normalise, words: the options -u, -n and -w.
    - lead_in_ms: the engine's own lead-in, or the one that the user set.
    - tolerance_s: how long after the end of a labelled phrase its detection may come.
    - phrases: the engine's phrases, normalised for comparison; labels with other phrases do not count.
    """

    count_in_vocabulary: bool = False
    normalise: bool = False
    words: bool = False
    lead_in_ms: float = 1000.0
    lead_in_ref: LeadInRef = LeadInRef.END
    tolerance_s: float = TOLERANCE_S
    phrases: tuple[str, ...] = ()


@frozen
class EngineFacts:
    """What a log records about a loaded engine.

    - fingerprint: SHA-256 over engine, version, model and those settings that scores depend on.
    - rule: how its scores become detections; None if it gives no scores.
    - operating_point: number of the one in use; None if a threshold was set, or if the engine has none.
    - carries_state: whether results depend on previous files, so that one worker must play all of them in list order.
    """

    kind: EngineKind
    version: str
    rate_hz: int
    phrases: tuple[str, ...]
    fingerprint: str
    licence: str = ""
    lead_in_ms: float = 0.0
    rule: SpotRule | None = None
    operating_point: int | None = None
    operating_points: tuple[OperatingPoint, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    carries_state: bool = False
