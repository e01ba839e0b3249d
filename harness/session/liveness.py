"""Whether devices are alive: signs of life, and what a run does when they fail to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from harness.model.bench import OnFault
from harness.model.feed import StateWord
from harness.model.observation import (
    DeviceState,
    Intent,
    ListeningProved,
    Observation,
    ResponseText,
    SpeechStarted,
    StateTold,
    Status,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import EndReason, FaultMet, NoteWritten, RerunAsked, TrialFinished
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.trial import LIFE_CHECK, Listening, Outcome, Target, Trial
from harness.session.resumption import Take
from harness.session.run import Run

TRIES = 5
"""Repetitions of a life check. A device that hears every second sound reacts to at least one in 97 of 100."""
_SILENT = (Outcome.NO_WAKE, Outcome.NO_RESPONSE, Outcome.COUNTED)
_SOUND_KINDS = (TrialKind.WAKE, TrialKind.COMMAND)
LIFE_CHECK_BY = "the life check"


@dataclass(slots=True)
class _Life:
    """silent: takes since its last sign of life. good: the trial that it last reacted to."""

    silent: list[Take] = field(default_factory=list)
    good: Trial | None = None
    reacted: bool = False
    signed: bool = False
    signs: int = 0


class Liveness:
    """Signs of life of each device, and the takes without one.

    A sign is a report of the device (a heartbeat, a state, a wake event, a transcript) or an audible answer.
    """

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._devices: dict[str, str] = {}
        self._lives: dict[str, _Life] = {}
        self.checked = ""
        """Device that a known-good trial is repeated for at this moment: what is heard is its answer."""
        for trial in trials:
            for device, sources in hearing(trial):
                self._lives.setdefault(device, _Life())
                self._devices.update(dict.fromkeys(sources, device))

    def begin(self) -> None:
        for life in self._lives.values():
            life.reacted = life.signed = False

    def see(self, seen: Observation) -> None:
        device = self._devices.get(seen.source)
        match seen:
            case Wake() | Transcript() | Intent() | ResponseText() if device:
                self._sign(device, reacted=True)
            case Status(state=state) if device and state not in (DeviceState.GONE, DeviceState.STARTED):
                self._sign(device)
            case ListeningProved() | StateTold() | Unread() if device:
                self._sign(device)
            case SpeechStarted() if self.checked and self.checked not in self._devices.values():
                self._sign(self.checked, reacted=True)
            case _:
                pass  # a start proves nothing about earlier takes

    def finished(self, trial: Trial, row: TrialFinished) -> None:
        if trial.listening is not None and trial.listening.kind not in _SOUND_KINDS:
            return
        for device, _ in hearing(trial):
            life = self._lives[device]
            if row.outcome.answered or row.outcome in (Outcome.MISHEARD, Outcome.UNDERSTOOD):
                self._sign(device, reacted=True)
            if life.reacted:
                life.good = trial
            elif not life.signed and row.outcome in _SILENT:
                life.silent.append((row.trial_id, row.take))

    def doubtful(self, after: int) -> tuple[str, ...]:
        """Devices without a sign of life in that many takes in a row."""
        return tuple(device for device, life in self._lives.items() if len(life.silent) >= after)

    def silent(self, device: str) -> tuple[Take, ...]:
        """Its takes since its last sign of life."""
        return tuple(self._lives[device].silent)

    def signs(self, device: str) -> int:
        """Its number of signs in this run."""
        return self._lives[device].signs

    def forget(self, device: str) -> None:
        """Forgets its silent takes, which do not count and will be played again."""
        self._lives[device].silent.clear()

    def check(self, device: str, number: int) -> Trial | None:
        """The trial that it last reacted to, or None."""
        good = self._lives[device].good
        if good is None:
            return None
        if good.listening is not None:
            targets = tuple(one for one in good.listening.targets if one.device == device)
            heard = replace(good.listening, kind=TrialKind.PROBE, targets=targets)
        else:
            target = Target(device, good.connection, good.loudspeaker, good.reports, also=good.also)
            wait_s = max(WakeSettings().window_after_s, good.reprompt.response_timeout_s)
            settings = WakeSettings(window_after_s=wait_s)
            heard = Listening(TrialKind.PROBE, (target,), settings, phrase=next(iter(good.wake_phrases), ""))
        return replace(
            good,
            id=f"{LIFE_CHECK}.{number}",
            device=device,
            loudspeaker=heard.targets[0].player,
            connection=heard.targets[0].connection,
            also=heard.targets[0].also,
            reprompt=replace(good.reprompt, max_attempts=TRIES),
            close_dialogue=None,
            listening=heard,
            effect=None,
            memory=None,
            expects=None,
        )

    def _sign(self, device: str, *, reacted: bool = False) -> None:
        life = self._lives[device]
        life.silent.clear()
        life.signed = True
        life.signs += 1
        life.reacted = life.reacted or reacted


def hearing(trial: Trial) -> list[tuple[str, tuple[str, ...]]]:
    """Devices that the trial is about, each with the sources of its reports."""
    if trial.listening is None:
        return [(trial.device, trial.sources)]
    return [(one.device, tuple(filter(None, one.sources))) for one in trial.listening.targets]


class LifeCheck:
    """Runs before each take, and before the run ends.

    Takes without a sign of life count only once the device has shown that it listens. Any report proves it, and so does
    waking to a stimulus that woke it earlier. Otherwise the takes are not proven, and are played again.
    """

    def __init__(
        self,
        run: Run,
        liveness: Liveness,
        serve: Callable[[], None],
        say: Callable[[Trial], None],
        revive: Callable[[Trial, str], bool],
    ) -> None:
        """revive(trial, device): power cycles the device; whether it answers again."""
        self._run = run
        self._liveness = liveness
        self._serve = serve
        self._say = say
        self._revive = revive

    def settle(self, *, at_end: bool = False) -> bool:
        """Checks silent devices; whether anything was played. at_end: no further trial could prove listening."""
        run, after = self._run, self._run.stage.life_check_after
        played = False
        while after and run.ending is None and (doubtful := self._liveness.doubtful(1 if at_end else after)):
            for device in doubtful:
                silent = self._liveness.silent(device)
                trials = _trials(len(silent))
                asked = self._ask(device)
                played |= asked
                if self._run.ending is not None:
                    break
                if self._liveness.silent(device):
                    self._not_proven(device, asked)
                    if run.ending is None and not self._revive(run.trials[silent[-1][0]], device):
                        self._pause(device, at_end=at_end)
                else:
                    self._note(f"{device} reacts: it is alive, and the {trials} that it missed count")
        return played

    def _ask(self, device: str) -> bool:
        """Repeats the last stimulus that the device reacted to; False without one."""
        trial = self._liveness.check(device, self._run.standing.rows)
        if trial is None:
            return False
        if silent := self._liveness.silent(device):
            self._note(f"no sign of life of {device} in {_trials(len(silent))}: repeating what it reacted to before")
        self._liveness.checked = device
        try:
            self._say(trial)
        finally:
            self._liveness.checked = ""
        return True

    def _not_proven(self, device: str, asked: bool) -> None:
        """Removes the silent takes from the results, and plans them again."""
        run = self._run
        takes = self._liveness.silent(device)
        self._liveness.forget(device)
        known = "and no reaction to the repeated sound" if asked else "and no reaction so far"
        run.append(
            FaultMet(device, f"no sign of life in {_trials(len(takes))}, {known}: not proven, will be played again")
        )
        for trial_id, _ in takes:
            number = run.standing.next_take(trial_id)
            cause = f"not_proven: nothing shows that {device} was listening"
            run.append(RerunAsked(trial_id, number, LIFE_CHECK_BY))
            run.append(TrialFinished(trial_id, number, Outcome.INTERRUPTED, 0, None, cause))
            run.append(RerunAsked(trial_id, number + 1, LIFE_CHECK_BY))

    def _pause(self, device: str, *, at_end: bool) -> None:
        """Pauses until a sign of life or a resume. Without an operator, repeats a known stimulus, then ends the run."""
        run, clock = self._run, self._run.stage.clock
        policy = run.stage.on_fault or OnFault()
        limit_s = 0.0 if at_end else policy.longest_s
        reason = f"{device} gives no sign of life. Check that it runs and hears, then resume"
        run.pause(reason, LIFE_CHECK_BY)
        since_s, signs = clock.now_s(), self._liveness.signs(device)
        asks_s = since_s + policy.retry_after_s
        while run.paused and run.ending is None:
            run.show(StateWord.PAUSED, reason)
            self._serve()
            waited_s = clock.now_s() - since_s
            if self._liveness.signs(device) > signs and run.paused:
                run.go_on(f"{LIFE_CHECK_BY}: {device} is back")
            elif run.paused and not run.stage.attended() and waited_s < limit_s and clock.now_s() >= asks_s:
                asks_s = clock.now_s() + policy.retry_after_s  # not every device has a heartbeat
                run.paused = False  # for this sound only
                self._ask(device)
                run.paused = True
            elif not run.stage.attended() and waited_s >= limit_s:
                run.append(FaultMet(device, "no sign of life, and no operator is present: resume when it is back"))
                run.ending = EndReason.STOPPED

    def _note(self, text: str) -> None:
        self._run.append(NoteWritten(text, LIFE_CHECK_BY))


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
