"""How one take is played: its sound is made, a machine is begun for it, and arrivals are served until that is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.model.errors import HarnessError
from harness.model.feed import StateWord
from harness.model.record import EndReason, FaultMet, StimulusStored, TrialFinished, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.stimulus import RenderedStimulus
from harness.model.trial import Listening, Outcome, Trial
from harness.session.actions import Action, StimulusTiming
from harness.session.life_check import LifeCheck
from harness.session.listening_trial import ListeningMachine
from harness.session.patient_log import PatientLog
from harness.session.priming import Priming
from harness.session.query_trial import TrialMachine
from harness.session.reception import Reception
from harness.session.rendering import Rendering
from harness.session.resumption import Take
from harness.session.run import Run
from harness.session.screen import Machine
from harness.session.stage import Nudge
from harness.session.stagehand import Stagehand
from harness.session.verdict import trial_verdict


class Takes:
    """The takes of a run, one after another."""

    def __init__(
        self, run: Run, log: PatientLog, rendering: Rendering, stagehand: Stagehand, reception: Reception
    ) -> None:
        self._run = run
        self._log = log
        self._rendering = rendering
        self._stagehand = stagehand
        self._reception = reception
        self._priming = Priming(run, log, self.play)
        self._life = LifeCheck(run, log, reception, self._check)

    def play(self, take: Take, following: Iterable[Take], resumed: bool = False) -> None:
        """Plays one take to its end, or until the run ends."""
        run = self._run
        part = run.trials[take[0]].memory
        if part is None or not part.primed_by:  # nothing may come between a prime and its follow-up
            resumed |= self._life.settle()
            if run.ending is not None:
                return
        if not self._priming.ready(take):
            return
        run.liveness.begin()
        trial, number = run.trials[take[0]], take[1]
        before = run.standing.attempts.get(take, {})
        if take not in run.standing.begun:
            self._log.append(TrialStarted(trial.id, number))
        if (verdict := trial_verdict(trial.reprompt, before)) is not None:
            deciding = verdict.deciding_attempt
            self._log.append(TrialFinished(*take, verdict.outcome, max(before), deciding, verdict.cause))
            return
        if trial.listening is not None and (needless := run.stage.needless(trial)):
            self._finish(take, Outcome.SKIPPED, f"needless: {needless}")
            return
        stimulus = self._stimulus(trial, following)
        if isinstance(stimulus, HarnessError):
            self._log.append(FaultMet("stimulus", str(stimulus)))
            self._finish(take, Outcome.SKIPPED, f"no_stimulus: {stimulus.what}")
        elif stimulus is not None:
            run.sounds[""] = stimulus.waveform
            if trial.listening is None:
                self._ask(trial, number, stimulus, resumed)
            else:
                self._let_listen(trial, trial.listening, number, stimulus)
            self._rendering.forget(trial)
        elif run.ending is EndReason.ABORTED:
            self._finish(take, Outcome.ABORTED, run.aborted)
        if take in run.standing.finished:
            run.liveness.finished(trial, run.standing.finished[take])

    def settle(self) -> None:
        """After the last take: what devices let pass without a sign of life may have to be played again."""
        self._life.settle(at_end=True)

    def _check(self, trial: Trial) -> None:
        """Plays what a device is known to react to."""
        stimulus = self._stimulus(trial, ())
        if isinstance(stimulus, HarnessError) or stimulus is None or trial.listening is None:
            return
        run = self._run
        run.sounds[""] = stimulus.waveform
        has_phrase = trial.recipe.wake_phrase is not None
        timing = StimulusTiming.of_listening(stimulus, TrialKind.COMMAND if has_phrase else TrialKind.WAKE)
        machine = ListeningMachine(trial, 1, timing)
        begins_s = self._after_last_sound(trial.reprompt.context_wait_s)
        self._play(machine, lambda now_s: machine.begin(now_s, not_before_s=begins_s, seen=run.seen))
        self._rendering.forget(trial)

    def _finish(self, take: Take, outcome: Outcome, cause: str) -> None:
        """The verdict on a take that is not played on."""
        attempts = max(self._run.standing.attempts.get(take, {}), default=0)
        self._log.append(TrialFinished(*take, outcome, attempts, None, cause))

    def _ask(self, trial: Trial, number: int, stimulus: RenderedStimulus, resumed: bool) -> None:
        """Plays a query trial."""
        run = self._run
        before = tuple(run.standing.attempts.get((trial.id, number), {}).values())
        timing = StimulusTiming.of(stimulus)
        machine = TrialMachine(trial, number, timing, before=before, attended=run.stage.attended())
        begins_s = self._after_last_sound(self._priming.wait_s(trial, resumed))
        last_sound_s = run.last_sound_s if before or trial.memory else None
        self._play(
            machine,
            lambda now_s: machine.begin(now_s, not_before_s=begins_s, lost=run.seen.lost, last_sound_s=last_sound_s),
        )

    def _let_listen(self, trial: Trial, listening: Listening, number: int, stimulus: RenderedStimulus) -> None:
        """Plays a wake, command or ambient trial."""
        run = self._run
        before = tuple(run.standing.attempts.get((trial.id, number), {}).values())
        self._keep_sound(listening.kind, stimulus)
        timing = StimulusTiming.of_listening(stimulus, listening.kind)
        machine = ListeningMachine(trial, number, timing, before=before)
        through_air = not all(target.injected for target in listening.targets)
        begins_s = self._after_last_sound(run.stage.between_trials_s) if through_air else None
        self._play(machine, lambda now_s: machine.begin(now_s, not_before_s=begins_s, seen=run.seen))
        for row in run.stage.decisions():
            self._log.append(row)

    def _play(self, machine: Machine, begin: Callable[[float], list[Action]]) -> None:
        """From the machine's beginning to its end."""
        run = self._run
        run.machine = machine
        if run.paused:
            machine.hold()
        self._stagehand.perform(begin(run.stage.clock.now_s()))
        while not machine.finished:
            self._reception.serve()
        if machine.last_sound_s is not None:
            run.last_sound_s = machine.last_sound_s
        run.machine = None
        run.sounds.clear()

    def _after_last_sound(self, wait_s: float) -> float | None:
        return None if self._run.last_sound_s is None else self._run.last_sound_s + wait_s

    def _keep_sound(self, kind: TrialKind, stimulus: RenderedStimulus) -> None:
        """The sound of a wake or command stimulus is kept, once; ambient sound can be made again from its recipe."""
        if kind is not TrialKind.AMBIENT and stimulus.sha256 not in self._run.standing.stored:
            clip = self._log.save_clip(stimulus.waveform, self._run.stage.clock.now_s())
            self._log.append(StimulusStored(stimulus.sha256, clip))

    def _stimulus(self, trial: Trial, following: Iterable[Take]) -> RenderedStimulus | HarnessError | None:
        """The trial's sound, or why there is none; None when the run ends meanwhile."""
        run = self._run
        made = self._rendering.stimulus(trial)
        for trial_id, _ in following:
            self._rendering.ahead(run.trials[trial_id])
        if not made.done():
            made.add_done_callback(lambda _: run.arrivals.put(Nudge()))
            run.show(StateWord.PREPARING, "makes the stimulus", trial.id)
        while not made.done() and run.ending is None:
            self._reception.serve()
        if run.ending is not None:
            return None
        try:
            return made.result()
        except HarnessError as error:
            self._rendering.forget(trial)
            return error
