"""Where all that a run is told is taken in, one thing after another, and where time passes when nothing comes."""

from __future__ import annotations

from harness.model.feed import Command
from harness.model.observation import Observation, SpeechEnded, SpeechStarted, StimulusStarted
from harness.model.record import EndReason, EventClipped, FaultMet, Observed
from harness.session.commands import Desk
from harness.session.event_clips import EventClips
from harness.session.patient_log import PatientLog
from harness.session.responses import Responses
from harness.session.run import Run
from harness.session.stage import Clipped, Nudge, Stop, Told, Transcribed
from harness.session.stagehand import Stagehand

LOOK_S = 0.5
"""How often an idle run looks whether it still should linger (real seconds)."""


class Reception:
    """Hands each arrival to whom it concerns, above all to the machine of the take in play."""

    def __init__(
        self, run: Run, log: PatientLog, clips: EventClips, responses: Responses, stagehand: Stagehand, desk: Desk
    ) -> None:
        self._run = run
        self._log = log
        self._clips = clips
        self._responses = responses
        self._stagehand = stagehand
        self._desk = desk

    def serve(self) -> None:
        """Takes the next thing from the inbox, or lets time pass when nothing came before the deadline."""
        machine, clock = self._run.machine, self._run.stage.clock
        self._clips.tick(clock.now_s())
        if machine is not None:
            machine.attended = self._run.stage.attended()
        deadline_s = None if machine is None else machine.deadline_s
        now_s = clock.now_s()  # before the look into the inbox: what arrives later has a later time
        wait_s = LOOK_S if deadline_s is None else max(0.0, min(LOOK_S, clock.real_s(deadline_s - now_s)))
        found = self._run.arrivals.get(0.0 if deadline_s is not None and deadline_s <= now_s else wait_s)
        if found is not None:
            self._take_in(*found)
        elif machine is not None and deadline_s is not None and now_s >= deadline_s:
            self._stagehand.perform(machine.tick(now_s))

    def _take_in(self, told: Told, arrived_s: float) -> None:
        run, machine, perform = self._run, self._run.machine, self._stagehand.perform
        match told:
            case Nudge():
                pass
            case Stop(cause=cause):
                run.ending = run.ending or EndReason.STOPPED  # an abort stands
                if machine is not None:
                    perform(machine.stop(arrived_s, cause))
            case Transcribed(trial_id=trial_id, take=take):
                self._responses.transcribed(told)
                if machine is not None and (machine.trial.id, machine.take) == (trial_id, take):
                    perform(machine.transcribed(arrived_s))
            case Clipped(event_seq=event_seq, clip=clip, why=why):
                self._clips.told(event_seq)
                kept = EventClipped(event_seq, clip) if clip else None
                self._log.append(kept or FaultMet("clips", f"the wake event in row {event_seq} has no clip: {why}"))
            case _ if isinstance(told, Command):
                self._desk.take(told, arrived_s)
            case _:
                self._observe(told, arrived_s)

    def _observe(self, observation: Observation, arrived_s: float) -> None:
        run = self._run
        run.seen.see(observation)
        run.liveness.see(observation)
        match observation:
            case StimulusStarted(play_id=id, at=at, audio_s=None) if run.stage.microphone and id in run.sounds:
                run.stage.microphone.own_sound(id, run.sounds[id], at.at_s)
            case _:
                pass
        if run.machine is not None:
            self._stagehand.perform(run.machine.feed(observation, arrived_s))
            return
        if isinstance(observation, SpeechStarted | SpeechEnded):
            run.last_sound_s = max(run.last_sound_s or 0.0, observation.at.at_s)
        self._log.append(Observed(observation))
