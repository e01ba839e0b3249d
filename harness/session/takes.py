"""How one take is played: its sound is rendered, its machine is begun, and the machine's actions are carried out.

    Takes.play:  pauses of the run ──► prime ──► stimulus ──► settings, stands, power ──► `_run_machine`

    Conductor._serve ── arrivals, deadlines ──► machine ── actions ──► `perform` ──► log, players, clips
                                                   ▲                       │
                                                   └────── results ────────┘

All of this happens in the conductor's thread, except `Rendering`, which has a thread of its own.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import numpy as np

from harness.base import threads
from harness.base.ports import Renders
from harness.model.errors import DeviceError, HarnessError
from harness.model.feed import StateWord
from harness.model.observation import StimulusEnded, StimulusStarted
from harness.model.record import (
    AttemptStarted,
    EndReason,
    FaultMet,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    StimulusStored,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import TrialKind
from harness.model.stimulus import AIR_HZ, RenderedStimulus, SpokenText, Waveform
from harness.model.trial import ListeningSpec, Outcome, Trial
from harness.session.levels import requested_dbfs, why_silent
from harness.session.listening_trial import ListeningMachine
from harness.session.pauses import NOT_SET_UP, CheckPause, FaultPause, LifeCheck, UnfitPause
from harness.session.prompting import Prompter, words_to_say
from harness.session.query_trial import TrialMachine
from harness.session.resumption import TakeKey
from harness.session.run import Machine, Run, TranscriptReady, WakeUp
from harness.session.set_up import PowerCycling, TrialSettings
from harness.session.take import Action, FreezeResponse, SayClosing, StimulusTiming, StopStimulus, trial_verdict

PRIME_BY = "the memory probe"
"""The name in the rows for who requests another take of a prime."""
SET_UP_SOURCE = "the bench"
"""Source of faults in setting up a trial, in the rows."""
MARGIN_S = 0.2
"""Sound that a clip keeps before and after the response."""
TO_BE_SPOKEN = RenderedStimulus(Waveform(np.zeros(0, dtype=np.float32), AIR_HZ), (), "")
"""Placeholder for a stimulus that a person will speak."""


class Rendering:
    """Renders the sounds of trials ahead, in a separate thread, in the order in which they are needed."""

    def __init__(self, renders: Renders, on_rendered: Callable[[Trial, RenderedStimulus], None] | None) -> None:
        self._renders = renders
        self._on_rendered = on_rendered
        self._pool = threads.pool("rendering")
        self._stimuli: dict[str, Future[RenderedStimulus]] = {}
        self._closings: dict[str, Future[RenderedStimulus]] = {}

    def prerender(self, trial: Trial) -> None:
        """Starts rendering the trial's sounds, unless this has begun."""
        if trial.id not in self._stimuli:
            self._stimuli[trial.id] = self._pool.submit(self._render, trial)
        closing = None if trial.talker else trial.close_dialogue
        if closing is not None and closing.say is not None and trial.id not in self._closings:
            recipe = replace(trial.recipe, query=SpokenText(closing.say), wake_phrase=None, noise=None, opening=None)
            self._closings[trial.id] = self._pool.submit(self._renders.render, recipe)

    def stimulus(self, trial: Trial) -> Future[RenderedStimulus]:
        """The trial's stimulus. Its result raises VoiceError or InputError when rendering fails."""
        self.prerender(trial)
        return self._stimuli[trial.id]

    def closing(self, trial: Trial) -> RenderedStimulus:
        """Waits for the words that close the trial's dialogue."""
        self.prerender(trial)
        return self._closings[trial.id].result()

    def forget(self, trial: Trial) -> None:
        """Frees the sounds of a finished trial."""
        self._stimuli.pop(trial.id, None)
        self._closings.pop(trial.id, None)

    def close(self) -> None:
        """Waits for the current rendering."""
        self._pool.shutdown(cancel_futures=True)

    def _render(self, trial: Trial) -> RenderedStimulus:
        if trial.talker:
            return TO_BE_SPOKEN
        rendered = self._renders.render(trial.recipe)
        if self._on_rendered is not None:
            self._on_rendered(trial, rendered)
        return rendered


