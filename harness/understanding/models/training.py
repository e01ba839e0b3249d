"""Training of an understander by name, with the facts that its model folder keeps."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from harness.base.plugins import Group, checked_settings, load
from harness.base.ports import Understander
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus, Utterance
from harness.understanding.models.grammar import fingerprint
from harness.understanding.models.held_out import held_out_figures, named_figures
from harness.understanding.models.model_folder import ModelFacts

DEFAULT = "crf"
PACKAGES = ("voice-harness", "numpy", "python-crfsuite", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Trained:
    """An understander that has learned, and how."""

    name: str
    understander: Understander
    facts: ModelFacts


def make_understander(name: str, settings: Iterable[tuple[str, str]], seed: int) -> Understander:
    """An understander that has learned nothing yet; PluginError, InputError for settings that are wrong."""
    kind = load(Group.UNDERSTANDERS, name)
    made: Understander = kind(checked_settings(kind.settings, settings, name), seed=seed)
    return made


def train(
    name: str,
    settings: Sequence[tuple[str, str]],
    seed: int,
    data: Corpus,
    held_out: Corpus | None,
    tell: Callable[[str], None],
) -> Trained:
    """Trains; InputError where an utterance is not annotated with intents and tags, or there is none. PluginError."""
    understander = make_understander(name, settings, seed)
    learned = _annotated(data)
    others = () if held_out is None else _annotated(held_out)
    started = time.process_time()
    understander.fit(learned, others, tell)
    cpu_s = time.process_time() - started
    figures: tuple[tuple[str, float], ...] = ()
    if others:
        figures = named_figures(held_out_figures(others, understander.predict([one.words for one in others])))
    facts = ModelFacts(
        seed=seed,
        settings=tuple(sorted(dict(settings).items())),
        intents=tuple(sorted({label for one in learned for label in one.intents or ()})),
        concepts=tuple(sorted({tag[2:] for one in learned for tag in one.tags or () if tag != "O"})),
        corpus=fingerprint(data),
        utterances=len(learned),
        held_out_utterances=len(others),
        held_out=figures,
        cpu_s=round(cpu_s, 3),
        packages=(("python", platform.python_version()), *_packages()),
        notes=tuple(getattr(understander, "notes", ())),
    )
    return Trained(name, understander, facts)


def _annotated(corpus: Corpus) -> tuple[Utterance, ...]:
    for one in corpus.utterances:
        if one.intents is None or one.tags is None:
            lacking = "intents" if one.intents is None else "BIO tags"
            what = f"the utterance {one.id!r} is not annotated with {lacking}"
            raise InputError(what, place=one.place or Place(corpus.path), remedy="Annotate it, or leave it out")
    if not corpus.utterances:
        raise InputError("there is no utterance", place=Place(corpus.path), remedy="Name another folder")
    return corpus.utterances


def _packages() -> list[tuple[str, str]]:
    found = []
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
