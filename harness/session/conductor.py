"""Runs a plan with one thread and one inbox. Every event is in the log before clients receive it.

    drivers, microphone ── observations ──┐
    clients ───────────────── commands ───┤                          ┌──► log ──► clients
    recogniser ──────── TranscriptReady ──┼──► Inbox ──► `_serve` ───┼──► machine ──► actions ──► players, log
    clips' thread ────────── ClipResult ──┤              one arrival └──► clips of wake events
    rendering, other work ────── WakeUp ──┘              or a deadline

Left of the inbox are other threads, which only put messages into it. Everything to its right runs in the conductor's
thread. That plays the plan's trials one after another (`run`, `Takes.play`). Wherever it would wait, it calls `_serve`.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base import threads
from harness.model.errors import InputError
from harness.model.feed import (
    Abort,
    AnswerEffect,
    AnswerOperator,
    Command,
    Hello,
    Judge,
    Misspoke,
    Pause,
    Replay,
    Rerun,
    Resume,
    Review,
    SetMark,
    Skip,
    StateWord,
    WriteNote,
)
from harness.model.observation import (
    Observation,
    OperatorAnswer,
    SpeechEnded,
    SpeechStarted,
    StimulusEnded,
    StimulusStarted,
)
from harness.model.record import (
    EffectAnswered,
    EndReason,
    EventClipped,
    FaultMet,
    Observed,
    Paused,
    Resumed,
    SessionFinished,
)
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.session.event_clips import ClipResult
from harness.session.resumption import Resumption, row_for, with_checked_text
from harness.session.run import Arrival, ConductorContext, Run, Stop, TranscriptReady, WakeUp
from harness.session.takes import Takes

AHEAD = 2
"""Number of trials whose sounds are rendered ahead."""
LAST_TRANSCRIPTS_S = 20.0
"""Wait for transcriptions at the end of a run (real seconds)."""
LAST_CLIPS_S = 10.0
"""Wait for clips of the last wake events at the end of a run (real seconds)."""
IDLE_CHECK_S = 0.5
"""Interval at which an idle run checks whether to linger (real seconds)."""


class Conductor:
    """Plays each take once, except those that the log shows as finished.

    `enqueue` may be called from any thread at any time. Everything else happens in the thread that calls `run`.
    resumption: the state after the log's rows so far, including `SessionStarted` if that is already written.
    """

    def __init__(self, plan: Sequence[Trial], context: ConductorContext, resumption: Resumption) -> None:
        self._run = Run(plan, context, resumption, self._serve)
        self._takes = Takes(self._run)
        self._aborts: list[Abort] = []

    def enqueue(self, message: Arrival) -> None:
        """Takes an observation or a command, with the time of its arrival; never blocks, never raises."""
        self._run.arrivals.put(message)

    def stop(self, cause: str = "stopped: the engine was asked to end") -> None:
        """Ends the run soon, so that it can be resumed; may be called from any thread."""
        self._run.arrivals.put(Stop(cause))

    def run(self) -> EndReason:
        """Plays the pending takes. Returns why the run ended, which is also in the log's last row.

        Raises LogFull when the operator gives up while the disk is full. Raises LogError when the log cannot be written
        for another reason.
        """
        run = self._run
        try:
            resumed = run.resumption.last_sound_s is not None
            self._begin()
            while run.ending is None:
                if run.arrivals.end_requested:  # the request is still behind earlier arrivals
                    self._serve()
                    continue
                pending = run.resumption.pending()
                if pending:
                    self._takes.play(pending[0], pending[1 : 1 + AHEAD], resumed)
                    resumed = False
                    continue
                self._takes.restore()
                if run.context.life_check_after and self._takes.liveness.doubtful(1):
                    # Before FINISHED is shown, and the operator leaves.
                    self._takes.life_check.check_silent_devices(at_end=True)
                elif run.context.linger():
                    run.show(
                        StateWord.FINISHED,
                        "all trials have been played; detach to end the session, or re-run trials, add notes and judge "
                        "responses",
                    )
                    self._serve()
                else:
                    self._await_transcriptions()
                    self._await_clips()
                    if not run.resumption.pending():  # a trial may have been re-run meanwhile
                        run.ending = run.ending or EndReason.COMPLETED
            self._await_clips()
            self._takes.restore()
            run.append(SessionFinished(run.ending))
            for abort in self._aborts:  # the last row is committed, as requested
                run.context.answer(abort.id, True, "")
            run.show(StateWord.FINISHED, run.ending.value)
            return run.ending
        except BaseException:
            self._takes.abandon()
            raise
        finally:
            self._takes.close()
            run.clips.close()

    def _begin(self) -> None:
        """Closes what an earlier run left open, switches power on, and notes the original settings."""
        run, now_s = self._run, self._run.context.clock.now_s
        if (last_sound_s := run.resumption.last_sound_s) is not None:
            # Never in the future, so that a clock which was set back cannot delay the first trial for hours.
            run.last_sound_s = min(last_sound_s, now_s())
        for row in run.resumption.interrupted_attempts():
            run.append(row)
        if run.resumption.was_cut:
            self._takes.query_cut_s = now_s()
        for decision in run.context.decisions():
            run.append(decision)
        self._takes.resume_transcriptions()
        self._takes.power.restore("the run begins")
        self._takes.settings.note_originals()

    def _early_end_reason(self, reason: EndReason) -> EndReason:
        """The reason for a run that ends on request: COMPLETED if nothing is left to play, since no result is lost."""
        run = self._run
        has_doubt = run.context.life_check_after and self._takes.liveness.doubtful(1)
        has_work_left = run.machine is not None or run.resumption.pending() or has_doubt or self._takes.transcribing
        return reason if has_work_left else EndReason.COMPLETED

    def _await_transcriptions(self) -> None:
        """Waits a limited time for the transcripts of the last responses."""
        until_s = threads.monotonic() + LAST_TRANSCRIPTS_S
        while self._takes.transcribing and self._run.ending is None and threads.monotonic() < until_s:
            self._serve()

    def _await_clips(self) -> None:
        """After a complete plan, waits for the sound after the last wake events. Otherwise keeps the sound so far."""
        clips, clock = self._run.clips, self._run.context.clock
        is_complete = self._run.ending in (None, EndReason.COMPLETED)
        all_heard_s = threads.monotonic() + (clock.real_s(clips.longest_s) if is_complete else 0.0)
        while clips.pending and threads.monotonic() < all_heard_s + LAST_CLIPS_S:
            if not is_complete or threads.monotonic() > all_heard_s:
                clips.tick(clock.now_s(), hurry=True)
            self._serve()

    # Arrivals, one at a time

    def _serve(self) -> None:
        """Processes the next arrival, or a tick if nothing arrives before the deadline."""
        run, machine, clock = self._run, self._run.machine, self._run.context.clock
        prompter = self._takes.prompter
        run.context.report_alive()
        run.watch_wall_clock()
        if not run.arrivals.waiting:  # what has arrived may explain an event, or take its explanation away
            run.clips.tick(clock.now_s())
        if machine is not None:
            machine.attended = run.context.attended()
            if run.arrivals.end_requested:
                machine.hold()
        deadline_s = machine.deadline_s if machine else None
        if prompter is not None and (due_s := prompter.due_s) is not None:
            deadline_s = due_s if deadline_s is None else min(due_s, deadline_s)
        now_s = clock.now_s()  # before reading the inbox: later arrivals have later times
        wait_s = IDLE_CHECK_S if deadline_s is None else max(0.0, min(IDLE_CHECK_S, clock.real_s(deadline_s - now_s)))
        arrival = run.arrivals.get(wait_s)
        # Before what they have delayed is judged, whether that arrived or not. But not those that occur while these are
        # stored: on a very busy host they would never end.
        for stall in tuple(run.context.new_stalls()):
            self._observe(stall, now_s if arrival is None else arrival[1])
        machine = self._run.machine  # a stall can end a trial's last attempt
        if arrival is not None:
            message, arrived_s = arrival
            self._process(message, arrived_s)
        elif machine is not None and deadline_s is not None and now_s >= deadline_s:
            if prompter is not None:
                prompter.tick(now_s)
            self._takes.perform(machine.tick(now_s))

    def _process(self, message: Arrival, arrived_s: float) -> None:
        """Processes one arrival. arrived_s: when it came, on the session's clock."""
        run, machine = self._run, self._run.machine
        match message:
            case WakeUp() | Hello():
                pass
            case Stop(cause=cause):
                run.ending = run.ending or self._early_end_reason(EndReason.STOPPED)  # an abort stands
                if machine is not None:
                    self._takes.perform(machine.stop(arrived_s, cause))
            case TranscriptReady():
                self._takes.add_transcript(message, arrived_s)
            case ClipResult(event_seq=event_seq, clip=clip, why=why):
                run.clips.clip_finished(event_seq)
                event = EventClipped(event_seq, clip) if clip else None
                run.append(event or FaultMet("clips", f"the wake event in row {event_seq} has no clip: {why}"))
            case _ if isinstance(message, Command):
                refusal = self._carry_out(message, arrived_s)
                if not isinstance(message, Abort):
                    run.context.answer(message.id, not refusal, refusal)
            case _:
                self._observe(message, arrived_s)

    def _observe(self, observation: Observation, arrived_s: float) -> None:
        """Passes an observation to all that need it. It is logged by the machine, or here if no trial is running."""
        run = self._run
        run.bench_state.observe(observation)
        if run.context.checks is not None:
            run.context.checks.observe(observation)
        self._takes.power.observe(observation)
        microphone = run.context.microphone
        # Only through the air: what has a place on an audio line (audio_s) does not reach the microphone.
        if isinstance(observation, StimulusStarted) and observation.audio_s is None and microphone is not None:
            sound = run.sounds.get(observation.play_id)
            if sound is not None:
                microphone.own_sound(observation.play_id, sound, observation.at.at_s)
        if run.machine is not None:
            if self._takes.prompter is not None and self._takes.prompter.intercept(observation, arrived_s):
                return
            if isinstance(observation, StimulusStarted | StimulusEnded):
                self._takes.check_level(observation)
            self._takes.perform(run.machine.feed(observation, arrived_s))
            return
        if isinstance(observation, SpeechStarted | SpeechEnded):
            run.last_sound_s = max(run.last_sound_s or 0.0, observation.at.at_s)
        run.append(Observed(observation))

    def _carry_out(self, command: Command, now_s: float) -> str:
        """Carries out a command. Returns "" when it is committed, else the reason for refusing it."""
        try:
            command = with_checked_text(command)
        except InputError as error:
            return str(error)
        run, perform = self._run, self._takes.perform
        machine = run.machine
        match command:
            case Pause(by=by, reason=reason):
                if run.paused:
                    return "the run is already paused"
                run.paused, run.pause_reason = True, reason or f"by {by}"
                if machine is not None:
                    machine.hold()
                run.append(Paused(reason, by))
                run.show_machine()
            case Resume(by=by):
                if not run.paused:
                    return "the run is not paused"
                run.append(Resumed(by))
                run.paused = False
                if machine is not None:
                    perform(machine.release(now_s))
            case Skip(reason=reason):
                if machine is None:
                    return "no trial is running"
                if not reason.strip():
                    return "a skip needs a reason"
                perform(machine.skip(now_s, reason))
            case Abort(by=by):
                self._aborts.append(command)
                run.ending, run.abort_cause = self._early_end_reason(EndReason.ABORTED), f"operator: by {by}"
                if machine is not None:
                    perform(machine.abort(now_s, f"by {by}"))
            case AnswerOperator(trial_id=trial_id, attempt=attempt):
                if machine is None or machine.trial.id != trial_id or not machine.accepts_answer(attempt):
                    return f"attempt {attempt} of {trial_id} has no open question"
                answer = OperatorAnswer(command.by or "operator", Stamp(now_s), command.recognised, command.heard)
                perform(machine.feed(answer, now_s))
            case Misspoke(trial_id=trial_id, attempt=attempt, by=by):
                return self._takes.interrupt_misspoken(trial_id, attempt, by)
            case WriteNote() | SetMark() | Rerun() | Judge() | Review() | AnswerEffect():
                row = row_for(command, run.resumption, run.trials)
                if isinstance(row, str):
                    return row
                if row is not None:
                    run.append(row)
                if (
                    machine is not None
                    and isinstance(row, EffectAnswered)
                    and (machine.trial.id, machine.take_number) == (row.trial_id, row.take)
                ):
                    perform(machine.effect_answered(now_s, row.attempt))
            case Hello() | Replay():
                return "the session does not accept this request"
        return ""
