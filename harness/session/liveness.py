"""Whether devices are alive: a dead one misses everything, and must not be counted as a bad one. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

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
from harness.model.record import TrialFinished
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.trial import LIFE_CHECK, Listening, Outcome, Target, Trial
from harness.session.resumption import Take

TRIES = 5
"""So often what a device has reacted to is said again: one that hears every second time reacts to it in 97 of 100."""
_SILENT = (Outcome.NO_WAKE, Outcome.NO_RESPONSE, Outcome.COUNTED)
_SOUND_KINDS = (TrialKind.WAKE, TrialKind.COMMAND)


@dataclass(slots=True)
class _Life:
    """silent: takes that it let pass without a sign since its last one. good: the trial that it last reacted to."""

    silent: list[Take] = field(default_factory=list)
    good: Trial | None = None
    reacted: bool = False
    signed: bool = False
    signs: int = 0


class Liveness:
    """Signs of life of each device, and the takes without one.

    A sign is whatever a device says of itself (a heartbeat, a state, a wake event, words), or an answer that was heard.
    """

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._devices: dict[str, str] = {}
        self._lives: dict[str, _Life] = {}
        self.checked = ""
        """Device that a known-good trial is repeated for at this moment: what is heard is its answer."""
        for trial in trials:
            for device, connection in _hearing(trial):
                self._lives.setdefault(device, _Life())
                if connection:
                    self._devices[connection] = device

    def begin(self) -> None:
        """A take begins."""
        for life in self._lives.values():
            life.reacted = life.signed = False

    def see(self, seen: Observation) -> None:
        """Takes in what a driver saw."""
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
                pass  # that it has just started says nothing of before

    def finished(self, trial: Trial, row: TrialFinished) -> None:
        """A take has its verdict."""
        if trial.listening is not None and trial.listening.kind not in _SOUND_KINDS:
            return
        for device, _ in _hearing(trial):
            life = self._lives[device]
            if row.outcome.answered or row.outcome in (Outcome.MISHEARD, Outcome.UNDERSTOOD):
                self._sign(device, reacted=True)
            if life.reacted:
                life.good = trial
            elif not life.signed and row.outcome in _SILENT:
                life.silent.append((row.trial_id, row.take))

    def doubtful(self, after: int) -> tuple[str, ...]:
        """Devices that let so many takes in a row pass without a sign."""
        return tuple(device for device, life in self._lives.items() if len(life.silent) >= after)

    def silent(self, device: str) -> tuple[Take, ...]:
        """Its takes since its last sign."""
        return tuple(self._lives[device].silent)

    def signs(self, device: str) -> int:
        """How many it has given in this run."""
        return self._lives[device].signs

    def forget(self, device: str) -> None:
        """Its silent takes do not count: they are to be played again."""
        self._lives[device].silent.clear()

    def check(self, device: str, number: int) -> Trial | None:
        """What it last reacted to, to be said once more; None when it has reacted to nothing."""
        good = self._lives[device].good
        if good is None:
            return None
        if good.listening is not None:
            targets = tuple(one for one in good.listening.targets if one.device == device)
            heard = replace(good.listening, kind=TrialKind.PROBE, targets=targets)
        else:
            target = Target(device, good.connection, good.loudspeaker, good.reports)
            wait_s = max(WakeSettings().window_after_s, good.reprompt.response_timeout_s)
            settings = WakeSettings(window_after_s=wait_s)
            heard = Listening(TrialKind.PROBE, (target,), settings, phrase=next(iter(good.wake_phrases), ""))
        return replace(
            good,
            id=f"{LIFE_CHECK}.{number}",
            device=device,
            loudspeaker=heard.targets[0].player,
            connection=heard.targets[0].connection,
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


def _hearing(trial: Trial) -> list[tuple[str, str]]:
    """Devices that the trial is about, each with its connection."""
    if trial.listening is None:
        return [(trial.device, trial.connection)]
    return [(one.device, one.connection) for one in trial.listening.targets]
