"""Made corpora with predictions that are wrong in every way, for tests of what scores and shows them."""

from __future__ import annotations

import random

from harness.model.understanding import Corpus, Slot, Utterance

INTENTS = ("booking", "information", "greeting", "thanks")
CONCEPTS = ("city", "date", "number-rooms", "number-guests")
WORDS = ("a", "room", "in", "paris", "for", "two")
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e&\"'"


def made(seed: int, number: int, *, slots: bool = True) -> tuple[Corpus, Corpus]:
    """Gold, and predictions: some missing, one unknown, one without words, some with other intents and slots."""
    draw = random.Random(seed)
    gold, predicted = [], []
    for index in range(number):
        words = tuple(draw.choices(WORDS, k=draw.randint(1, 7)))
        tags = tuple(_tag(draw) for _ in words)
        intents = tuple(sorted({*draw.choices(INTENTS, k=draw.randint(1, 2))}))
        groups = (("voice", draw.choice(("anna", "ben"))),)
        listed_slots = tuple(Slot("value", draw.choice("xy")) for _ in range(index % 2)) if slots else None
        id_ = f"d{index}#{index % 3}"
        gold.append(
            Utterance(id_, words, intents if index % 50 else None, tags if index % 40 else None, listed_slots, groups)
        )
        if draw.random() < 0.05:
            continue
        other_tags = tuple(_tag(draw) if draw.random() < 0.1 else tag for tag in tags)
        wrong = tuple(sorted(draw.sample(INTENTS, draw.randint(0, 2))))
        other_slots = tuple(Slot("value", draw.choice("xy")) for _ in range(index % 2)) if slots else None
        predicted.append(Utterance(id_, words, intents if draw.random() < 0.9 else wrong, other_tags, other_slots))
    predicted.append(Utterance("nobody", ("a",), ("booking",), ("O",)))
    return Corpus("gold.jsonl", tuple(gold)), Corpus("pred.jsonl", tuple(predicted))


def _tag(draw: random.Random) -> str:
    return draw.choice(("O", "O", "O", "B-", "I-")).replace("-", f"-{draw.choice(CONCEPTS)}")
