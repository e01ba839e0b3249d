"""What a conductor is given to work with, and what it may be told."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from harness.base.ports import Clock, Hears, Renders, SessionLog, Stimulates
from harness.model.feed import Command, StateChanged
from harness.model.observation import DeviceState, LinkBack, LinkLost, ListeningProved, Observation, Status, Wake
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


@dataclass(slots=True)
class BenchState:
    """lost: sources whose link is down. gone: connections whose device says that it is gone, or whose last will did.

    why: source → what was last said of its loss. states: connection → its device's state. woke_s: … → last wake event.
    """

    lost: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    why: dict[str, str] = field(default_factory=dict)
    states: dict[str, DeviceState] = field(default_factory=dict)
    woke_s: dict[str, float] = field(default_factory=dict)

    def see(self, observation: Observation) -> None:
        """Takes in one more observation."""
        match observation:
            case LinkLost(source=source, what=what):
                self.lost.add(source)
                self.why[source] = what
            case LinkBack(source=source):
                self.lost.discard(source)
            case Status(source=source, state=state, detail=detail):
                self.states[source] = state
                if state is DeviceState.GONE:
                    self.gone.add(source)
                    if source not in self.lost:
                        self.why[source] = f"it says that it is gone{': ' if detail else ''}{detail}"
                else:
                    self.gone.discard(source)
            case ListeningProved(source=source):  # a last will may come after the device's new start
                self.gone.discard(source)
            case Wake(source=source, at=at):
                self.woke_s[source] = max(at.at_s, self.woke_s.get(source, at.at_s))
            case _:
                pass

    def copy(self) -> BenchState:
        """One that changes by itself."""
        return BenchState(set(self.lost), set(self.gone), dict(self.why), dict(self.states), dict(self.woke_s))


Arrived = tuple[Told, float]
"""What came, and when (session seconds)."""


class Inbox:
    """Things in the order of their arrival, each with its time: they may wait while a row is being stored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        self._first: deque[Arrived] = deque()

    def put(self, told: Told) -> None:
        """From any thread; never blocks."""
        self._queue.put((told, self._clock.now_s()))

    def get(self, wait_s: float) -> Arrived | None:
        """The next thing, waited for at most so many real seconds; None when nothing came."""
        if self._first:
            return self._first.popleft()
        return self.get_new(wait_s)

    def get_new(self, wait_s: float) -> Arrived | None:
        """As `get`, past what was put back."""
        try:
            return self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None

    def put_back(self, arrived: Iterable[Arrived]) -> None:
        """What was taken too early comes first again, in its order."""
        self._first.extendleft(reversed(list(arrived)))
