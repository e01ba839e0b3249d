"""The phases of a listening trial and what leads from one to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.model.observation import DeviceState
from harness.model.record import AttemptFinished, FaultMet
from harness.model.scenario import TrialKind
from harness.model.trial import EvidenceSource, Outcome, Recognition, Target, Trial
from harness.session.actions import Action, FinishAttempt, ReportFault, StimulusTiming, StopStimulus
from harness.session.bench_state import BenchState
from harness.session.listening_attempt import ListeningAttempt
from harness.session.take import Phase, Take
from harness.session.verdict import Verdict, trial_verdict
from harness.session.wording import in_words

RETRY_S = 2.0
"""Between an interruption and the next attempt."""
ENDING_S = 10.0
"""So long a player that was stopped is waited for."""
_BUSY = (DeviceState.LISTENING, DeviceState.THINKING, DeviceState.SPEAKING, DeviceState.DIALOGUE_OPEN)


UNDER_WAY = (Phase.PLAYING, Phase.LISTENING)


class ListeningSteps(Take):
    """The state of one take of one listening trial. `ListeningMachine` is what others use."""

    def __init__(
        self,
        trial: Trial,
        take: int,
        timing: StimulusTiming,
        *,
        before: Sequence[AttemptFinished] = (),
        attended: bool = False,
        link_wait_s: float = 600.0,
    ) -> None:
        if trial.listening is None:
            raise ValueError(f"{trial.id} is a query trial")
        super().__init__(trial, take, timing, before=before, attended=attended, link_wait_s=link_wait_s)
        self._listening = trial.listening
        self._current: ListeningAttempt | None = None
        self._seen = BenchState()
        self._sounding: set[str] = set()
        self._last_sound_s: float | None = None

    # Time

    def _until(self) -> float | None:
        attempt = self._current
        match self._phase:
            case Phase.WAITING:
                return self._waiting_until()
            case Phase.PLAYING if attempt:
                return attempt.lost_at_s()
            case Phase.LISTENING if attempt:
                return max(attempt.listens_until_s(), self._since_s)
            case Phase.LINK:
                return self._since_s + self._link_wait_s
            case _:
                return None

    def _expected_end(self) -> float | None:
        # A player that was stopped ends within milliseconds; the time that it is given at most would mislead.
        return self._not_before_s if self._phase is Phase.WAITING and self._sounding else self._until()

    def _waiting_until(self) -> float:
        until_s = self._not_before_s
        if self._sounding:
            until_s = max(until_s, self._since_s + ENDING_S)
        longest_s = self._since_s + self._rule.response_max_s
        for target in self._in_the_room():
            until_s = max(until_s, min(self._awake_until(target), longest_s))
            if self._seen.states.get(target.connection) in _BUSY:
                until_s = max(until_s, longest_s)
        return until_s

    def _in_the_room(self) -> list[Target]:
        """Devices that hear through the air; the audio line of the others stands still while nothing is injected."""
        return [target for target in self._listening.targets if not target.injected]

    def _awake_until(self, target: Target) -> float:
        """Up to here a further wake event of a device would count as part of its last one."""
        woke_s = self._seen.woke_s.get(target.connection)
        return -math.inf if woke_s is None else woke_s + self._listening.settings.refractory_s

    # Steps

    def _step(self) -> None:
        until_s = self._until()
        due = until_s is not None and self._now_s >= until_s
        attempt = self._current
        match self._phase:
            case Phase.WAITING if due and not self._held:
                self._go_on()
            case Phase.PLAYING if attempt:
                if attempt.ended:
                    self._enter(Phase.LISTENING, "")
                elif due:
                    self._interrupt(f"sound_lost: {', '.join(attempt.unfinished)} did not end the stimulus")
            case Phase.LISTENING if due or (attempt and attempt.complete):
                self._conclude()
            case Phase.LINK:
                if not self._missing():
                    self._enter(Phase.WAITING, self._reason)
                elif due:
                    missing = ", ".join(self._missing())
                    self._finish(Verdict(Outcome.INTERRUPTED, None, f"link_lost: {missing} did not come back"))
            case _:
                pass

    def _go_on(self) -> None:
        verdict = trial_verdict(self._rule, self._rows)
        missing = self._missing()
        if verdict is not None:
            self._finish(verdict)
        elif missing:
            told = (f"{name}: {self._seen.why[name]}" if name in self._seen.why else name for name in missing)
            self._enter(Phase.LINK, f"waits for {'; '.join(told)}")
        else:
            self._start()

    def _start(self) -> None:
        for target in self._in_the_room():
            if self._awake_until(target) > self._now_s:
                waited_s = self._now_s - self._since_s
                what = f"{target.device} keeps waking: still not quiet after {waited_s:.0f} s; the trial starts anyway"
                self._actions.append(ReportFault(FaultMet(target.connection, what)))
        self._last_number += 1
        play_id = self._play_id(self._last_number)
        self._current = ListeningAttempt(self.trial, self._listening, self._timing, play_id, self._now_s)
        self._sounding = set(self._listening.players)
        self._enter(Phase.PLAYING, "")
        self._ask_for_sound(self._last_sound_s)

    def _conclude(self) -> None:
        unheard = self._unheard()
        if unread := self._unread():
            self._write(Outcome.INCONCLUSIVE, f"unread: {unread}")
            self._finish(Verdict(Outcome.INCONCLUSIVE, self._last_number, f"unread: {unread}"))
            return
        self._write(*((Outcome.NO_WAKE, f"probe_unheard: {', '.join(unheard)}") if unheard else (Outcome.COUNTED, "")))
        verdict = trial_verdict(self._rule, self._rows)
        if verdict is not None:
            self._finish(verdict)
            return
        self._not_before_s = self._now_s + RETRY_S
        self._enter(Phase.WAITING, f"{', '.join(unheard)} did not wake to the probe: once more")

    def _unread(self) -> str:
        """Why words of a device were lost that did not say that it woke: whether it did, nobody knows."""
        attempt = self._current
        if attempt is None or self._listening.kind is TrialKind.AMBIENT:
            return ""
        silent = (one for one in self._listening.targets if one.connection not in attempt.woken)
        return next((f"{one.device}: {what}" for one in silent if (what := attempt.unread.get(one.connection))), "")

    def _unheard(self) -> tuple[str, ...]:
        """Devices that did not wake to a probe; of other trials it is no matter to the session who wakes."""
        if self._listening.kind is not TrialKind.PROBE or self._current is None:
            return ()
        return tuple(one.device for one in self._listening.targets if one.connection not in self._current.woken)

    def _write(self, outcome: Outcome, cause: str) -> None:
        asked = self._listening.kind is TrialKind.COMMAND
        recognition = Recognition.UNKNOWN if asked else Recognition.NOT_ASSESSED
        source = EvidenceSource.DEVICE if asked else EvidenceSource.NONE
        row = AttemptFinished(self.trial.id, self.take, self._last_number, outcome, recognition, source, cause=cause)
        self._rows[row.attempt] = row
        self._actions.append(FinishAttempt(row))

    def _interrupt(self, cause: str) -> None:
        if self._phase not in UNDER_WAY:
            return
        if self._sounding:
            self._actions.append(StopStimulus())
        self._write(Outcome.INTERRUPTED, cause)
        self._not_before_s = self._now_s + RETRY_S
        self._enter(Phase.WAITING, in_words(cause))

    def _end(self, now_s: float, outcome: Outcome, reason: str) -> list[Action]:
        self._tell(now_s)
        if self._phase is Phase.DONE:
            return []
        cause = f"operator: {reason}" if reason else "operator"
        if self._phase in UNDER_WAY:
            if self._sounding:
                self._actions.append(StopStimulus())
            self._write(outcome, cause)
        self._finish(Verdict(outcome, None, cause))
        return self._taken()

    def _connections(self) -> set[str]:
        return {target.connection for target in self._listening.targets} - {""}

    def _missing(self) -> list[str]:
        """Players and connections that are not there."""
        needed = self._connections() | set(self._listening.players)
        return sorted((self._seen.lost | self._seen.gone) & needed)
