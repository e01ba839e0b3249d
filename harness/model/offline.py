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
PHRASE = "phrase"
"""The column that the phrases of labels make."""
"""Start of a reference that is the text itself, not the path of its file."""


class ListKind(StrEnum):
    """Which list a file stands in: -i, --oov, -c or --long."""

    INV = "inv"
    OOV = "oov"
    REFERENCED = "referenced"
    LABELLED = "labelled"


class RejectReason(StrEnum):
    """Why a file is out of every numerator, denominator and hour total; the words are those of the log."""

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
    """Which end of a spot decides whether it lies in the lead-in."""

    END = "end"
    START = "start"


@frozen
class LabelledPhrase:
    """A phrase in a long recording, in seconds from its start. phrase: "" for any phrase of the engine.

    traits: what else is known of it, as (column, value), the talker for example."""

    start_s: float
    end_s: float
    phrase: str = ""
    traits: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.start_s <= self.end_s:
            raise ValueError(f"a phrase cannot go from {self.start_s} to {self.end_s}")


@frozen
class ListedFile:
    """A line of a list. number: its place in its list, from 0 (lines without a file count not). path: where it was
    found, absolute, or an address of a store; listed: as the list has it, which is what the log calls it. reference:
    of a REFERENCED file, the path of its text, or INLINE and the text. rejected: found wrong before it was opened
    (listed twice, say). labels: of a LABELLED file, in order of time. size: in bytes when it was listed, 0 if unknown.
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
        """The outcome of a file that is left out of all results; detail is for people, error makes an ERROR line."""
        return FileOutcome(self.kind, self.number, rejected=reason, detail=detail, error=error, labels=self.labels)


@frozen
class OfflineSpot:
    """A wake phrase that was found. end: the sample at which it was known; score: the detector's, or None."""

    phrase: str
    start: int
    end: int
    score: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a spot cannot go from {self.start} to {self.end}")


@frozen
class Said:
    """What a recogniser understood in a file, and where.

    intents: sorted, each once; slots: in order, without places in words. Both None from a recogniser of words. A system
    of frames may give no text ("").
    """

    text: str
    start: int
    end: int
    score: float | None = None
    intents: tuple[str, ...] | None = None
    slots: tuple[Slot, ...] | None = None


@frozen
class FileOutcome:
    """What came of one file; exactly one a listed file.

    - samples, rate_hz: of the file before resampling, exact; spots and said are at engine_rate_hz.
    - rejected: why it cannot be used, with `detail` for people; of a file that is used, `detail` says what was assumed
      about its length.
    - error: the engine's own words, which make an ERROR line.
    - said: None where nothing was understood.
    - sha256: of the file's bytes, if computed.
    - labels: of the file.
    - tail_ms: the quiet at the end of a file; None if it was not measured, as with most detections, or if noise hides
      it.
    - silent_labels: places of labels in whose time every sample has the same value, so that they do not count.
    """

    kind: ListKind
    number: int
    samples: int = 0
    rate_hz: int = 0
    engine_rate_hz: int = 0
    spots: tuple[OfflineSpot, ...] = ()
    said: Said | None = None
    reference: str = ""
    rejected: RejectReason | None = None
    detail: str = ""
    error: str = ""
    cpu_s: float = 0.0
    sha256: str = ""
    labels: tuple[LabelledPhrase, ...] = ()
    tail_ms: int | None = None
    silent_labels: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """Length of the file's audio."""
        return self.samples / self.rate_hz if self.rate_hz else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTrack:
    """A detector's scores over time, shape (n,), float32: scores[i] was known at sample `first_end + i · step`."""

    phrase: str
    scores: npt.NDArray[np.float32]
    first_end: int
    step: int


@frozen
class SpotRule:
    """How scores become spots: above the threshold, and not within the refractory time of the last score above it.

    spot_samples: assumed length of a spot, back from its end, if the engine reports only the end.
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
    """WAKE finds phrases in sound that goes on; the others understand one file at a time. FRAME: intents and slots."""

    WAKE = "wake"
    COMMAND = "command"
    TRANSCRIPT = "transcript"
    FRAME = "frame"


@frozen
class OfflineModel:
    """A model that an engine has here. name: what stands after the colon of a task; what: a line for people."""

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
    """A setting of an engine, by -s name=value, or by -f name file for a FILE. low, high: inclusive.

    default: as text; "" is "the model's own". scores: whether scores depend on it, so that a cache keeps them apart.
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
    """What -t names: an engine (an entry point of `harness.offline_engines`) and a model of it, with its settings.

    settings: (name, value), each name once, in the order of their names; they have been checked.
    """

    engine: str
    model: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.engine}:{self.model}" if self.model else self.engine


@frozen
class Evaluation:
    """All that decides what a file's outcome is; plain data, the same in every process and on every machine.

    - resample: files of another rate are brought to the engine's.
    - continuous: the engine's state is carried over the out-of-vocabulary files.
    - vad: a speech detector cuts silence off before a recogniser (-a).
    - hashes: work out each file's sha256.
    - cache: folder of cached scores, or "".
    - conditions: in each of which every file is played; the file of number n in condition n mod len(conditions). () for
      files as they are.
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
        """The condition in which the file of that number is played; None for the file as it is."""
        condition = self.conditions[number % len(self.conditions)] if self.conditions else None
        return None if condition is None or condition.is_unaltered else condition


def file_number(number: int, conditions: int) -> int:
    """The number of a file among those of its kind, whatever the condition that this number stands for.

    conditions: of the evaluation, in each of which every file is there, one after the other; 0 for files as they are.
    """
    return number // max(1, conditions)


@frozen
class CountingRules:
    """All that decides what outcomes count as: -u, -n, -w, lead-in, labels.

    lead_in_ms: the engine's own, or the one set. tolerance_s: how long after the end of a labelled phrase its detection
    may come. phrases: those of the engine, as compared; labels of others do not count."""

    count_in_vocabulary: bool = False
    normalise: bool = False
    words: bool = False
    lead_in_ms: float = 1000.0
    lead_in_ref: LeadInRef = LeadInRef.END
    tolerance_s: float = TOLERANCE_S
    phrases: tuple[str, ...] = ()


@frozen
class EngineFacts:
    """What a log says of a loaded engine. fingerprint: sha256 over engine, version, model and settings that scores
    depend on. operating_point: None where a threshold was set, or there is none.

    carries_state: whether results depend on previous files, so that one worker plays all of them in list order."""

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
