"""What a conductor is given to work with, and what it may be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.model.feed import Command, StateChanged
from harness.model.observation import Observation
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.trial import Trial
from harness.ports import Clock, Hears, Renders, SessionLog, Stimulates


def _nobody() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that the conductor works with, made and closed by whoever calls it.

    loudspeakers: id → driver, of every id that the plan names. transcribe(waveform, told): our own recogniser, in the
    background: calls told(text) once from any thread, "" when it fails; None without one. attended: somebody is there
    to answer questions. on_state, answer(command_id, ok, why): to the clients; called from the conductor's thread.
    on_rendered: told of each trial's sound before it is played, from the rendering thread. linger: while true after the
    plan's end, notes, judgments and re-runs are still taken.
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


Told = Observation | Command | Transcribed | Stop | Nudge
