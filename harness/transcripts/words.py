"""Words: normalisations that make a reference and a transcript comparable, and the counts between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.model.transcript import ENGLISH, Normalisation, WordCounts
from harness.transcripts import snor
from harness.transcripts.alignment import align, count
from harness.transcripts.plain_words import plain, plain_texts
from harness.transcripts.readings import Readings, first


def readings(text: str, normalisation: Normalisation, language: str = ENGLISH) -> Readings:
    """The words of a text, and under SPOKEN the choices where a person may say several things; otherwise as normalise.

    language: of the numerals under SPOKEN, BCP 47.
    """
    if normalisation is not Normalisation.SPOKEN:
        return normalise(text, normalisation)
    from harness.transcripts.spoken_words import spoken_readings  # here, since its lists take a while to read

    return spoken_readings(text, language)


def normalise(text: str, normalisation: Normalisation, language: str = ENGLISH) -> tuple[str, ...]:
    """The words of a text.

    VERBATIM: as written, split at spaces. PLAIN: lower case, punctuation off. SPOKEN: PLAIN, and as a person would say
    it: digits, times and signs become words, contractions are written out; the first of several readings. SNOR,
    EXPANDED_SNOR: the text is .sro, without an utterance id; InputError with the column where its marks are wrong.
    """
    match normalisation:
        case Normalisation.VERBATIM:
            return tuple(text.split())
        case Normalisation.PLAIN:
            return tuple(plain(text).split())
        case Normalisation.SPOKEN:
            return first(readings(text, normalisation, language))
        case Normalisation.SNOR:
            return snor.words(text, snor.Form.LEXICAL, with_id=False)
        case Normalisation.EXPANDED_SNOR:
            return snor.words(text, snor.Form.EXPANDED, with_id=False)


def normalise_texts(texts: Sequence[str], normalisation: Normalisation, language: str = ENGLISH) -> Sequence[str]:
    """Many texts, one for one, as words with single spaces between: far quicker than one by one where that can be."""
    match normalisation:
        case Normalisation.PLAIN:
            return plain_texts(texts)
        case other:
            return [" ".join(normalise(text, other, language)) for text in texts]


def word_counts(reference: Sequence[str], hypothesis: Sequence[str]) -> WordCounts:
    """What became of the words of one normalised text in another, by sclite's alignment."""
    return count(align(reference, hypothesis))


def best_of(counts: Iterable[WordCounts]) -> int:
    """Which of several is best: fewest errors a word (over no words: fewest), the first of equals. ValueError of none.

    The errors a word decide, as they do on recognised or not.
    """
    rates = [float(one.errors) if one.wer is None else one.wer for one in counts]
    return rates.index(min(rates))
