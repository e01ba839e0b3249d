"""Words: normalisations that make a reference and a transcript comparable, and counts of their differences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from harness.base.text_file import Problems
from harness.model.choices import MarkScope, TextUnit
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import ENGLISH, Normalisation, Rewriting, Transcripts, WordCounts
from harness.transcripts import snor
from harness.transcripts.alignment import align, count
from harness.transcripts.readings import Piece, Readings, first_reading, plain, plain_texts, rewrite


def readings(text: str, normalisation: Normalisation, language: str = ENGLISH) -> Readings:
    """The words of a text. Under SPOKEN with choices where a person may say several things, otherwise as normalise.

    language: that of the numerals under SPOKEN, a BCP 47 tag.
    """
    if normalisation is not Normalisation.SPOKEN:
        return normalise(text, normalisation)
    from harness.transcripts.spoken_words import spoken_readings  # here, since its lists take a while to read

    return spoken_readings(text, language)


def normalise(text: str, normalisation: Normalisation, language: str = ENGLISH) -> tuple[str, ...]:
    """The words of a text.

    VERBATIM: as written, split at spaces. PLAIN: lower case, punctuation off. SPOKEN: PLAIN, and as a person would say
    it: digits, times and signs become words, contractions are written out; the first of several readings. SNOR,
    EXPANDED_SNOR: the text is .sro, without an utterance id. Raises InputError with the column where its marks are
    wrong.
    """
    match normalisation:
        case Normalisation.VERBATIM:
            return tuple(text.split())
        case Normalisation.PLAIN:
            return tuple(plain(text).split())
        case Normalisation.SPOKEN:
            return first_reading(readings(text, normalisation, language))
        case Normalisation.SNOR:
            return snor.words(text, snor.SnorForm.LEXICAL, with_id=False)
        case Normalisation.EXPANDED_SNOR:
            return snor.words(text, snor.SnorForm.EXPANDED, with_id=False)


def normalise_texts(texts: Sequence[str], normalisation: Normalisation, language: str = ENGLISH) -> Sequence[str]:
    """The words of many texts, each as one text with single spaces between. Mostly far quicker than one by one."""
    match normalisation:
        case Normalisation.PLAIN:
            return plain_texts(texts)
        case other:
            return [" ".join(normalise(text, other, language)) for text in texts]


def word_counts(reference: Sequence[str], hypothesis: Sequence[str]) -> WordCounts:
    """The counts of correct words and errors between two normalised texts, by sclite's alignment."""
    return count(align(reference, hypothesis))


def best_of(counts: Iterable[WordCounts]) -> int:
    """The index of the best of several counts: that with the fewest errors per word (over no words, the fewest errors).
    Of equal ones, the first. ValueError without any.

    Errors per word decide since they also decide whether a text counts as recognised.
    """
    rates = [float(sums.errors) if sums.wer is None else sums.wer for sums in counts]
    return rates.index(min(rates))


# Scripts whose writers put no spaces between words. \X is a character with its combining marks.
_WITHOUT_SPACES = r"[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]"
_UNITS = {TextUnit.CHAR: r"\X", TextUnit.MIXED: rf"(?={_WITHOUT_SPACES})\X|(?:(?!{_WITHOUT_SPACES})\X)+"}


def units(text: str, unit: TextUnit) -> list[str]:
    """The units of a text with words between spaces: these words, or the characters in them."""
    if unit is TextUnit.WORD:
        return text.split()
    if text.isascii():
        return list("".join(text.split())) if unit is TextUnit.CHAR else text.split()
    import regex  # here, since scoring by words needs none of it

    find_units = regex.compile(_UNITS[unit]).findall
    return [piece for word in unicodedata.normalize("NFC", text).split() for piece in find_units(word)]


