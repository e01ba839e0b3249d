"""What a conductor is given to work with, and what it may be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.base.ports import Clock, Hears, Renders, SessionLog, Stimulates
from harness.model.feed import Command, StateChanged
from harness.model.observation import Observation
from harness.model.record import Clip, DecisionReached
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.trial import Trial


def _nobody() -> bool:
    return False


def _needed(trial: Trial) -> str:
    return ""


def _unexplained(seq: int) -> bool | None:
    return False


def _nothing() -> tuple[DecisionReached, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that the conductor works with, made and closed by whoever calls it.

    loudspeakers: id → driver, of every id that the plan names, connections that inject sound among them.
    transcribe(waveform, told): our own recogniser, in the background: calls told(text) once from any thread, "" when it
    fails; None without one. attended: somebody is there to answer questions. on_state, answer(command_id, ok, why): to
    the clients; called from the conductor's thread.
    on_rendered: told of each trial's sound before it is played, from the rendering thread. linger: while true after the
    plan's end, notes, judgments and re-runs are still taken. needless(trial): why a listening trial need not be played
    any more, else "". life_check_after: trials in a row without a sign of life that make a device doubtful (0: never).
    decisions: rows about sequential tests that the log lacks; asked after each listening trial.
    explained(seq): whether the wake event of that row is a stimulus's or part of an earlier one; None if still open.
    """

    loudspeakers: Mapping[str, Stimulates]
    microphone: Hears | None
    log: SessionLog
    renders: Renders
    clock: Clock
    on_state: Callable[[StateChanged], None]
    answer: Callable[[str, bool, str], None]
    attended: Callable[[], bool] = _nobody
    transcribe: Callable[[Waveform, Callable[[str], None]], None] | None = None
    recogniser_name: str = ""
    on_rendered: Callable[[Trial, RenderedStimulus], None] | None = None
    linger: Callable[[], bool] = _nobody
    between_trials_s: float = 1.0
    needless: Callable[[Trial], str] = _needed
    decisions: Callable[[], tuple[DecisionReached, ...]] = _nothing
    life_check_after: int = 0
    explained: Callable[[int], bool | None] = _unexplained


@dataclass(frozen=True, slots=True)
class Transcribed:
    """Our recogniser is done with the response of that attempt."""

    trial_id: str
    take: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The engine is asked to end; the session stays open for a resume."""

    cause: str


@dataclass(frozen=True, slots=True)
class Nudge:
    """Something changed that has no message of its own (somebody came or went): look again."""


@dataclass(frozen=True, slots=True)
class Clipped:
    """The sound around a wake event is stored, or cannot be had (clip None, and why). event_seq: of its row."""

    event_seq: int
    clip: Clip | None
    why: str = ""


Told = Observation | Command | Transcribed | Clipped | Stop | Nudge
