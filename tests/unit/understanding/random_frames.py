"""Random corpora of frames, with what figures differ over: empty sets, wrong tags, labels of one side only."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.model.understanding import Utterance
from harness.understanding.counts import FrameCounts, Rule, count_frame, total

INTENTS = ("annulation", "reservation", "saluer", "remercier", "a-b")
CONCEPTS = ("date", "date-from", "city", "city-from")
Pair = tuple[Utterance, Utterance]


def intents(source: random.Random, max_intents: int = 3, among: Sequence[str] = INTENTS) -> tuple[str, ...]:
    return tuple(sorted(source.sample(among, source.randint(0, min(max_intents, len(among))))))


def tags(source: random.Random, words: int, *, wild: bool) -> tuple[str, ...]:
    """wild: an I- may follow anything."""
    sequence: list[str] = []
    while len(sequence) < words:
        kind = source.random()
        concept = source.choice(CONCEPTS)
        if kind < 0.4:
            sequence.append("O")
        elif wild:
            sequence.append(source.choice("BI") + "-" + concept)
        else:
            sequence += ["B-" + concept, *["I-" + concept] * source.randint(0, 2)]
    return tuple(sequence[:words])


def utterance(source: random.Random, id_: str, words: int, *, wild: bool) -> Utterance:
    return Utterance(id_, tuple(f"w{n}" for n in range(words)), intents(source), tags(source, words, wild=wild))


def near(source: random.Random, gold: Utterance) -> Utterance:
    """What a system might say: much of it right."""
    other = utterance(source, gold.id, len(gold.words), wild=source.random() < 0.3)
    gold_tags = gold.tags or ()
    tags = tuple(
        theirs if source.random() < 0.2 else ours for ours, theirs in zip(gold_tags, other.tags or (), strict=True)
    )
    return Utterance(gold.id, gold.words, gold.intents if source.random() < 0.5 else other.intents, tags)


def pairs(source: random.Random, utterances: int, *, longest: int = 9) -> list[Pair]:
    cases = []
    for number in range(utterances):
        gold = utterance(source, str(number), source.randint(0, longest), wild=source.random() < 0.3)
        cases.append((gold, near(source, gold)))
    return cases


def counted(frame_pairs: Sequence[Pair], rule: Rule | None = None) -> FrameCounts:
    return total(count_frame(gold, predicted, rule or Rule()) for gold, predicted in frame_pairs)
