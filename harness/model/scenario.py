"""A scenario as it is after reading: names resolved, defaults filled in, paths absolute and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from harness.model.stimulus import NoiseSpec, Utterance, VoiceSpec


class Evidence(StrEnum):
    """Where the word on "recognised or not" comes from.

    AUTO: the device when its profile reports transcripts, else the operator. NONE: nobody is asked, every response
    counts, and recognition is recorded as not assessed.
    """

    AUTO = "auto"
    DEVICE = "device"
    OPERATOR = "operator"
    NONE = "none"


class Normalisation(StrEnum):
    """How reference and transcript are made comparable (words only; recorded with every figure).

    SPOKEN is PLAIN with numbers, contractions and "per cent" written in one way.
    """

    VERBATIM = "verbatim"
    PLAIN = "plain"
    SPOKEN = "spoken"


@dataclass(frozen=True, slots=True)
class RepromptRule:
    """When a query is said again, and for how long an answer is waited for (seconds unless named)."""

    max_attempts: int = 3
    context_wait_s: float = 5.0
    response_timeout_s: float = 8.0
    response_max_s: float = 30.0
    end_silence_ms: int = 800
    evidence_wait_s: float = 2.0
    operator_wait_s: float = 60.0
    max_interruptions: int = 5


@dataclass(frozen=True, slots=True)
class CloseDialogue:
    """How a dialogue that the device may have left open is ended before anything else is asked.

    say: a text spoken by the trial's voice (no wake phrase); None: silence for wait_s, until the device gives up.
    """

    say: str | None = None
    wait_s: float = 8.0


@dataclass(frozen=True, slots=True)
class Query:
    """A stimulus of the scenario: what is asked, and what a device should have heard."""

    id: str
    utterance: Utterance
    reference: str
    alternatives: tuple[str, ...] = ()
    voice: VoiceSpec | None = None


@dataclass(frozen=True, slots=True)
class TrialTemplate:
    """One entry under `trials:`, before matrix and repetitions are worked out; None means "as in defaults"."""

    id: str
    query: str
    repeat: int = 1
    device: str | None = None
    wake: bool = True
    voice: VoiceSpec | None = None
    level_dbfs: float | None = None
    gap_ms: int | None = None
    evidence: Evidence | None = None
    reprompt: RepromptRule | None = None
    close_dialogue: CloseDialogue | None = None
    query_class: str = ""
    core_capability: bool = False
    note: str = ""


AxisName = Literal["voice", "level_dbfs", "gap_ms", "position", "noise"]
AxisValue = str | float | int | VoiceSpec | NoiseSpec | None


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the matrix; labels are what tables show for the values, one for one.

    Value types: voice VoiceSpec; level_dbfs float; gap_ms int; noise NoiseSpec or None (quiet); position str, the
    position of one of the bench's loudspeakers.
    """

    name: AxisName
    values: tuple[AxisValue, ...]
    labels: tuple[str, ...]


class Order(StrEnum):
    LISTED = "listed"
    SHUFFLED = "shuffled"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every trial is run once for each combination of the axes, less those excluded (axis name → label)."""

    axes: tuple[Axis, ...] = ()
    exclude: tuple[tuple[tuple[str, str], ...], ...] = ()
    order: Order = Order.LISTED
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What must hold for exit status 0; None: not asked. Shares are 0–1, of the trials that were decided."""

    min_recognised_share: float | None = None
    min_first_attempt_share: float | None = None
    max_latency_p95_ms: float | None = None
    max_inconclusive: int | None = None
    max_interrupted: int | None = None


class Need(StrEnum):
    """What a scenario may ask of a bench."""

    LOUDSPEAKER = "loudspeaker"
    MICROPHONE = "microphone"
    TRANSCRIPTS = "transcripts"
    WAKE_EVENTS = "wake_events"
    OPERATOR = "operator"
    MONITOR = "monitor"
    NOISE = "noise"
    POSITIONS = "positions"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What trials use unless they say otherwise."""

    voice: VoiceSpec = field(default_factory=VoiceSpec)
    level_dbfs: float = -26.0
    gap_ms: int = 250
    noise: NoiseSpec | None = None
    evidence: Evidence = Evidence.AUTO
    reprompt: RepromptRule = field(default_factory=RepromptRule)
    close_dialogue: CloseDialogue | None = None
    between_trials_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Recognised:
    """When a transcript counts as right: at most `wer` errors a reference word after `normalisation`."""

    normalisation: Normalisation = Normalisation.SPOKEN
    wer: float = 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario file. `sha256` is of the file's bytes; `path` is absolute."""

    id: str
    title: str
    path: str
    sha256: str
    queries: tuple[Query, ...]
    trials: tuple[TrialTemplate, ...]
    tags: tuple[str, ...] = ()
    defaults: Defaults = field(default_factory=Defaults)
    recognised: Recognised = field(default_factory=Recognised)
    matrix: Matrix = field(default_factory=Matrix)
    limits: Limits = field(default_factory=Limits)
    needs: tuple[Need, ...] = ()
    seed: int = 0
