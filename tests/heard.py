"""How well a recogniser heard what was said.

Words of a neural model differ between processors, so tests state a bound and never one exact text. Words are
compared in lower case and without punctuation, along sclite's alignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from harness.model.scenario import Normalisation
from harness.model.transcript import Edit
from harness.transcripts.alignment import align, side_by_side
from harness.transcripts.words import normalise, word_counts

MAX_WRONG = 0.5
"""Word error allowed for a short sentence in a clear voice, of which no word is wrong with AVX2 or with AVX-512."""


def words(text: str) -> tuple[str, ...]:
    return normalise(text, Normalisation.PLAIN)


def word_error(reference: str, heard: str) -> float:
    """Word errors per word that was said."""
    wer = word_counts(words(reference), words(heard)).wer
    assert wer is not None, "nothing was said"
    return wer


def lost_or_repeated(sentences: Sequence[str], heard: str) -> list[str]:
    """The sentences in whose place half of the words are missing, or before whose end half as many were added.

    A word in the place of another is neither: how many are wrong is for `word_error`.
    """
    expected, text = tuple(chain.from_iterable(map(words, sentences))), words(heard)
    sentence_of = [number for number, sentence in enumerate(sentences) for _ in words(sentence)]
    missing, added = Counter[int](), Counter[int]()
    position = 0
    for step in side_by_side(expected, text, align(expected, text)):
        number = sentence_of[min(position, len(expected) - 1)]
        match step.edit:
            case Edit.INSERTION:
                added[number] += 1
                continue
            case Edit.DELETION:
                missing[number] += 1
        position += 1
    return [
        sentence
        for number, sentence in enumerate(sentences)
        if 2 * max(missing[number], added[number]) >= len(words(sentence))
    ]
