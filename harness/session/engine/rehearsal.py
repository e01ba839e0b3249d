"""Whether a scenario's sounds can be made: asked by `validate` and before a run, so that both refuse the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.errors import InputError, InputProblems, LanguageError, Place, PluginError, VoiceError
from harness.model.scenario import Query, Scenario, TrialTemplate
from harness.model.stimulus import Ambience, Recording, SpokenText, StimulusRecipe, VoiceSpec
from harness.model.trial import Trial
from harness.session.engine.assemble import renderer

_ANY_TEXT = "hello"
"""What a voice says where it is not known what a device wakes to."""


def refuse_unplayable(scenario: Scenario, trials: Iterable[Trial]) -> None:
    """Renders one stimulus of every voice and of every recording; InputProblems with all that cannot be made."""
    _refuse(scenario, ((trial.template, trial.recipe, _sort(trial)) for trial in trials))


def refuse_unspeakable(scenario: Scenario) -> None:
    """The same without a bench: every voice says something of the scenario, in whatever language it has.

    What depends on a device – its language, its wake phrase – shows only with a bench.
    """
    spoken = dict.fromkeys(_spoken(scenario))
    recipes = ((name, StimulusRecipe(SpokenText(text), None, voice), voice) for name, text, voice in spoken)
    _refuse(scenario, recipes, languages=False)


def _refuse(
    scenario: Scenario,
    recipes: Iterable[tuple[str, StimulusRecipe, object]],
    *,
    languages: bool = True,
) -> None:
    """recipes: with the trial that they belong to, and what they have in common with others that need no try.

    languages: whether they name the language that will be asked for; else it may be the device's.
    """
    renders, tried = renderer(), set[object]()
    problems: list[InputError] = []
    for name, recipe, sort in recipes:
        if sort in tried:
            continue
        tried.add(sort)
        try:
            renders.render(recipe)
        except (VoiceError, PluginError) as error:
            named = languages or recipe.voice.language != VoiceSpec().language
            if named or not isinstance(error, LanguageError):
                what = f"trial {name!r} cannot be spoken: {error.what}"
                problems.append(InputError(what, place=Place(scenario.path), remedy=error.remedy))
        except InputError as error:
            problems.append(error)
    if problems:
        raise InputProblems(problems) if len(problems) > 1 else problems[0]


def _sort(trial: Trial) -> object:
    """What stimuli have in common that either can all be made or not."""
    match trial.recipe.query:
        case SpokenText():
            return trial.recipe.voice
        case Recording() as recording:
            return trial.recipe.voice, recording
        case Ambience():
            return trial.template, trial.listening.source if trial.listening else ""


def _spoken(scenario: Scenario) -> Iterator[tuple[str, str, VoiceSpec]]:
    """A trial, a text and a voice, for every voice that may say it."""
    queries = {query.id: query for query in scenario.queries}
    varied = [value for axis in scenario.matrix.axes if axis.name == "voice" for value in axis.values]
    for template in scenario.trials:
        query = queries.get(template.query)
        text = _text(template, query)
        if text is not None:
            own = template.voice or (query.voice if query else None) or scenario.defaults.voice
            voices = varied if varied and not template.recordings else [own]
            yield from ((template.id, text, voice) for voice in voices if isinstance(voice, VoiceSpec))
        if template.ambient is not None:
            if (probe := template.ambient.probe) is not None and not probe.recording:
                yield template.id, probe.phrase or _ANY_TEXT, probe.voice or scenario.defaults.voice
            for source in template.ambient.sources:
                yield from ((template.id, said, voice) for said in source.texts[:1] for voice in source.voices)


def _text(template: TrialTemplate, query: Query | None) -> str | None:
    """What a template's voice says; None where it says nothing of its own."""
    if query is not None:
        return query.utterance.text if isinstance(query.utterance, SpokenText) else None
    return None if template.recordings or template.ambient else template.phrase or _ANY_TEXT
