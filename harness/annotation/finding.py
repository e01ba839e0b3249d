"""Utterances found by their words, to be looked at again by who may label them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.annotation.again import may_label_again, what_stands
from harness.annotation.ledger import Ledger
from harness.annotation.shares import Shares
from harness.model.annotation import Intents
from harness.model.understanding import Utterance


@dataclass(frozen=True, slots=True)
class Found:
    """intents: the labels that it is shown with when it is opened; None when there are none."""

    utterance: str
    text: str
    intents: Intents | None


def has_words(text: str, words: str) -> bool:
    """Whether a text has these words as they stand, in any case."""
    return words.casefold() in text.casefold()


def find(
    utterances: Iterable[Utterance], words: str, ledger: Ledger, shares: Shares, annotator: str, *, adjudicating: bool
) -> tuple[Found, ...]:
    """In the order of the data, those that have the words in their text or as their id, and that the annotator may
    label again (`may_label_again`); with the annotator's own labels, or for who settles the final ones.
    """
    found = []
    for one in utterances:
        if one.id != words and not has_words(one.text, words):
            continue
        if may_label_again(ledger, shares, annotator, one.id, adjudicating=adjudicating):
            stands = what_stands(ledger, annotator, one.id, shares.wanted(one.id), adjudicating=adjudicating)
            found.append(Found(one.id, one.text, None if stands is None else stands[0]))
    return tuple(found)
