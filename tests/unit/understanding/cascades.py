"""A small corpus, what was heard of it, and a function that understands by known words."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.choices import MarkScope
from harness.model.transcript import Normalisation
from harness.model.understanding import Corpus, Prediction, Utterance
from harness.transcripts.words import WordRules
from harness.understanding.cascade import Cascade, HeardCorpus, cascade, join_transcripts, predict_corpus
from harness.understanding.counts import Rule, ValueRule

INTENTS = {"book": "book", "cancel": "cancel", "hello": "greet"}
CONCEPTS = {"nice": "city-to", "brest": "city-to", "monday": "date", "sunday": "date"}
PLAIN = WordRules(Normalisation.PLAIN, marks=MarkScope.NONE)
RULE = Rule(values=ValueRule.PLAIN, spoken=True)


def understand(texts: Sequence[tuple[str, ...]]) -> list[Prediction]:
    """Intents and slots by known words, in any case and with any marks."""
    predictions = []
    for text in texts:
        words = [word.lower().strip(".,!") for word in text]
        intents = {INTENTS[word] for word in words if word in INTENTS}
        tags = [f"B-{CONCEPTS[word]}" if word in CONCEPTS else "O" for word in words]
        predictions.append(Prediction(tuple(sorted(intents)), tuple(tags)))
    return predictions


def said(id_: str, text: str, **changed: object) -> Utterance:
    """An utterance that means what `understand` makes of it."""
    words = tuple(text.split())
    frame = understand([words])[0]
    values: dict[str, object] = {"intents": frame.intents, "tags": frame.tags}
    return Utterance(id_, words, **(values | changed))  # type: ignore[arg-type]


def heard(**texts: str) -> Corpus:
    return Corpus("heard.trn", tuple(Utterance(id_, tuple(text.split())) for id_, text in texts.items()))


GOLD = Corpus(
    "gold",
    (
        said("a", "book nice on monday", groups=(("voice", "one"),)),
        said("b", "cancel", groups=(("voice", "one"),)),
        said("c", "hello book brest", groups=(("voice", "two"),)),
        said("d", "book brest on sunday", groups=(("voice", "two"),)),
        # Nobody finds this intent.
        said("e", "go away", intents=("leave",), groups=(("voice", "two"),)),
    ),
)


def scored(pairs: HeardCorpus, rule: Rule = RULE, **options: object) -> Cascade:
    before = predict_corpus(pairs.gold, understand, "model")
    after = predict_corpus(pairs.heard, understand, "model")
    return cascade(pairs, before, after, rule, PLAIN, **options)  # type: ignore[arg-type]


def small() -> Cascade:
    """Of GOLD: a slot lost, all kept, an intent lost, no transcript, and a wrong one."""
    texts = heard(a="Book niece on Monday.", b="CANCEL!", c="yellow book Brest", e="go a way", z="what")
    return scored(join_transcripts(GOLD, texts))
