"""Utterances, label sets and desks without a disk, and classifiers that mislabel in a known way."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import Ledger
from harness.annotation.view import AnnotationPhase
from harness.annotation.worklist import Worklist
from harness.model.annotation import (
    IMPORTED,
    AnnotationProject,
    AnnotationRow,
    Label,
    Labelled,
    LabelProposal,
    LabelSet,
    Proposed,
)
from harness.model.errors import LogFull
from harness.model.offline import Setting
from harness.model.understanding import Utterance

LABELS = LabelSet(
    "test",
    "Test",
    (Label("play"), Label("stop"), Label("thank"), Label("well", alone=True)),
    never_together=(("play", "stop"),),
)


def utterances(count: int) -> tuple[Utterance, ...]:
    return tuple(Utterance(f"u{number}", ("say", f"{number:02}")) for number in range(1, count + 1))


def proposed(choices: Mapping[str, str | None], id_: str = "batch") -> Proposed:
    """u1: "play#thank", or None where there was no consensus."""
    proposals = tuple(
        LabelProposal(utterance, None if labels is None else tuple(sorted(labels.split("#"))))
        for utterance, labels in choices.items()
    )
    return Proposed(id_, "test", proposals)


def imported(utterance: str, *intents: str) -> Labelled:
    return Labelled(f"imported {utterance}", IMPORTED, utterance, intents)


@dataclass
class Bench:
    """A project in memory. full: nothing can be written; clock_s goes on only when told."""

    count: int = 6
    project: AnnotationProject = field(default_factory=lambda: AnnotationProject("p", 6, page_size=3))
    rows: list[AnnotationRow] = field(default_factory=list)
    commits: list[Sequence[AnnotationRow]] = field(default_factory=list)
    full: bool = False
    clock_s: float = 100.0

    def desk(
        self, annotator: str = "ann", *, adjudicating: bool = False, again: Sequence[str] = (), **project: object
    ) -> AnnotationDesk:
        self.project = replace(self.project, utterances=self.count, **project)  # type: ignore[arg-type]
        facts = (self.project, LABELS, utterances(self.count), self.rows, self.keep)
        work = Worklist(annotator, *facts, adjudicating=adjudicating, again=again)
        return AnnotationDesk(work, now_s=lambda: self.clock_s, wall_s=lambda: self.clock_s)

    def keep(self, rows: Sequence[AnnotationRow]) -> None:
        if self.full:
            raise LogFull("no room")
        self.rows.extend(rows)
        self.commits.append(rows)

    def wait(self, desk: AnnotationDesk, seconds: float) -> None:
        """Lets some time go by until the next key."""
        self.clock_s += seconds
        desk.note_presence()

    @property
    def ledger(self) -> Ledger:
        return Ledger(LABELS, self.rows)


SPOKEN_LABELS = ("ask", "brew", "stop", "well")
LABEL_SET = LabelSet("t", "T", tuple(Label(label, alone=label == "well") for label in SPOKEN_LABELS))


def spoken(count: int, seed: int = 1) -> list[Utterance]:
    """Utterances whose words tell their intents; every text is another one, and one in four has two intents."""
    draw = random.Random(seed)
    utterances = []
    for number in range(count):
        intents = [draw.choice(SPOKEN_LABELS)]
        if intents != ["well"] and draw.random() < 0.3:
            intents = draw.sample(SPOKEN_LABELS[:3], 2)
        # The order of words is that of speaking: the second intent is not the second in the alphabet.
        words = tuple(word for intent in intents for word in (intent, f"w{number}"))
        utterances.append(Utterance(f"u{number}", words, tuple(sorted(intents))))
    return utterances


class Knowing:
    """An `IntentClassifier` that knows what words mean, from the start."""

    settings: ClassVar[tuple[Setting, ...]] = ()

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        self.seen: list[list[tuple[str, tuple[str, ...]]]] = []

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        self.seen.append(list(zip(texts, intents, strict=True)))

    def said(self, spoken: list[str]) -> list[str]:
        return spoken

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        answers = [self.said([word for word in text.split() if word in SPOKEN_LABELS]) for text in texts]
        return np.array([[0.9 if label in labels else 0.1 for label in SPOKEN_LABELS] for labels in answers]).reshape(
            -1, len(SPOKEN_LABELS)
        )


class DropsTheSecond(Knowing):
    """Hears only the intent that is spoken first."""

    def said(self, spoken: list[str]) -> list[str]:
        return spoken[:1]


class SwapsTwo(Knowing):
    """Takes brew for stop and stop for brew."""

    def said(self, spoken: list[str]) -> list[str]:
        return [{"brew": "stop", "stop": "brew"}.get(label, label) for label in spoken]


class AddsWell(Knowing):
    """Gives a label that stands alone to whatever is asked."""

    def said(self, spoken: list[str]) -> list[str]:
        return [*spoken, "well"] if "ask" in spoken else spoken


def review(desk: AnnotationDesk, gold: Mapping[str, tuple[str, ...]]) -> set[str]:
    """A person with the guide in mind: strikes what is wrong, labels the rest; the ids of what was struck."""
    struck: set[str] = set()
    while (view := desk.view).phase is not AnnotationPhase.FINISHED:
        if view.phase is AnnotationPhase.REVIEWING:
            assert view.group is not None
            for line in view.page:
                wrong = gold[line.utterance] != view.group.intents
                if wrong:
                    struck.add(line.utterance)
                if wrong is not line.struck:
                    desk.strike_number(line.number)
            assert desk.accept_page()
            continue
        item = view.item
        assert item is not None
        for label in set(item.chosen) ^ set(gold[item.utterance]):
            desk.toggle(label)
        assert desk.save(), desk.view.said
    return struck
