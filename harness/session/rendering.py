"""Stimuli are rendered ahead in a thread of their own, so that no trial waits for a voice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from harness.base.ports import Renders
from harness.model.stimulus import RenderedStimulus, SpokenText
from harness.model.trial import Trial


class Rendering:
    """The sounds of trials, made in the order in which they are asked for. `close` waits for the one being made."""

    def __init__(self, renders: Renders, on_rendered: Callable[[Trial, RenderedStimulus], None] | None) -> None:
        self._renders = renders
        self._on_rendered = on_rendered
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rendering")
        self._made: dict[str, Future[RenderedStimulus]] = {}
        self._closings: dict[str, Future[RenderedStimulus]] = {}

    def ahead(self, trial: Trial) -> None:
        """Begins to make the trial's sounds, unless they are being made already."""
        if trial.id not in self._made:
            self._made[trial.id] = self._pool.submit(self._stimulus, trial)
        close = trial.close_dialogue
        if close is not None and close.say is not None and trial.id not in self._closings:
            recipe = replace(trial.recipe, query=SpokenText(close.say), wake_phrase=None, noise=None)
            self._closings[trial.id] = self._pool.submit(self._renders.render, recipe)

    def stimulus(self, trial: Trial) -> Future[RenderedStimulus]:
        """The trial's stimulus; its result raises VoiceError or InputError when it cannot be made."""
        self.ahead(trial)
        return self._made[trial.id]

    def closing(self, trial: Trial) -> RenderedStimulus:
        """The words that close the trial's dialogue, waited for."""
        self.ahead(trial)
        return self._closings[trial.id].result()

    def forget(self, trial: Trial) -> None:
        """The trial is over; its sounds need no room any more."""
        self._made.pop(trial.id, None)
        self._closings.pop(trial.id, None)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _stimulus(self, trial: Trial) -> RenderedStimulus:
        rendered = self._renders.render(trial.recipe)
        if self._on_rendered is not None:
            self._on_rendered(trial, rendered)
        return rendered
