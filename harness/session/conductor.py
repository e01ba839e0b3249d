"""Runs a plan: one thread, one inbox, and a log that knows everything before anybody else does."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.model.feed import StateWord
from harness.model.record import EndReason, SessionFinished
from harness.model.trial import Trial
from harness.session.commands import Desk
from harness.session.event_clips import EventClips
from harness.session.patient_log import PatientLog
from harness.session.reception import Reception
from harness.session.rendering import Rendering
from harness.session.responses import Responses
from harness.session.resumption import Resumption
from harness.session.run import Run
from harness.session.stage import Stage, Stop, Told
from harness.session.stagehand import Stagehand
from harness.session.takes import Takes

AHEAD = 2
"""Trials whose sounds are made while another one is played."""
LAST_WORDS_S = 20.0
"""How long the end of a run waits for transcriptions (real seconds)."""
LAST_CLIPS_S = 10.0
"""… and until the sound around the last wake events is stored (real seconds)."""


class Conductor:
    """Plays every take that the log does not know as finished, once.

    `inbox` may be called from any thread at any time; everything else happens in the thread that calls `run`.
    resumption: the fold over the log's rows so far (with `SessionStarted`, if the caller wrote one already).
    """

    def __init__(self, plan: Sequence[Trial], stage: Stage, resumption: Resumption) -> None:
        run = self._run = Run(plan, stage, resumption)
        self._clips = EventClips(stage.log, stage.microphone, stage.clock, run.arrivals.put, stage.explained)
        self._log = PatientLog(run, self._clips)
        self._rendering = Rendering(stage.renders, stage.on_rendered)
        self._responses = Responses(run, self._log)
        stagehand = Stagehand(run, self._log, self._clips, self._rendering, self._responses)
        self._desk = Desk(run, self._log, stagehand)
        self._reception = Reception(run, self._log, self._clips, self._responses, stagehand, self._desk)
        self._takes = Takes(run, self._log, self._rendering, stagehand, self._reception)

    def inbox(self, told: Told) -> None:
        """Takes an observation or a command, with the time of its arrival; never blocks, never raises."""
        self._run.arrivals.put(told)

    def stop(self, cause: str = "stopped: the engine was asked to end") -> None:
        """Ends the run soon, so that it can be resumed; may be called from any thread."""
        self._run.arrivals.put(Stop(cause))

    def run(self) -> EndReason:
        """Plays what is pending and returns why it ended; the log's last row says the same.

        LogError when the log cannot be written for another reason than a full disk; LogFull when the operator gives up
        while the disk is full.
        """
        run, clock = self._run, self._run.stage.clock
        try:
            quiet_for_s = run.standing.quiet_for_s(clock.wall_s(), clock.speed)
            if quiet_for_s is not None:
                run.last_sound_s = clock.now_s() - quiet_for_s
            resumed = quiet_for_s is not None
            for row in run.standing.cut_off():
                self._log.append(row)
            while run.ending is None:
                pending = run.standing.pending()
                if pending:
                    self._takes.play(pending[0], pending[1 : 1 + AHEAD], resumed)
                    resumed = False
                elif run.stage.linger():
                    run.show(StateWord.FINISHED, "every trial is played; re-runs, notes and judgments are taken")
                    self._reception.serve()
                elif run.stage.life_check_after and run.liveness.doubtful(1):
                    self._takes.settle()
                else:
                    self._await_transcriptions()
                    run.ending = run.ending or EndReason.COMPLETED
            self._await_clips()
            self._log.append(SessionFinished(run.ending))
            self._desk.ended()
            run.show(StateWord.FINISHED, run.ending.value)
            return run.ending
        finally:
            self._rendering.close()
            self._clips.close()

    def _await_transcriptions(self) -> None:
        """The last responses are transcribed too, if our recogniser is done with them soon."""
        until_s = time.monotonic() + LAST_WORDS_S
        while self._responses.transcribing and self._run.ending is None and time.monotonic() < until_s:
            self._reception.serve()

    def _await_clips(self) -> None:
        """The sound after the last wake events is waited for after a whole plan; else what there is, is kept."""
        clock = self._run.stage.clock
        waited_s = clock.real_s(self._clips.longest_s) if self._run.ending is EndReason.COMPLETED else 0.0
        begun_s = time.monotonic()
        while self._clips.pending and time.monotonic() < begun_s + waited_s + LAST_CLIPS_S:
            if self._run.ending is not EndReason.COMPLETED or time.monotonic() > begun_s + waited_s:
                self._clips.tick(clock.now_s(), hurry=True)
            self._reception.serve()
