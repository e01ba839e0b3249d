"""The wake, command or ambient trial: a machine without I/O and without a clock, which is fed observations and times.

READY → WAITING → PLAYING → LISTENING → DONE; what interrupts an attempt leads back to WAITING, and from there to LINK
while something is missing. It only sees to it that the sound was heard in full by devices that were there; what their
events count as is worked out from the log (harness.evaluate). docs/wake.md draws it.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Overrun,
    Proof,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.scenario import TrialKind
from harness.model.trial import Target
from harness.session.actions import Action, Credit
from harness.session.bench_state import BenchState
from harness.session.listening_steps import UNDER_WAY, ListeningSteps
from harness.session.take import Phase


class ListeningMachine(ListeningSteps):
    """One take of one trial with `listening`, from its first sound to COUNTED (or INTERRUPTED too often).

    Every method takes the time at which it is called (session seconds, never going back) and returns what to do, in
    order. before: rows of attempts that an earlier run of the session made of this take. link_wait_s: how long a lost
    link is waited for before the trial is given up.
    """

    # What is asked of the machine

    def begin(self, now_s: float, *, not_before_s: float | None = None, seen: BenchState | None = None) -> list[Action]:
        """Begins the take; no sound before `not_before_s`. seen: how devices and links are at this moment."""
        self._tell(now_s)
        self._not_before_s = now_s if not_before_s is None else not_before_s
        if seen is not None:
            self._seen = seen.copy()
        self._enter(Phase.WAITING, "")
        return self._advance()

    def feed(self, observation: Observation, now_s: float) -> list[Action]:
        """Takes in what a driver saw; the first action credits it to the attempt under way."""
        self._tell(now_s)
        if self._phase is Phase.DONE:
            return [Credit(observation, None)]
        self._actions.append(Credit(observation, self._owner(observation)))
        self._take_in(observation)
        return self._advance()

    def interrupt(self, now_s: float, cause: str) -> list[Action]:
        """Something outside ended the attempt that is under way (a full disk)."""
        self._tell(now_s)
        self._interrupt(cause)
        return self._advance()

    def play_refused(self, now_s: float, play_id: str, why: str, sounding: Iterable[str] = ()) -> list[Action]:
        """A player cannot play the stimulus. sounding: those that play it already; they are stopped."""
        self._tell(now_s)
        self._sounding = set(sounding)
        if self._current is not None and self._current.play_id == play_id:
            self._interrupt(f"sound_refused: {why}")
        return self._advance()

    def stop(self, now_s: float, cause: str) -> list[Action]:
        """The engine ends and will be resumed: an attempt under way is interrupted, the trial stays open."""
        self._tell(now_s)
        self._interrupt(cause)
        self._enter(Phase.DONE, "stopped")
        return self._taken()

    def response_frozen(self, now_s: float, *, transcribing: bool) -> list[Action]:
        """Nothing is ever frozen in these trials."""
        raise TypeError("a listening trial has no response")

    def response_lost(self, now_s: float, why: str) -> list[Action]:
        """Nothing is ever frozen in these trials."""
        raise TypeError("a listening trial has no response")

    def transcribed(self, now_s: float) -> list[Action]:
        """Nothing waits for our own transcriptions."""
        return self.tick(now_s)

    def takes_answer(self, attempt: int) -> bool:
        """Nobody is asked about a listening trial."""
        return False

    @property
    def last_sound_s(self) -> float | None:
        """When the last sound ended that went through the air; None when there was none."""
        return self._last_sound_s

    # Observations

    def _target(self, connection: str) -> Target | None:
        return next((one for one in self._listening.targets if one.connection == connection), None)

    def _owner(self, observation: Observation) -> int | None:
        """The attempt that an observation is credited to: own sounds by their name, all else while one is under way."""
        match observation:
            case StimulusStarted(play_id=play_id) | StimulusEnded(play_id=play_id) | StimulusHeard(play_id=play_id):
                mine = self._current is not None and self._current.play_id == play_id
                return self._last_number if mine else None
            case LinkLost() | LinkBack():
                return None
            case Wake() | Transcript() | Status() | Unread() if self._target(observation.source) is None:
                return None
            case _:
                return self._last_number if self._phase in UNDER_WAY else None

    def _take_in(self, observation: Observation) -> None:
        self._seen.see(observation)
        attempt = self._current
        match observation:
            case StimulusStarted() | StimulusEnded() | StimulusHeard():
                self._take_in_own_sound(observation)
            case Overrun(source=source) if attempt is not None and self._asks_for_a_wake:
                # Who misses a phrase with a gap in it was not asked; and which samples were late, nobody knows.
                if self._phase is Phase.PLAYING and source in attempt.through_air:
                    self._interrupt(f"stimulus_flawed: {source} played late blocks")
            case ListeningProved(source=source, proof=Proof.ACKNOWLEDGED) if attempt is not None:
                attempt.progressed(source, self._now_s)
            case Transcript(source=source, final=True) if attempt is not None and self._phase in UNDER_WAY:
                attempt.understood(source)
            case Wake(source=source) if attempt is not None and self._phase in UNDER_WAY:
                if (target := self._target(source)) is not None:
                    attempt.woke(target, observation)
            case Wake(source=source) if self._phase is Phase.WAITING and not self._missing():
                if (target := self._target(source)) is not None and not target.injected:
                    self._reason = f"{target.device} has just woken; waiting until it is quiet"
            case Unread(source=source, what=what) if attempt is not None and self._phase in UNDER_WAY:
                attempt.unread[source] = what
            case LinkLost(source=source, what=what) if source in self._missing():
                self._sounding.discard(source)
                self._interrupt(f"link_lost: {source}: {what}")
            case Status(source=source, state=state, detail=detail) if source in self._connections():
                self._take_in_state(source, state, detail)
            case _:
                pass

    @property
    def _asks_for_a_wake(self) -> bool:
        return self._listening.kind is not TrialKind.AMBIENT

    def _take_in_state(self, source: str, state: DeviceState, detail: str) -> None:
        target = self._target(source)
        name = target.device if target else source
        if state is DeviceState.GONE:
            self._interrupt(f"device_gone: {name}{': ' if detail else ''}{detail}")
        elif state is DeviceState.STARTED:
            self._interrupt(f"device_restarted: {name}")

    def _take_in_own_sound(self, observation: StimulusStarted | StimulusEnded | StimulusHeard) -> None:
        attempt = self._current
        if attempt is None or observation.play_id != attempt.play_id:
            return
        match observation:
            case StimulusStarted(source=source, at=at, audio_s=audio_s):
                attempt.begun(source, at, self._now_s, audio_s)
            case StimulusHeard(at=at):
                attempt.heard(at)
            case StimulusEnded(source=source, at=at, complete=complete, why=why):
                self._sounding.discard(source)
                if source in attempt.through_air:
                    self._last_sound_s = at.at_s
                if not complete:
                    self._interrupt(f"stimulus_cut: {source}: {why or 'it was stopped'}")
                    return
                attempt.finished_playing(source, at)
                stalled_s = attempt.stalled_s(source)
                if stalled_s and self._asks_for_a_wake:
                    self._interrupt(f"stimulus_flawed: {source} took {stalled_s:.2f} s too long")