class Takes:
    """The takes of a run, one after another.

    - liveness: signs of life of the devices.
    - prompter: asks the talker of a trial to speak; None if nobody speaks.
    - query_cut_s: when a query was cut short. Its answer may still come, so the next sound waits a context wait.
    - transcribing: (trial, take, attempt) of responses that the harness's recogniser is transcribing.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rendering = Rendering(run.context.renders, run.context.on_rendered)
        self.liveness = run.resumption.liveness
        self.liveness.add_trials(run.trials.values())
        self.power = PowerCycling(run, self.liveness)
        self.life_check = LifeCheck(
            run,
            self.liveness,
            self._play_life_check,
            lambda trial, device: bool(self.power.revive(trial, "no sign of life", [device])),
        )
        self._unfit = UnfitPause(run)
        self._checks = CheckPause(run)
        self._faults = FaultPause(run, self.power.revive)
        self._last_played = ""
        self._attempt_row: AttemptStarted | None = None
        self._player_started_s: dict[str, float] = {}
        self.query_cut_s: float | None = None
        self.transcribing: set[tuple[str, int, int]] = set()
        self.settings = TrialSettings(run)
        spoken = any(trial.talker for trial in run.trials.values())
        self.prompter = Prompter(run, self.perform) if spoken else None

    def restore(self) -> None:
        """Switches power on and restores all settings. Failures are logged as faults."""
        self.power.restore("the run ends")
        for fault in self.settings.restore():
            self._run.append(fault)

    def abandon(self) -> None:
        """As `restore`, when the run has failed and its log may be unusable."""
        self.power.abandon()
        for fault in self.settings.restore():
            sys.stderr.write(f"{fault.source}: {fault.what}\n")

    def close(self) -> None:
        self._rendering.close()

    def play(self, take: TakeKey, following: Iterable[TakeKey], resumed: bool = False) -> None:
        """Plays one take to its end, or until the run ends. A take that was begun ends with an aborted run."""
        run = self._run
        self._play_take(take, following, resumed)
        if run.ending is EndReason.ABORTED and take in run.resumption.begun and take not in run.resumption.finished:
            self._finish(take, Outcome.ABORTED, run.abort_cause)

    def _play_take(self, take: TakeKey, following: Iterable[TakeKey], resumed: bool) -> None:
        """As `play`. The take may also end without a sound, with the reason in its verdict."""
        run = self._run
        if not run.trials[take[0]].is_follow_up:  # nothing may be played between a prime and its follow-up
            # All three: if one of them pauses the run, the others are still due.
            has_interrupted = [
                self.life_check.check_silent_devices(),
                self._checks.check_if_due(),
                self._unfit.pause_while_unfit(),
            ]
            resumed = resumed or any(has_interrupted)
            if run.ending is not None:
                return
        if not self._ensure_primed(take):
            return
        trial, number = run.trials[take[0]], take[1]
        earlier_attempts = run.resumption.attempts.get(take, {})
        if take not in run.resumption.begun:
            run.append(TrialStarted(trial.id, number))
        if (verdict := trial_verdict(trial.reprompt, earlier_attempts)) is not None:  # the engine ended before that row
            deciding = verdict.deciding_attempt
            last = max(earlier_attempts)
            run.append(TrialFinished(trial.id, number, verdict.outcome, last, deciding, verdict.cause))
            self.query_cut_s, self._last_played = run.now_s(), ""  # its answer may still come, and a follow-up is late
        elif needless := self._why_needless(trial, number):
            self._finish(take, Outcome.SKIPPED, f"needless: {needless}")
        else:
            self._play_stimulus(trial, number, following, resumed)
        if (row := run.resumption.finished.get(take)) is not None:
            self.power.trial_finished(trial, row)
            if self._faults.pause_after(trial, row):
                self._last_played = ""  # a follow-up needs its prime again

    def _why_needless(self, trial: Trial, number: int) -> str:
        """Why a take need not be played; "" if it must be, as when a person repeats a trial that counts."""
        earlier = self._run.resumption.finished.get((trial.id, number - 1))
        is_repeated = earlier is not None and earlier.outcome is Outcome.COUNTED
        return "" if trial.listening is None or is_repeated else self._run.context.why_needless(trial)

    def _play_stimulus(self, trial: Trial, number: int, following: Iterable[TakeKey], resumed: bool) -> None:
        """Renders the stimulus of a take, sets up the bench, and runs its machine."""
        run, take = self._run, (trial.id, number)
        stimulus = self._stimulus(trial, following)
        if isinstance(stimulus, HarnessError):
            run.append(FaultMet("stimulus", str(stimulus)))
            self._finish(take, Outcome.SKIPPED, f"no_stimulus: {stimulus.what}")
        elif stimulus is not None and self._set_up(trial, take):
            run.stimulus, run.noises = stimulus.waveform, stimulus.beside
            if trial.listening is None:
                self._play_query_trial(trial, number, stimulus, resumed)
            else:
                self._play_listening_trial(trial, trial.listening, number, stimulus)
            self._rendering.forget(trial)

    def _play_life_check(self, trial: Trial) -> None:
        """Plays a life check: a stimulus that the device has reacted to before."""
        stimulus = self._stimulus(trial, ())
        if isinstance(stimulus, HarnessError) or stimulus is None or trial.listening is None:
            return
        run = self._run
        if not self._set_up(trial):
            return
        run.stimulus, run.noises = stimulus.waveform, stimulus.beside
        has_phrase = trial.recipe.wake_phrase is not None
        timing = StimulusTiming.of_listening(stimulus, TrialKind.COMMAND if has_phrase else TrialKind.WAKE)
        machine = ListeningMachine(trial, 1, timing)
        begins_s = self._begins_s(trial, trial.reprompt.context_wait_s)
        self._run_machine(
            machine, lambda now_s: machine.begin(now_s, not_before_s=begins_s, bench_state=run.bench_state)
        )
        self._rendering.forget(trial)

    def _set_up(self, trial: Trial, take: TakeKey | None = None) -> bool:
        """Power cycles devices that are due, and sets devices and stands. False if the run ends first.

        A failure ends the take (False), whose result would be for another place or setting. take: None for a life
        check, which has no verdict, and before which nothing is power cycled.
        """
        run = self._run
        # While the run is paused, a person may be at what would be switched, moved or set.
        is_changed = run.context.power or run.context.stands or run.resumption.originals
        if is_changed and not run.await_resume():
            return False
        try:
            if take is not None and not self.power.cycle_before(trial):
                return False
            return self.settings.apply(trial)
        except DeviceError as error:
            run.append(FaultMet(SET_UP_SOURCE, str(error)))
            if take is not None:
                self._finish(take, Outcome.INTERRUPTED, f"{NOT_SET_UP}: {error.what}")
            return False

    def _finish(self, take: TakeKey, outcome: Outcome, cause: str) -> None:
        """Writes the verdict on a take that will not continue."""
        trial_id, number = take
        attempts = max(self._run.resumption.attempts.get(take, {}), default=0)
        self._run.append(TrialFinished(trial_id, number, outcome, attempts, deciding_attempt=None, cause=cause))

    def _play_query_trial(self, trial: Trial, number: int, stimulus: RenderedStimulus, resumed: bool) -> None:
        run = self._run
        earlier_attempts = tuple(run.resumption.attempts.get((trial.id, number), {}).values())
        timing = StimulusTiming.of(stimulus)
        machine = TrialMachine(
            trial,
            number,
            timing,
            earlier_attempts=earlier_attempts,
            attended=run.context.attended(),
            link_wait_s=self._faults.link_wait_s,
        )
        begins_s, query_cut_s = self._begins_s(trial, self._quiet_before_s(trial, resumed)), self.query_cut_s
        last_sound_s = run.last_sound_s if earlier_attempts or trial.memory or query_cut_s is not None else None
        self._run_machine(
            machine,
            lambda now_s: machine.begin(
                now_s,
                not_before_s=begins_s,
                bench_state=run.bench_state,
                last_sound_s=last_sound_s,
                query_cut_s=query_cut_s,
            ),
        )

    def _play_listening_trial(
        self, trial: Trial, listening: ListeningSpec, number: int, stimulus: RenderedStimulus
    ) -> None:
        run = self._run
        earlier_attempts = tuple(run.resumption.attempts.get((trial.id, number), {}).values())
        # Not ambient sound: it is long, and can be rendered again from its recipe.
        is_worth_storing = listening.kind is not TrialKind.AMBIENT and not trial.talker
        if is_worth_storing and stimulus.sha256 not in run.resumption.stored_stimuli:
            sound = stimulus.as_heard or stimulus.waveform
            run.append(StimulusStored(stimulus.sha256, run.save_clip(sound, run.now_s())))
        timing = StimulusTiming.of_listening(stimulus, listening.kind)
        link_wait_s = self._faults.link_wait_s
        machine = ListeningMachine(trial, number, timing, earlier_attempts=earlier_attempts, link_wait_s=link_wait_s)
        through_air = not all(target.injected for target in listening.targets)
        begins_s = self._begins_s(trial, run.context.between_trials_s if through_air else None)
        self._run_machine(
            machine, lambda now_s: machine.begin(now_s, not_before_s=begins_s, bench_state=run.bench_state)
        )
        for row in run.context.decisions():
            run.append(row)

    def _run_machine(self, machine: Machine, begin: Callable[[float], list[Action]]) -> None:
        """Runs a machine until it has finished. begin: begins it at a given time, and returns its first actions."""
        run = self._run
        run.machine = machine
        if run.paused or run.arrivals.end_requested:
            machine.hold()
        self.perform(begin(run.now_s()))
        while not machine.finished:
            run.serve()
        if machine.last_sound_s is not None:
            run.last_sound_s = machine.last_sound_s
        self.query_cut_s = machine.query_cut_s
        run.machine = run.stimulus = None
        run.sounds.clear()

    def _begins_s(self, trial: Trial, wait_s: float | None) -> float | None:
        """When a trial may make its first sound. wait_s: wait since the last sound of the bench; None: no wait."""
        last_s, query_cut_s = self._run.last_sound_s, self.query_cut_s
        earliest_s: list[float] = []
        if last_s is not None and wait_s is not None:
            earliest_s.append(last_s + wait_s)
        if query_cut_s is not None:
            earliest_s.append(query_cut_s + trial.reprompt.context_wait_s)
        return max(earliest_s, default=None)

    def _stimulus(self, trial: Trial, following: Iterable[TakeKey]) -> RenderedStimulus | HarnessError | None:
        """The trial's sound, or why there is none. None if the run ends first."""
        run = self._run
        rendering = self._rendering.stimulus(trial)
        for trial_id, _ in following:
            self._rendering.prerender(run.trials[trial_id])
        if not rendering.done():
            rendering.add_done_callback(lambda _: run.arrivals.put(WakeUp()))
            run.show(StateWord.PREPARING, "rendering the stimulus", trial.id)
        while not rendering.done() and run.ending is None:
            run.serve()
        if run.ending is not None:
            return None
        try:
            return rendering.result()
        except HarnessError as error:
            self._rendering.forget(trial)
            return error

    # Memory probes: a follow-up is played only directly after its prime, and only if the prime was answered

    def _ensure_primed(self, take: TakeKey) -> bool:
        """Plays the prime of a follow-up again, if something came between. Returns whether the take may be played now.

        Something came between after an interruption, or in a re-run. Then the prime gets a further take. A follow-up
        whose prime failed ends here with the reason.
        """
        run, resumption = self._run, self._run.resumption
        trial = run.trials[take[0]]
        last_played, self._last_played = self._last_played, trial.id
        part = trial.memory
        if part is None or not part.primed_by:
            return True
        if trial_verdict(trial.reprompt, resumption.attempts.get(take, {})) is not None:
            return True  # already played; only the trial's verdict is missing
        prime = part.primed_by
        while last_played != prime and run.ending is None:
            if not resumption.is_in_play(prime):
                run.append(RerunAsked(prime, resumption.next_take(prime), PRIME_BY))
            for pending_take in resumption.pending():
                if pending_take[0] == prime and run.ending is None:
                    self.play(pending_take, (take,))
            last_played = self._last_played  # not the prime if it ended in a fault, after which it is tried again
        if run.ending is not None:
            return False
        self._last_played = trial.id
        primes = [row for row in resumption.finished.values() if row.trial_id == prime]
        ended = max(primes, key=lambda row: row.take, default=None)
        if ended is not None and ended.outcome.answered:
            return True
        why = "was not played" if ended is None else f"ended as {ended.outcome.value}"
        self._finish(take, Outcome.SKIPPED, f"not_primed: {prime} {why}")
        return False

    def _quiet_before_s(self, trial: Trial, resumed: bool) -> float:
        """Quiet before the trial begins.

        A prime waits as long as a repeated query. It names its own subject, which replaces what the device remembers
        from an earlier pair; it only must not be taken for a follow-up.
        """
        if trial.memory is not None and trial.is_follow_up:
            return trial.memory.wait_s
        after_pause = resumed or trial.memory is not None
        return trial.reprompt.context_wait_s if after_pause else self._run.context.between_trials_s

    def interrupt_misspoken(self, trial_id: str, attempt: int, by: str) -> str:
        """Ends the attempt of a talker who has misread the prompt. Returns why that is refused; "" if it is done."""
        run, machine = self._run, self._run.machine
        is_current = machine is not None and (machine.trial.id, machine.attempt_number) == (trial_id, attempt)
        if machine is None or not is_current or not machine.trial.talker:
            return f"attempt {attempt} of {trial_id} is not being spoken by a person now"
        if not machine.under_way:
            return "the attempt is over; run the trial again to repeat it"
        self.perform(machine.interrupt(run.now_s(), f"misspoken: by {by}"))
        return ""

    # Actions that the machine requests

    def perform(self, actions: Iterable[Action]) -> None:
        """Carries out the actions of the current take's machine in order, and their consequences."""
        run, machine = self._run, self._run.machine
        todo = deque(actions)
        while todo and machine is not None:
            todo.extend(self._perform_next(todo.popleft(), machine))
            if run.disk_was_full:
                run.disk_was_full = False
                todo.extend(machine.interrupt(run.now_s(), "disk_full"))
        run.show_machine()

    def _perform_next(self, action: Action, machine: Machine) -> Sequence[Action]:
        """Carries out one action. Returns what the machine requests as a consequence."""
        run = self._run
        match action:
            case AttemptStarted(play_id=play_id):
                assert run.stimulus is not None, f"{machine.trial.id} has no stimulus"
                run.sounds[play_id] = run.stimulus
                run.clips.announce_stimulus(machine.trial, play_id, run.stimulus)
                run.show_machine()
                run.append(action)
                self._attempt_row = action
                if self.prompter and machine.trial.talker and not run.disk_was_full:
                    self.prompter.ask(machine, play_id, words_to_say(machine.trial))
                    return ()
                return self._play_sound(machine, play_id, run.noises)
            case SayClosing(text=text, play_id=play_id) if self.prompter and machine.trial.talker:
                self.prompter.ask(machine, play_id, text, closing=True)
            case SayClosing(play_id=play_id):
                try:
                    run.sounds[play_id] = self._rendering.closing(machine.trial).waveform
                except HarnessError as error:
                    run.append(FaultMet("stimulus", str(error)))
                    return machine.play_refused(run.now_s(), play_id, error.what)
                return self._play_sound(machine, play_id, {})
            case StopStimulus():
                for player in run.players():
                    try:
                        player.stop()
                    except DeviceError as error:
                        run.append(FaultMet(player.id, str(error)))
                return self.prompter.stop() if self.prompter else ()
            case FreezeResponse():
                assert isinstance(machine, TrialMachine), f"{machine.trial.id} has no response"
                return self._store_response(action, machine)
            case row:
                run.append(row)
        return ()

    def _play_sound(self, machine: Machine, play_id: str, noises: Mapping[str, Waveform]) -> Sequence[Action]:
        """Starts the sound on every player of the trial. Returns what the machine requests if one of them refuses.

        noises: loudspeaker → noise that it plays at the same time.
        """
        run = self._run
        if run.disk_was_full:
            return ()  # `perform` interrupts the attempt
        sounding: list[str] = []
        noise = [(player, f"{play_id}.noise", sound) for player, sound in noises.items()]
        speech = [(player, play_id, run.sounds[play_id]) for player in machine.trial.players]
        for player, name, sound in (*noise, *speech):
            try:
                run.context.loudspeakers[player].play(name, sound)
            except DeviceError as error:
                run.append(FaultMet(player, str(error)))
                return machine.play_refused(run.now_s(), play_id, error.what, sounding)
            sounding.append(player)
        return ()

    def check_level(self, observation: StimulusStarted | StimulusEnded) -> None:
        """Logs the level of a stimulus that was played completely through the air.

        Interrupts its attempt if the level is wrong, or the device was silent when it should have spoken or played.
        """
        run, context, row = self._run, self._run.context, self._attempt_row
        if row is None or observation.play_id != row.play_id or context.microphone is None or run.machine is None:
            return
        if any(target.injected and target.player == observation.source for target in run.machine.trial.targets):
            return  # the microphone does not hear what goes over a wire
        if isinstance(observation, StimulusStarted):
            self._player_started_s[observation.source] = observation.at.at_s
            return
        started_s, sound = self._player_started_s.pop(observation.source, None), run.sounds.get(observation.play_id)
        if started_s is None or sound is None or not observation.complete:
            return
        try:
            if refusal := why_silent(run.machine.trial, run.machine.call_start_s, started_s, context.microphone):
                self.perform(run.machine.interrupt(run.now_s(), refusal))
                return
            if context.levels is None:
                return
            # A phrase of a second has a level of its own: in P.56, 0.2 s after it are part of it.
            level = context.levels.measure(
                row,
                observation.source,
                sound,
                started_s,
                context.microphone,
                noises=run.noises,
                asked_dbfs=requested_dbfs(run.machine.trial.recipe),
            )
        except DeviceError as error:
            run.append(FaultMet(context.microphone.id, str(error)))
            return
        if level is not None:
            run.append(level)
            if context.levels is not None and (refusal := context.levels.refusal(level)):
                self.perform(run.machine.interrupt(run.now_s(), refusal))

    def _store_response(self, freeze: FreezeResponse, machine: TrialMachine) -> Sequence[Action]:
        """Cuts, stores and names the clip of a response, in this order, and has it transcribed for people."""
        run, context = self._run, self._run.context
        if context.microphone is None:
            return machine.response_lost(run.now_s(), "there is no microphone")
        try:
            waveform, start_s = context.microphone.cut(freeze.starts.at_s - MARGIN_S, freeze.ends.at_s + MARGIN_S)
        except DeviceError as error:
            run.append(FaultMet(context.microphone.id, str(error)))
            return machine.response_lost(run.now_s(), error.what)
        trial_id, take, attempt = machine.trial.id, machine.take_number, freeze.attempt
        clip = run.save_clip(waveform, start_s)
        run.append(ResponseFrozen(trial_id, take, attempt, clip, freeze.starts, freeze.ends, freeze.truncated))
        self._transcribe(machine.trial, take, attempt, lambda: waveform)
        transcribing = (trial_id, take, attempt) in self.transcribing
        return machine.response_frozen(run.now_s(), transcribing=transcribing)

    def _transcribe(self, trial: Trial, take: int, attempt: int, read_sound: Callable[[], Waveform]) -> None:
        transcribe, arrivals = self._run.context.transcribe, self._run.arrivals
        # Not the response of a prime: the harness's recogniser would load the host during the wait.
        if transcribe is not None and not trial.is_prime:
            transcribe(read_sound(), lambda text: arrivals.put(TranscriptReady(trial.id, take, attempt, text)))
            self.transcribing.add((trial.id, take, attempt))

    def resume_transcriptions(self) -> None:
        """Has the responses transcribed whose transcription the end of an earlier run has prevented."""
        run, read_clip = self._run, self._run.context.read_clip
        for (trial_id, take, attempt), clip in run.resumption.untranscribed.items():
            if read_clip is not None and trial_id in run.trials:  # a life check is not in the plan
                try:
                    self._transcribe(run.trials[trial_id], take, attempt, partial(read_clip, clip))
                except HarnessError as error:
                    run.append(FaultMet("clips", f"the response {clip.name} is not transcribed: {error.what}"))

    def add_transcript(self, message: TranscriptReady, arrived_s: float) -> None:
        """Logs the harness's transcription of a response, and notifies the machine that it is ready."""
        run, machine = self._run, self._run.machine
        trial_id, take, attempt = message.trial_id, message.take, message.attempt
        self.transcribing.discard((trial_id, take, attempt))
        run.append(ResponseTranscribed(trial_id, take, attempt, message.text, run.context.recogniser_name))
        if machine is not None and (machine.trial.id, machine.take_number) == (trial_id, take):
            self.perform(machine.transcribed(arrived_s))