_SNOR_FORMS = {Normalisation.SNOR: snor.SnorForm.LEXICAL, Normalisation.EXPANDED_SNOR: snor.SnorForm.EXPANDED}
LINE_END = ord("\n")
# What `str.split` takes for a space, besides " " and the line end: in ASCII, and in all texts.
_SPACES = "\t\r\x0b\x0c\x1c\x1d\x1e\x1f"
_ALL_SPACES = f"{_SPACES}\x85\xa0\u1680{''.join(map(chr, range(0x2000, 0x200B)))}\u2028\u2029\u202f\u205f\u3000"
_HOMOPHONE = re.compile(r"<[^<> \n]+>")
_MARKS_IN_NAME = {MarkScope.REFERENCE: "marks in the reference", MarkScope.NONE: "no marks"}


@frozen
class WordRules:
    """A normalisation, with everything else that decides which words are equal.

    - rewriting: a list of phrases that count as others, applied after it; None for none.
    - fold_case: whether the letters A–Z (and no others, as in sclite) are compared without case.
    - marks: where the marks of networks are read. No effect on .sro text, in which the same signs have other meanings.
    - language: that of the numerals under SPOKEN, a BCP 47 tag.
    - unit: the units into which words are split before they are compared.
    """

    normalisation: Normalisation
    rewriting: Rewriting | None = None
    fold_case: bool = False
    marks: MarkScope = MarkScope.BOTH
    language: str = ENGLISH
    unit: TextUnit = TextUnit.WORD

    @property
    def name(self) -> str:
        """The name that is shown with every result. Everything that is not the default is named."""
        name = self.rewriting.id if self.rewriting else self.normalisation.value
        if self.has_readings and self.language != ENGLISH:
            from harness.transcripts.spoken_words import says_numerals  # here, since its lists take a while to read

            name = f"{name}, {self.language}" + ("" if says_numerals(self.language) else " (digits as written)")
        if self.fold_case:
            name = f"{name}, A-Z without case"
        if self.unit is not TextUnit.WORD:
            name = f"{name}, unit {self.unit}"
        return f"{name}, {_MARKS_IN_NAME[self.marks]}" if self.marks in _MARKS_IN_NAME and not self.reads_sro else name

    @property
    def reads_sro(self) -> bool:
        """Whether texts are .sro text, in which the signs of marks have other meanings."""
        return self.normalisation in _SNOR_FORMS

    @property
    def reads_marks(self) -> tuple[bool, bool]:
        """Whether the marks of networks are read in references, and in hypotheses."""
        return (
            not self.reads_sro and self.marks is not MarkScope.NONE,
            not self.reads_sro and self.marks is MarkScope.BOTH,
        )

    @property
    def has_readings(self) -> bool:
        """Whether a text may be read in several ways, so that only networks decide whether two are equal."""
        return self.normalisation is Normalisation.SPOKEN

    @property
    def has_homophones(self) -> bool:
        """Whether words in `<…>` are compared by their spoken forms."""
        return self.normalisation is Normalisation.EXPANDED_SNOR

    def __call__(self, text: str) -> tuple[str, ...]:
        """As `words`, for a text that is in no file."""
        return self.words(text, snor.NOWHERE)

    def words(self, text: str, place: Place) -> tuple[str, ...]:
        """The words of a text. Raises InputError with line and column if the normalisation refuses it."""
        words = self._words(text, place)
        return tuple(fold(word) for word in words) if self.fold_case else words

    def readings(self, text: str) -> Readings:
        """The words of a text, with choices where it may be read in several ways; InputError as from `words`."""
        if not self.has_readings:
            return self(text)
        pieces = readings(text, self.normalisation, self.language)
        return pieces if self.rewriting is None else rewrite(pieces, self.rewriting)

    def split(self, pieces: Readings) -> Readings:
        """Words and choices, split into units."""
        if self.unit is TextUnit.WORD:
            return pieces
        unit_pieces: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, str):
                unit_pieces += units(piece, self.unit)
            else:
                unit_pieces.append(tuple(tuple(units(" ".join(reading), self.unit)) for reading in piece))
        return tuple(unit_pieces)

    def all_readings(self, transcripts: Transcripts) -> Sequence[Readings] | None:
        """The readings of each text; None if each has only one."""
        if not self.has_readings:
            return None
        from harness.transcripts.spoken_words import spoken_reader  # here, since its lists take a while to read

        read = spoken_reader(self.language)
        # The text of a query often occurs many times.
        readings_of_text = {text: read(text) for text in dict.fromkeys(transcripts.texts)}
        if self.rewriting is not None:
            readings_of_text = {text: rewrite(pieces, self.rewriting) for text, pieces in readings_of_text.items()}
        return [readings_of_text[text] for text in transcripts.texts]

    def texts(self, transcripts: Transcripts, pieces: Sequence[Readings] | None = None) -> Sequence[str]:
        """The units of each text, with single spaces between. pieces: the result of all_readings; None if not
        computed yet."""
        # With a rewriting list, pieces do not give the texts: a phrase of it may fit another reading than the first.
        if pieces is not None and self.rewriting is None:
            texts: Sequence[str] = [" ".join(first_reading(text_pieces)) for text_pieces in pieces]
        else:
            texts = self._texts(transcripts)
        return texts if self.unit is TextUnit.WORD else [" ".join(units(text, self.unit)) for text in texts]

    def _texts(self, transcripts: Transcripts) -> Sequence[str]:
        """The words of each text, with single spaces between."""
        if self.normalisation is Normalisation.VERBATIM and self.rewriting is None:
            return _fold_texts(transcripts.texts) if self.fold_case else squeeze(transcripts.texts)
        if not self.reads_sro and self.rewriting is None:
            return normalise_texts(transcripts.texts, self.normalisation, self.language)  # the result has no A–Z
        texts: list[str] = []
        problems = Problems(transcripts.file)
        for text, line in zip(transcripts.texts, transcripts.lines, strict=True):
            try:
                texts.append(" ".join(self._words(text, Place(transcripts.file, line))))
            except InputError as error:
                other = f"use a --normalise other than {self.normalisation.value}"
                remedy = f"{error.remedy}; or, if this is not .sro text, {other}"
                problems.add_error(InputError(error.what, place=error.place, remedy=remedy))
        problems.refuse()
        return _fold_texts(texts) if self.fold_case else texts

    def _words(self, text: str, place: Place) -> tuple[str, ...]:
        """The words of a text, before fold_case is applied."""
        form = _SNOR_FORMS.get(self.normalisation)
        if form is not None:
            words = snor.words(text, form, place, with_id=False)
        else:
            words = normalise(text, self.normalisation, self.language)
        return words if self.rewriting is None else first_reading(rewrite(words, self.rewriting))


