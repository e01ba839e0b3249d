"""How one take is played: its sound is made, a machine is begun for it, and the inbox is served until that is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from harness.model.errors import HarnessError
from harness.model.feed import StateWord
from harness.model.record import EndReason, FaultMet, StimulusStored, TrialFinished, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.stimulus import RenderedStimulus, Waveform
from harness.model.trial import Outcome, Trial
from harness.session.actions import Action, StimulusTiming
from harness.session.listening_trial import ListeningMachine
from harness.session.priming import Priming
from harness.session.query_trial import TrialMachine
from harness.session.rendering import Rendering
from harness.session.stage import Nudge
from harness.session.verdict import trial_verdict

if TYPE_CHECKING:
    from harness.session.conductor import Conductor
    from harness.session.resumption import Take


class Takes:
    """The takes of a conductor, one after another.

    sounds: of the take in play, by the id of the playing; "" is the stimulus. last_sound_s: when the bench was last
    known to sound; None before anything has.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self.rendering = Rendering(conductor.stage.renders, conductor.stage.on_rendered)
        self.sounds: dict[str, Waveform] = {}
        self.last_sound_s: float | None = None
        self._priming = Priming(conductor, self.play)

    def play(self, take: Take, following: Iterable[Take], resumed: bool = False) -> None:
        """Plays one take to its end, or until the run ends."""
        conductor = self._conductor
        if not self._priming.ready(take):
            return
        trial, number = conductor.trials[take[0]], take[1]
        before = conductor.standing.attempts.get(take, {})
        if take not in conductor.standing.begun:
            conductor.append(TrialStarted(trial.id, number))
        verdict = trial_verdict(trial.reprompt, before)
        if verdict is not None:
            conductor.append(
                TrialFinished(trial.id, number, verdict.outcome, max(before), verdict.deciding_attempt, verdict.cause)
            )
            return
        needless = conductor.stage.needless(trial) if trial.listening is not None else ""
        if needless:
            cause = f"needless: {needless}"
            conductor.append(TrialFinished(trial.id, number, Outcome.SKIPPED, max(before, default=0), None, cause))
            return
        stimulus = self._stimulus(trial, following)
        if isinstance(stimulus, HarnessError):
            conductor.append(FaultMet("stimulus", str(stimulus)))
            cause = f"no_stimulus: {stimulus.what}"
            conductor.append(TrialFinished(trial.id, number, Outcome.SKIPPED, max(before, default=0), None, cause))
        elif stimulus is None and conductor.ending is EndReason.ABORTED:
            conductor.append(
                TrialFinished(trial.id, number, Outcome.ABORTED, max(before, default=0), None, conductor.aborted)
            )
        if not isinstance(stimulus, RenderedStimulus):
            return
        self.sounds[""] = stimulus.waveform
        if trial.listening is None:
            wait_s = self._priming.wait_s(trial, resumed)
            asking = conductor.machine = TrialMachine(
                trial,
                number,
                StimulusTiming.of(stimulus),
                before=tuple(before.values()),
                attended=conductor.stage.attended(),
            )
            last_sound_s = self.last_sound_s if before or trial.memory else None
            self._run(
                lambda now_s: asking.begin(
                    now_s,
                    not_before_s=self._after_last_sound(wait_s),
                    lost=conductor.seen.lost,
                    last_sound_s=last_sound_s,
                )
            )
        else:
            self._keep_sound(trial.listening.kind, stimulus)
            timing = StimulusTiming.of_listening(stimulus, trial.listening.kind)
            heard = conductor.machine = ListeningMachine(trial, number, timing, before=tuple(before.values()))
            through_air = not all(target.injected for target in trial.listening.targets)
            begins_s = self._after_last_sound(conductor.stage.between_trials_s) if through_air else None
            self._run(lambda now_s: heard.begin(now_s, not_before_s=begins_s, seen=conductor.seen))
            for row in conductor.stage.decisions():
                conductor.append(row)
        self.rendering.forget(trial)

    def _run(self, begin: Callable[[float], list[Action]]) -> None:
        """From the machine's beginning to its end."""
        conductor = self._conductor
        machine = conductor.machine
        assert machine is not None
        if conductor.paused:
            machine.hold()
        conductor.perform(begin(conductor.stage.clock.now_s()))
        while not machine.finished:
            conductor.pump()
        if machine.last_sound_s is not None:
            self.last_sound_s = machine.last_sound_s
        conductor.machine = None
        self.sounds.clear()

    def _after_last_sound(self, wait_s: float) -> float | None:
        return None if self.last_sound_s is None else self.last_sound_s + wait_s

    def _keep_sound(self, kind: TrialKind, stimulus: RenderedStimulus) -> None:
        """The sound of a wake or command stimulus is kept, once; ambient sound can be made again from its recipe."""
        conductor = self._conductor
        if kind is not TrialKind.AMBIENT and stimulus.sha256 not in conductor.standing.stored:
            clip = conductor.room.write(
                lambda: conductor.stage.log.save_clip(stimulus.waveform, conductor.stage.clock.now_s())
            )
            conductor.append(StimulusStored(stimulus.sha256, clip))

    def _stimulus(self, trial: Trial, following: Iterable[Take]) -> RenderedStimulus | HarnessError | None:
        """The trial's sound, or why there is none; None when the run ends meanwhile."""
        conductor = self._conductor
        made = self.rendering.stimulus(trial)
        for trial_id, _ in following:
            self.rendering.ahead(conductor.trials[trial_id])
        if not made.done():
            made.add_done_callback(lambda _: conductor.arrivals.put(Nudge()))
            conductor.show(StateWord.PREPARING, "makes the stimulus", trial.id)
        while not made.done() and conductor.ending is None:
            conductor.pump()
        if conductor.ending is not None:
            return None
        try:
            return made.result()
        except HarnessError as error:
            self.rendering.forget(trial)
            return error
