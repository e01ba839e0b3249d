"""Words of two ctm files side by side by their times alone, as sclite -T does it, also through alternatives."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Transcripts
from harness.transcripts.alignment import ANOTHER_WORD_S, WordTimes, align_by_time, side_by_side
from harness.transcripts.networks import (
    BOTH_NOTHING,
    NOTHING,
    NetworkAlignment,
    NetworkSide,
    NetworkWord,
    TextNetworks,
    demand_few_cells,
    parse,
)

_BRACES = frozenset("{}")


def by_time(
    references: Transcripts, hypotheses: Transcripts, shown: tuple[Sequence[str], Sequence[str]]
) -> TextNetworks:
    """Aligns words by their times alone; InputError where a normalisation has changed their number."""
    aligned_by_row: dict[int, tuple[AlignedWord, ...]] = {}
    for row, texts in enumerate(zip(*shown, strict=True)):
        place = Place(references.file, references.lines[row])
        times, heard = references.times[row], hypotheses.times[row]
        reference_words, hypothesis_words = (text.split() for text in texts)
        if any(token in _BRACES or token == NOTHING for token in (*reference_words, *hypothesis_words)):
            sides = [_side(text, word_times, place) for text, word_times in zip(texts, (times, heard), strict=True)]
            if None in sides:
                raise _lost_error(references.ids[row], place)
            demand_few_cells(len(times), len(heard), place)
            first, second = (side for side in sides if side is not None)
            aligned_by_row[row] = _TimedAlignment(first, second, None).path()
            continue
        if len(reference_words) != len(times) or len(hypothesis_words) != len(heard):
            raise _lost_error(references.ids[row], place)
        aligned_by_row[row] = side_by_side(
            reference_words, hypothesis_words, align_by_time(reference_words, hypothesis_words, times, heard, place)
        )
    return aligned_by_row


def _lost_error(id_: str, place: Place) -> InputError:
    problem = f"{id_}: after the normalisation, words have lost their times"
    return InputError(problem, place=place, remedy="With --by-time, use --normalise verbatim")


@frozen
class _TimedNetworkWord(NetworkWord):
    """absent: its duration."""

    begin_s: float = 0.0
    end_s: float = 0.0

    @property
    def optional(self) -> bool:
        return False


def _side(text: str, times: WordTimes, place: Place) -> NetworkSide | None:
    """The network of a text whose words have these times; None if they are not as many."""
    network = parse(text, lambda words: tuple(words.split()), place)
    if len(network.arcs) != len(times):
        return None
    words: list[NetworkWord] = [NetworkWord("", "", 0.0)]
    for arc, (begin_s, end_s) in zip(network.arcs, times, strict=True):
        absent = _ALONE_NOTHING_S if arc.nothing else end_s - begin_s
        words.append(
            _TimedNetworkWord(
                text=arc.written,
                shown=arc.written,
                absent=absent,
                nothing=arc.nothing,
                fragment=False,
                begin_s=begin_s,
                end_s=end_s,
            )
        )
    return NetworkSide(words, [0, *(arc.node for arc in network.arcs)], network.entering)


_ALONE_NOTHING_S = 0.001  # As in sclite -T.


class _TimedAlignment(NetworkAlignment):
    whole_substitutions = False

    def paired(self, word: NetworkWord) -> list[float]:
        return [0.0, *(self.substitution(word, other) for other in self.hypothesis.words[1:])]

    def substitution(self, word: NetworkWord, other: NetworkWord) -> float:
        """How far begins and ends are apart, in seconds."""
        assert isinstance(word, _TimedNetworkWord)
        assert isinstance(other, _TimedNetworkWord)
        if word.nothing and other.nothing:
            return BOTH_NOTHING
        apart_s = abs(word.begin_s - other.begin_s) + abs(word.end_s - other.end_s)
        return apart_s + (0.0 if word.text == other.text else ANOTHER_WORD_S)
