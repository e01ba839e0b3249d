"""Signs of life of each device, and the takes without such a sign, from the rows of a log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from harness.model.observation import (
    DeviceState,
    Intent,
    ListeningProved,
    Observation,
    Proof,
    ResponseText,
    SpeechStarted,
    StateTold,
    Status,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import (
    AttemptStarted,
    EngineStarted,
    Observed,
    Record,
    RerunAsked,
    SessionStarted,
    StimulusSpoken,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.trial import LIFE_CHECK, LIFE_CHECK_BY, ListeningSpec, Outcome, Trial

TRIES = 5
"""Repetitions of a life check. A device that hears every second sound reacts to at least one in 97 of 100."""
_SILENT = (Outcome.NO_WAKE, Outcome.NO_RESPONSE, Outcome.COUNTED)
"""Outcomes of takes in which a device may have given no sign of life."""
_CALLING_KINDS = (TrialKind.WAKE, TrialKind.COMMAND)
"""Kinds of listening trials that call their devices with a phrase."""


@dataclass(slots=True)
class _LifeSigns:
    """The signs of life of one device. A device is called when a phrase or query is played to it."""

    silent: dict[tuple[str, int], float] = field(default_factory=dict)
    """Takes since its last sign of life → when they called it."""
    unproven: list[tuple[str, int]] = field(default_factory=list)
    """Silent takes that no later sign can prove."""
    known_good: Trial | None = None
    """The trial that it last reacted to."""
    reacted: bool = False
    """Whether it has reacted in the current take."""
    gave_sign: bool = False
    """Whether it gave a sign in the current take, after its call."""
    signs: int = 0
    restarts: int = 0
    """Number of restarts in a row that followed silent takes, without a reaction in between."""
    has_heartbeats: bool = False
    """Whether it sends heartbeats."""
    last_sign_s: float | None = None
    """Time of its last sign in this run, or of the first sound that was played before any."""
    silence_s: tuple[float, float] = (-math.inf, -math.inf)
    """Start and end of its latest silence that was too long."""
    restarted: bool = False
    """Whether it restarted in the current take, before any sign after its call."""
    restart_is_counted: bool = False
    """Whether `restarts` includes that restart."""


class Liveness:
    """Finds out from the rows of a log, live or replayed, in which takes each device was alive.

    A sign of life is a report of the device (a heartbeat, a state, a wake event, a transcript) or an audible answer. It
    proves that the device listened in the silent takes before it, back to its last restart. The time of the sign
    counts, since it may be reported late. If heartbeats stop for longer than `proof_within_s`, the device stood still
    and heard nothing: takes in that time stay unproven.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._trials: dict[str, Trial] = {}
        self._devices: dict[str, str] = {}
        self._life_signs: dict[str, _LifeSigns] = {}
        self._last_row_s = self._run_began_s = -math.inf
        self._boot = ""
        self._current_attempt: AttemptStarted | None = None
        self._starts_by_player: dict[str, StimulusStarted] = {}
        self._players: dict[tuple[str, str], str] = {}
        self._proof_within_s = WakeSettings().proof_within_s
        self.device_under_check = ""
        """The device for which a known stimulus is repeated at this moment; what is heard is its answer."""
        self.add_trials(trials)

    def add_trials(self, trials: Iterable[Trial]) -> None:
        """Adds trials whose devices are to be watched."""
        for trial in trials:
            self._trials[trial.id] = trial
            if trial.listening is not None:
                self._proof_within_s = trial.listening.settings.proof_within_s
            for target in trial.targets:
                self._players[trial.id, target.device] = target.player
                self._life_signs.setdefault(target.device, _LifeSigns())
                self._devices.update(dict.fromkeys(target.sources, target.device))

    def add(self, record: Record, at_s: float) -> None:
        """Adds a row that was written at that time of the session's clock, in seconds."""
        match record:
            case Observed(observation=observation):
                self.observe(observation)
            case SessionStarted(trials=trials):
                self.add_trials(trials)
            case TrialStarted():
                self.begin_attempt()
            case AttemptStarted(trial_id=trial_id):
                self.begin_attempt()
                self._current_attempt = record if trial_id in self._trials else None
            case StimulusSpoken() if self._current_attempt is not None:
                self._current_attempt = record.with_measured_times(self._current_attempt)
            case EngineStarted(boot_id=boot):  # signs that came since the last row are in none
                for life in self._life_signs.values():
                    self._check_silence(life, self._last_row_s)
                    life.last_sign_s = None
                    if boot != self._boot:  # their times are of another clock: any sign from now on proves them
                        life.silent = dict.fromkeys(life.silent, -math.inf)
                        life.silence_s = (-math.inf, -math.inf)
                if boot != self._boot:  # the host's clock begins anew
                    self._boot, self._last_row_s = boot, -math.inf
                    self.begin_attempt()
                self._run_began_s = self._last_row_s
            case TrialFinished(trial_id=trial_id, attempts=attempts) if attempts and trial_id in self._trials:
                self.finish_take(self._trials[trial_id], record)
            case RerunAsked(trial_id=trial_id, by=by) if by == LIFE_CHECK_BY:
                for life in self._life_signs.values():
                    life.silent = {take: at_s for take, at_s in life.silent.items() if take[0] != trial_id}
                    life.unproven = [take for take in life.unproven if take[0] != trial_id]
            case _:
                pass
        self._last_row_s = at_s

    def begin_attempt(self) -> None:
        """Records that a take or an attempt begins."""
        self._current_attempt = None
        self._starts_by_player.clear()
        for life in self._life_signs.values():
            life.reacted = life.gave_sign = life.restarted = life.restart_is_counted = False

    def observe(self, observation: Observation) -> None:
        """Adds an observation, which may be a sign of life."""
        device = self._devices.get(observation.source)
        if isinstance(observation, StimulusStarted):
            for life in self._life_signs.values():
                if life.last_sign_s is None:  # so far in this run, there was time for a heartbeat from here on
                    life.last_sign_s = observation.at.at_s
        match observation:
            case StimulusStarted(play_id=play_id) if self._current_attempt and self._current_attempt.play_id == play_id:
                self._starts_by_player[observation.source] = observation
            case Wake() | Transcript() | Intent() | ResponseText() if device:
                self._add_sign(device, observation, reacted=True)
            case Status(state=DeviceState.STARTED, at=at) if device:
                self._note_restart(self._life_signs[device], at.at_s)
            case Status(state=state) if device and state is not DeviceState.GONE:
                self._add_sign(device, observation)
            case ListeningProved() | StateTold() | Unread() if device:
                if isinstance(observation, ListeningProved) and observation.proof is Proof.HEARTBEAT:
                    self._life_signs[device].has_heartbeats = True
                self._add_sign(device, observation)
            case SpeechStarted() if self.device_under_check and self.device_under_check not in self._devices.values():
                self._add_sign(self.device_under_check, observation, reacted=True)
            case _:
                pass

    def finish_take(self, trial: Trial, row: TrialFinished) -> None:
        """Records the end of a take. A take without a reaction is silent until a later sign of life proves it."""
        if trial.listening is not None and trial.listening.kind not in _CALLING_KINDS:
            return
        for target in trial.targets:
            life = self._life_signs[target.device]
            if row.outcome.answered or row.outcome in (Outcome.MISHEARD, Outcome.UNDERSTOOD):
                self._add_sign(target.device, reacted=True)
            if life.reacted:
                life.known_good = trial
            elif row.outcome in _SILENT:
                called_s = self._call_end_s(target.device)
                # Its restart, or the sign that ended its silence, may have come before the end of the take.
                if life.restarted and not life.restart_is_counted:
                    life.restarts += 1
                if life.restarted or life.silence_s[0] < called_s < life.silence_s[1]:
                    life.unproven.append((row.trial_id, row.take))
                elif not life.gave_sign:
                    life.silent[row.trial_id, row.take] = called_s

    def doubtful(self, after: int) -> tuple[str, ...]:
        """Devices without a sign of life in that many takes in a row, or in any before they restarted."""
        return tuple(device for device, life in self._life_signs.items() if len(life.silent) >= after or life.unproven)

    def silent(self, device: str) -> tuple[tuple[str, int], ...]:
        """Its takes since its last sign of life."""
        return tuple(self._life_signs[device].silent)

    def unproven(self, device: str) -> tuple[tuple[str, int], ...]:
        """Its silent takes before a restart."""
        return tuple(self._life_signs[device].unproven)

    def restarts(self, device: str) -> int:
        """Number of its restarts in a row after silent takes, without a reaction in between."""
        return self._life_signs[device].restarts

    def signs(self, device: str) -> int:
        """Its number of signs."""
        return self._life_signs[device].signs

    def life_check(self, device: str, number: int) -> Trial | None:
        """The trial that it last reacted to, as a life check with that number; None if it never has."""
        reacted_trial = self._life_signs[device].known_good
        if reacted_trial is None:
            return None
        targets = tuple(target for target in reacted_trial.targets if target.device == device)
        if reacted_trial.listening is not None:
            listening = replace(reacted_trial.listening, kind=TrialKind.PROBE, targets=targets)
        else:
            wait_s = max(WakeSettings().window_after_s, reacted_trial.reprompt.response_timeout_s)
            settings = WakeSettings(window_after_s=wait_s)
            phrase = reacted_trial.wake_phrases[0] if reacted_trial.wake_phrases else ""
            listening = ListeningSpec(TrialKind.PROBE, targets, settings, phrase=phrase)
        return replace(
            reacted_trial,
            id=f"{LIFE_CHECK}.{number}",
            device=device,
            loudspeaker=targets[0].player,
            connection=targets[0].connection,
            also=targets[0].also,
            reprompt=replace(reacted_trial.reprompt, max_attempts=TRIES),
            close_dialogue=None,
            listening=listening,
            effect=None,
            memory=None,
            expects=None,
        )

    def _add_sign(self, device: str, sign: Observation | None = None, *, reacted: bool = False) -> None:
        """Records a sign of life.

        - sign: None if it follows from the end of the trial.
        - reacted: it was a reaction.
        """
        life = self._life_signs[device]
        if sign is not None:
            at_s = sign.at.at_s
            self._check_silence(life, at_s)
            self._note_sign(life, at_s)
        if sign is None:
            life.silent = {}
        else:  # it proves nothing about the takes that called the device only after it
            life.silent = {take: called_s for take, called_s in life.silent.items() if sign.at.at_s < called_s}
        life.gave_sign |= sign is None or self._is_after(device, sign, reacts=False)
        life.signs += 1
        if reacted:
            life.reacted |= sign is None or self._is_after(device, sign, reacts=True)
            life.restarts = 0

    def _call_end_s(self, device: str) -> float:
        """When the current phrase or query ended, on the host's clock; over a wire, when its sound began."""
        if self._current_attempt is None or (started := self._stimulus_start(device)) is None:
            return -math.inf
        return started.at.at_s + (self._current_attempt.query_end_s if started.audio_s is None else 0.0)

    def _stimulus_start(self, device: str) -> StimulusStarted | None:
        """The start of the current stimulus on the player that the device hears; None before it."""
        if self._current_attempt is None:
            return None
        return self._starts_by_player.get(self._players.get((self._current_attempt.trial_id, device), ""))

    def _is_after(self, device: str, sign: Observation, *, reacts: bool) -> bool:
        """Whether a sign comes after the end of the current phrase or query, by its own time.

        reacts: whether it comes after the start instead. It is not known where the wake phrase of a query begins, so
        there the start of the sound counts.
        """
        if self._current_attempt is None:
            return True
        started = self._stimulus_start(device)
        if started is None:
            return False
        after_s = self._begins_s(self._current_attempt) if reacts else self._current_attempt.query_end_s
        if started.audio_s is None:
            return sign.at.at_s >= started.at.at_s + after_s
        place_s = getattr(sign, "audio_s", None)
        # How fast sound is sent over a wire is not known: without a place on its line, its start decides.
        return sign.at.at_s >= started.at.at_s if place_s is None else place_s >= started.audio_s + after_s

    def _begins_s(self, row: AttemptStarted) -> float:
        """Position in the stimulus where its first phrase begins; 0 for a query, where that is not known."""
        if self._trials[row.trial_id].listening is None:
            return 0.0
        return min((begins_s for begins_s, _ in row.other_phrases), default=row.query_start_s)

    def _check_silence(self, life: _LifeSigns, now_s: float) -> None:
        """After too long a silence of the heartbeats, the silent takes become unproven: the device stood still."""
        if life.has_heartbeats and life.last_sign_s is not None and now_s - life.last_sign_s > self._proof_within_s:
            life.silence_s = (life.last_sign_s, now_s)
            life.unproven += life.silent
            life.silent.clear()

    def _note_sign(self, life: _LifeSigns, at_s: float) -> None:
        """Records the time of a sign. A late sign of an earlier run shows nothing about this run."""
        if life.last_sign_s is not None or at_s >= self._run_began_s:
            life.last_sign_s = at_s if life.last_sign_s is None else max(at_s, life.last_sign_s)

    def _note_restart(self, life: _LifeSigns, at_s: float) -> None:
        """Records a restart. Nothing can prove the silent takes before it any more."""
        life.restarted |= not life.gave_sign
        self._note_sign(life, at_s)
        if life.silent:
            life.restarts, life.restart_is_counted = life.restarts + 1, True
            life.unproven += life.silent
            life.silent.clear()
