"""Trains understanders by name, scores them on held-out utterances, and compares them on one corpus."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from harness.base.plugins import Group, checked_settings, load
from harness.base.ports import LearnsFromSound, Understander
from harness.model.errors import EngineError, InputError, InputProblems, Place, PluginError
from harness.model.frozen import frozen
from harness.model.numbers import counted
from harness.model.offline import Said
from harness.model.understanding import Corpus, Prediction, Utterance
from harness.sound.sound_files import UnusableSound, open_sound
from harness.statistics.intervals import Interval
from harness.understanding.comparison import Metric
from harness.understanding.counts import Rule, ValueRule, count_frame, total
from harness.understanding.figures import (
    ZERO,
    FrameFigures,
    accuracy_interval,
    cer_interval,
    frame_figures,
    pooled_f1_interval,
)
from harness.understanding.grammar import fingerprint
from harness.understanding.models.model_folder import LoadedUnderstander, ModelFacts
from harness.understanding.scoring import collect_samples
from harness.understanding.splitting import stratified

RATE_HZ = 16_000
"""Sample rate of the sounds that a system learns from."""
RULE = Rule(values=ValueRule.NONE)


def with_predictions(utterances: Iterable[Utterance], predictions: Iterable[Prediction]) -> tuple[Utterance, ...]:
    """The utterances, with predicted intents and tags in place of those of gold."""
    return tuple(
        replace(utterance, intents=prediction.intents, tags=prediction.tags, slots=None)
        for utterance, prediction in zip(utterances, predictions, strict=True)
    )


def held_out_figures(utterances: Sequence[Utterance], predictions: Sequence[Prediction]) -> FrameFigures:
    """Metrics of predictions, one per utterance, with conlleval chunks and full concepts."""
    guesses = with_predictions(utterances, predictions)
    return frame_figures(
        total(
            count_frame(gold, predicted_utterance, RULE)
            for gold, predicted_utterance in zip(utterances, guesses, strict=True)
        )
    )


DEFAULT = "crf"
PACKAGES = ("voice-harness", "numpy", "python-crfsuite", "scikit-learn", "torch", "transformers")


def make_understander(name: str, settings: Iterable[tuple[str, str]], seed: int) -> Understander:
    """An untrained understander. Raises PluginError, InputError for wrong settings."""
    kind = load(Group.UNDERSTANDERS, name)
    understander: Understander = kind(checked_settings(kind.settings, settings, name), seed=seed)
    return understander


def train(
    name: str,
    settings: Sequence[tuple[str, str]],
    seed: int,
    data: Corpus,
    held_out: Corpus | None,
    tell: Callable[[str], None],
) -> LoadedUnderstander:
    """Trains an understander. InputError without utterances, intents or tags, PluginError."""
    understander = make_understander(name, settings, seed)
    training_utterances = _annotated_utterances(data)
    held_out_utterances = () if held_out is None else _annotated_utterances(held_out)
    started_s = time.process_time()
    understander.fit(training_utterances, held_out_utterances, tell)
    cpu_s = time.process_time() - started_s
    predictions: Sequence[Prediction] = ()
    if held_out_utterances:
        predictions = understander.predict([utterance.words for utterance in held_out_utterances])
    scores = held_out_figures(held_out_utterances, predictions)
    values = (
        (Metric.EMR, scores.intents.exact.value),
        (Metric.SLOT_F1, scores.slots.micro.f1),
        (Metric.SFA, scores.slots.frames.value),
    )
    facts = _facts(
        settings,
        seed,
        (data, training_utterances, held_out_utterances),
        values,
        cpu_s,
        getattr(understander, "notes", ()),
    )
    return LoadedUnderstander(name, understander, facts)


def _facts(
    settings: Sequence[tuple[str, str]],
    seed: int,
    data: tuple[Corpus, Sequence[Utterance], Sequence[Utterance]],
    values: Iterable[tuple[Metric, float | None]],
    cpu_s: float,
    notes: Iterable[str],
) -> ModelFacts:
    """How a model was trained.

    - data: the corpus, its utterances for training, and those held out.
    - values: metrics on the held-out utterances.
    """
    corpus, training_utterances, held_out_utterances = data
    return ModelFacts(
        seed=seed,
        settings=tuple(sorted(dict(settings).items())),
        intents=tuple(sorted({label for utterance in training_utterances for label in utterance.intents or ()})),
        concepts=tuple(
            sorted({tag[2:] for utterance in training_utterances for tag in utterance.tags or () if tag != "O"})
        ),
        corpus=fingerprint(corpus),
        utterances=len(training_utterances),
        held_out_utterances=len(held_out_utterances),
        held_out=tuple((name.value, value) for name, value in values if value is not None),
        cpu_s=round(cpu_s, 3),
        packages=(("python", platform.python_version()), *_packages()),
        notes=tuple(notes),
    )


def audio_class(name: str, settings: Iterable[tuple[str, str]]) -> type[LearnsFromSound]:
    """The class of a trainable system that takes sound. Raises PluginError, InputError for wrong settings."""
    kind: type[LearnsFromSound] = load(Group.AUDIO_UNDERSTANDERS, name)
    checked_settings(kind.settings, settings, name)
    if not hasattr(kind, "fit"):
        raise PluginError(f"{name} cannot be trained here", remedy=f"Train {name} with its own tools")
    return kind


def train_from_sound(
    name: str,
    settings: Sequence[tuple[str, str]],
    seed: int,
    splits: tuple[Corpus, Corpus | None],
    sounds: Mapping[str, Path],
    tell: Callable[[str], None],
) -> tuple[LearnsFromSound, ModelFacts]:
    """Trains a system on the utterances that have a sound, and scores it on the held-out ones.

    - splits: utterances for training, and held-out ones (None without).
    - sounds: files of any rate, by id.

    InputError without utterances, intents or tags, or if no utterance has a sound. Raises PluginError.
    """
    kind = audio_class(name, settings)
    data, held_out = splits
    training_utterances = _with_sound(data, sounds, tell)
    held_out_utterances = () if held_out is None else _with_sound(held_out, sounds, tell)
    if not training_utterances:
        example_id = data.utterances[0].id
        problem = "the list has no sound for any training utterance"
        raise InputError(problem, place=Place(data.path), remedy=f"Use the ids of the corpus, such as {example_id!r}")

    def sound_of(id_: str) -> npt.NDArray[np.int16]:
        with open_sound(str(sounds[id_]), RATE_HZ, resample=True) as sound:
            return np.concatenate([*sound.blocks(), np.zeros(0, np.int16)])

    _check_sounds([utterance.id for utterance in (*training_utterances, *held_out_utterances)], sounds, sound_of)

    started = time.process_time()
    system = kind.fit(training_utterances, held_out_utterances, sound_of, dict(settings), seed=seed, tell=tell)
    cpu_s = time.process_time() - started

    def understood(utterance: Utterance) -> Utterance:
        try:
            answer = system.understand(sound_of(utterance.id)) or Said("", 0, 0)
        except EngineError as error:  # such as a sound that is too long, which counts as not understood
            tell(f"{utterance.id}: {error}")
            answer = Said("", 0, 0)
        return Utterance(utterance.id, intents=answer.intents or (), slots=answer.slots or ())

    guesses = map(understood, held_out_utterances)
    rule = replace(RULE, places=False)
    scores = frame_figures(
        total(
            count_frame(gold, predicted_utterance, rule)
            for gold, predicted_utterance in zip(held_out_utterances, guesses, strict=True)
        )
    )
    values = ((Metric.EMR, scores.intents.exact.value), (Metric.F1MH, scores.slots.concept_sets.f1))
    return system, _facts(
        settings, seed, (data, training_utterances, held_out_utterances), values, cpu_s, getattr(system, "notes", ())
    )


def _check_sounds(
    ids: Sequence[str], sounds: Mapping[str, Path], sound_of: Callable[[str], npt.NDArray[np.int16]]
) -> None:
    """Raises InputProblems with each sound that cannot be used. Checked first, since training may take hours."""
    problems: list[InputError] = []
    for id_ in ids:
        try:
            sound_of(id_)
        except (UnusableSound, OSError) as error:
            remedy = "Replace the sound, or remove its row from the list"
            place = Place(str(sounds[id_]))
            problems.append(InputError(f"the sound cannot be used: {error}", place=place, remedy=remedy))
    if problems:
        raise InputProblems(problems)


def _with_sound(corpus: Corpus, sounds: Mapping[str, Path], tell: Callable[[str], None]) -> tuple[Utterance, ...]:
    """The utterances that have a sound. Reports how many have none."""
    utterances = tuple(utterance for utterance in _annotated_utterances(corpus) if utterance.id in sounds)
    if lacking := len(corpus.utterances) - len(utterances):
        tell(f"{corpus.path}: left out {counted(lacking, 'utterance')} without a sound")
    return utterances


def _annotated_utterances(corpus: Corpus) -> tuple[Utterance, ...]:
    """The utterances of a corpus. Raises InputError if there are none, or if one lacks intents or tags."""
    for utterance in corpus.utterances:
        if utterance.intents is None or utterance.tags is None:
            lacking = "intents" if utterance.intents is None else "BIO tags"
            problem = f"the utterance {utterance.id!r} is not annotated with {lacking}"
            raise InputError(
                problem, place=utterance.place or Place(corpus.path), remedy="Annotate the utterance, or remove it"
            )
    if not corpus.utterances:
        raise InputError("there are no utterances", place=Place(corpus.path), remedy="Choose another folder")
    return corpus.utterances


def _packages() -> list[tuple[str, str]]:
    packages = []
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages.append((name, version(name)))
    return packages


FIGURES = (Metric.ACCURACY, Metric.EMR, Metric.SLOT_F1, Metric.F1MH, Metric.CER, Metric.SFA)
THOUSAND = 1000
HELD_OUT_SHARE = 0.1


@frozen
class Contender:
    """An understander to compare. settings: (name, value) of its settings."""

    name: str
    settings: tuple[tuple[str, str], ...] = ()


@frozen
class ContenderRow:
    """The results of an understander.

    - `figures`: metric, value (0–1; a CER may be more) and 95 % interval. Value and interval are None over nothing.
    - train_cpu_s: processor time of training, s; None if unknown.
    - predict_cpu_s: processor time of predicting a thousand utterances, s; None if unknown.
    - from_elsewhere: whether it is a published result, not measured in this run.
    - deviations: if not (), values are means over folds, and these are their standard deviations, one for each metric.
    """

    name: str
    utterances: int
    figures: tuple[tuple[Metric, float | None, Interval | None], ...]
    train_cpu_s: float | None
    predict_cpu_s: float | None
    from_elsewhere: bool = False
    deviations: tuple[float | None, ...] = ()


def cross_validated(
    contender: Contender, data: Corpus, folds: int, seed: int, tell: Callable[[str], None]
) -> ContenderRow:
    """Trains and scores once for each fold, with a tenth of the other folds held out.

    Raises InputError, also for a corpus that is too small. Raises PluginError.
    """
    parts = stratified(data, [1.0] * folds, seed)
    rows = []
    for number, test in enumerate(parts):
        tell(f"fold {number + 1} of {folds}")
        others = tuple(utterance for part in parts if part is not test for utterance in part.utterances)
        training, held_out = stratified(Corpus(data.path, others), (1 - HELD_OUT_SHARE, HELD_OUT_SHARE), seed)
        rows.append(bench(contender, (training, held_out, test), seed, tell))
    means: list[tuple[Metric, float | None, None]] = []
    deviations: list[float | None] = []
    for index, metric in enumerate(FIGURES):
        values = [value for _, value, _ in (row.figures[index] for row in rows) if value is not None]
        has_all = len(values) == folds
        means.append((metric, fmean(values) if has_all else None, None))
        deviations.append(stdev(values) if has_all else None)
    return ContenderRow(
        name=contender.name,
        utterances=sum(row.utterances for row in rows),
        figures=tuple(means),
        train_cpu_s=fmean(row.train_cpu_s or 0.0 for row in rows),
        predict_cpu_s=fmean(row.predict_cpu_s or 0.0 for row in rows),
        deviations=tuple(deviations),
    )


def bench(
    contender: Contender, data: tuple[Corpus, Corpus | None, Corpus], seed: int, tell: Callable[[str], None]
) -> ContenderRow:
    """Trains on the first corpus, with the second held out, and scores on the third. Raises InputError, PluginError."""
    training, held_out, test = data
    gold = test.utterances
    if not gold or any(utterance.intents is None or utterance.tags is None for utterance in gold):
        problem, remedy = "there are no test utterances", "Choose another folder"
        if gold:
            problem = "not all test utterances are annotated with intents and slots"
            remedy = "Annotate all test utterances, or choose another folder"
        raise InputError(problem, place=Place(test.path), remedy=remedy)
    trained = train(contender.name, contender.settings, seed, training, held_out, tell)
    started_s = time.process_time()
    predictions = trained.understander.predict([utterance.words for utterance in gold])
    predict_cpu_s = time.process_time() - started_s
    counts = [
        count_frame(utterance, prediction, RULE)
        for utterance, prediction in zip(gold, with_predictions(gold, predictions), strict=True)
    ]
    sums, samples = total(counts), collect_samples(counts)
    scores, overlaps = frame_figures(sums), sums.intents.judged_overlaps
    intents, slots = scores.intents, scores.slots
    values: dict[Metric, tuple[float | None, Interval | None]] = {
        Metric.ACCURACY: (intents.accuracy, accuracy_interval(overlaps, ZERO)),
        Metric.EMR: (intents.exact.value, intents.exact.interval),
        Metric.SLOT_F1: (slots.micro.f1, pooled_f1_interval(samples.chunks)),
        Metric.F1MH: (slots.concept_sets.f1, pooled_f1_interval(samples.concepts)),
        Metric.CER: (slots.cer, cer_interval(samples.edits)),
        Metric.SFA: (slots.frames.value, slots.frames.interval),
    }
    return ContenderRow(
        name=contender.name,
        utterances=len(gold),
        figures=tuple((metric, *values[metric]) for metric in FIGURES),
        train_cpu_s=trained.facts.cpu_s,
        predict_cpu_s=predict_cpu_s / len(gold) * THOUSAND,
    )


def _published_row(name: str, intent: float, slot: float, sfa: float, cpu_s: float | None) -> ContenderRow:
    metrics = ((Metric.EMR, intent / 100, None), (Metric.SLOT_F1, slot / 100, None), (Metric.SFA, sfa / 100, None))
    return ContenderRow(name, 0, metrics, cpu_s, None, from_elsewhere=True)


YARDSTICKS: dict[str, Sequence[ContenderRow]] = {
    "atis": (
        _published_row("CRF + TF-IDF", 95.1, 93.3, 79.4, 90),
        _published_row("BiLSTM from scratch", 96.9, 94.8, 85.0, 195),
        _published_row("MiniLM, fine-tuned", 97.8, 95.4, 87.4, 610),
        _published_row("JointBERT, published", 97.5, 96.1, 88.2, None),
    ),
    "snips": (
        _published_row("CRF + TF-IDF", 98.1, 93.7, 83.7, 90),
        _published_row("MiniLM, fine-tuned", 98.6, 94.6, 87.3, 610),
        _published_row("JointBERT, published", 98.6, 97.0, 92.8, None),
    ),
}
"""Intents, slot F1 and SFA in per cent, and processor seconds of training, by corpus.

Papers call the share of exact sets intent accuracy, so their values are in the column EMR.
Sources: the project's specification of understanding (Joint intent and slot model); Chen, Zhuo & Wang 2019 (JointBERT).
"""
