"""Aligns the words of two ctm files by their times alone, as sclite -T does it, also through alternatives.

The cost of a pair is the difference of the begins plus that of the ends, in seconds, and ANOTHER_WORD_S if the words
differ. The cost of a word without a partner is its duration.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Transcripts
from harness.transcripts.alignment import ANOTHER_WORD_S, WordTimes, align_by_time, side_by_side
from harness.transcripts.networks import (
    ALONE_NOTHING,
    BOTH_NOTHING,
    NOTHING,
    NetworkAlignment,
    NetworkSide,
    NetworkWord,
    TextNetworks,
    check_cells,
    parse,
)

_BRACES = frozenset("{}")


def align_rows_by_time(
    references: Transcripts, hypotheses: Transcripts, text_columns: tuple[Sequence[str], Sequence[str]]
) -> TextNetworks:
    """Aligns the words of each row by their times alone. text_columns: the normalised texts of both sides.

    Raises InputError if a normalisation has changed the number of words of a text.
    """
    aligned_by_row: dict[int, tuple[AlignedWord, ...]] = {}
    for row, texts in enumerate(zip(*text_columns, strict=True)):
        place = Place(references.file, references.lines[row])
        reference_times = references.times[row]
        hypothesis_times = hypotheses.times[row] if hypotheses.times else ()  # an empty file has no times
        reference_words, hypothesis_words = (text.split() for text in texts)
        # Only networks of words can align alternatives.
        if any(token in _BRACES or token == NOTHING for token in (*reference_words, *hypothesis_words)):
            reference_side = _timed_side(texts[0], reference_times, place)
            hypothesis_side = _timed_side(texts[1], hypothesis_times, place)
            if reference_side is None or hypothesis_side is None:
                raise _lost_times_error(references.ids[row], place)
            check_cells(len(reference_times), len(hypothesis_times), place)
            aligned_by_row[row] = _TimedAlignment(reference_side, hypothesis_side, is_same=None).path()
            continue
        if len(reference_words) != len(reference_times) or len(hypothesis_words) != len(hypothesis_times):
            raise _lost_times_error(references.ids[row], place)
        path = align_by_time(reference_words, hypothesis_words, reference_times, hypothesis_times, place)
        aligned_by_row[row] = side_by_side(reference_words, hypothesis_words, path)
    return aligned_by_row


def _lost_times_error(id_: str, place: Place) -> InputError:
    problem = f"{id_}: the normalisation changes the number of words, so their times are lost"
    return InputError(problem, place=place, remedy="With --by-time, use --normalise verbatim")


@frozen
class _TimedNetworkWord(NetworkWord):
    """A word with its times. Here `gap_cost` is its duration, so a word of 2 s (the cost OPTIONAL) is not optional."""

    begin_s: float = 0.0
    end_s: float = 0.0

    @property
    def is_optional(self) -> bool:
        return False


def _timed_side(text: str, times: WordTimes, place: Place) -> NetworkSide | None:
    """The network of a text whose words have these times; None if there are more or fewer words than times."""
    network = parse(text, lambda words: tuple(words.split()), place)
    if len(network.arcs) != len(times):
        return None
    words: list[NetworkWord] = [NetworkWord("", "", 0.0)]
    for arc, (begin_s, end_s) in zip(network.arcs, times, strict=True):
        gap_cost = ALONE_NOTHING if arc.is_nothing else end_s - begin_s
        words.append(
            _TimedNetworkWord(
                text=arc.written,
                shown=arc.written,
                gap_cost=gap_cost,
                is_nothing=arc.is_nothing,
                is_fragment=False,
                begin_s=begin_s,
                end_s=end_s,
            )
        )
    return NetworkSide(words, [0, *(arc.node for arc in network.arcs)], network.entering)


class _TimedAlignment(NetworkAlignment):
    """The table of costs of two networks of _TimedNetworkWord."""

    whole_substitutions = False

    def pairing_costs(self, word: NetworkWord) -> list[float]:
        return [0.0, *(self.substitution_cost(word, other) for other in self.hypothesis.words[1:])]

    def substitution_cost(self, word: NetworkWord, other: NetworkWord) -> float:
        """The cost of a pair, in seconds (see the module). That of `@` against `@` is BOTH_NOTHING, as in sclite -T."""
        assert isinstance(word, _TimedNetworkWord)
        assert isinstance(other, _TimedNetworkWord)
        if word.is_nothing and other.is_nothing:
            return BOTH_NOTHING
        distance_s = abs(word.begin_s - other.begin_s) + abs(word.end_s - other.end_s)
        return distance_s + (0.0 if word.text == other.text else ANOTHER_WORD_S)