def fold(text: str) -> str:
    """The text with A–Z as a–z; all other characters are unchanged."""
    if text.isascii():
        return text.lower()
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def squeeze(texts: Sequence[str]) -> Sequence[str]:
    """The texts with single spaces between their words and none around them."""
    return texts if _is_squeezed("\n".join(texts), len(texts)) else [" ".join(text.split()) for text in texts]


def with_homophones(texts: Sequence[str]) -> Sequence[str]:
    """The texts with each word of Expanded SNOR in its spoken form."""
    return _HOMOPHONE.sub(lambda match: snor.homophone(match[0]), "\n".join(texts)).split("\n") if texts else texts


def _fold_texts(texts: Sequence[str]) -> Sequence[str]:
    """As `squeeze`, and with A–Z as a–z."""
    lines = "\n".join(texts)
    if _is_squeezed(lines, len(texts)):
        folded = fold(lines)
        return texts if folded == lines else folded.split("\n")
    return [fold(" ".join(text.split())) for text in texts]


def _is_squeezed(lines: str, total: int) -> bool:
    """Whether no text needs its spaces changed.

    - lines: all texts as lines; checking them at once is many times faster.
    - total: number of texts.
    """
    if lines.count("\n") != max(0, total - 1):
        return False
    characters = np.frombuffer(f"\n{lines}\n".encode("utf-8", "surrogatepass"), np.uint8)
    is_space = characters <= ord(" ")
    # Two line ends are an empty text; any other two spaces need to be changed.
    pairs = np.flatnonzero(is_space[1:] & is_space[:-1])
    if np.any(characters[pairs] != LINE_END) or np.any(characters[pairs + 1] != LINE_END):
        return False
    return not any(space in lines for space in (_SPACES if lines.isascii() else _ALL_SPACES))
