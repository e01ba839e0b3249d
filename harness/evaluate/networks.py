"""The few utterances of a scoring whose texts carry alternatives, words that may be left out, or fragments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from harness.evaluate.wording import Wording
from harness.metrics import snor
from harness.metrics.network import Network, align_networks, is_plain, parse
from harness.model.errors import Place
from harness.model.transcript import AlignedWord, Transcripts

TextNetworks = Mapping[int, tuple[AlignedWord, ...]]
_FRAGMENT = re.compile(r"(?:^|\s)-\S|\S-(?:\s|$)")


def aligned_networks(
    references: Transcripts,
    hypotheses: Transcripts,
    shown: tuple[Sequence[str], Sequence[str]],
    wording: Wording,
    *,
    optional_words: bool,
    fragments: bool,
) -> TextNetworks:
    """By their row, the pairs that only networks can align, aligned; InputError with a place where one is not closed.

    shown: the normalised texts, which count where the wording reads no marks of networks.
    """
    columns = (references.texts, hypotheses.texts) if wording.reads_networks else shown
    rows: set[int] = set()
    for texts in columns:
        rows |= _rows(texts, lambda text: not is_plain(text)) if wording.reads_networks else set()
        rows |= _rows(texts, lambda text: _FRAGMENT.search(text) is not None) if fragments else set()
    same = _same_sound if wording.has_homophones else None

    def network(transcripts: Transcripts, texts: Sequence[str], row: int) -> Network:
        place = Place(transcripts.file, transcripts.lines[row])
        normalise: Callable[[str], tuple[str, ...]] = wording if wording.reads_networks else _as_it_is
        return parse(texts[row], normalise, place)

    return {
        row: align_networks(
            network(references, columns[0], row),
            network(hypotheses, columns[1], row),
            same,
            optional_words=optional_words,
            fragments=fragments,
        )
        for row in sorted(rows)
    }


def _rows(texts: Sequence[str], found: Callable[[str], bool]) -> set[int]:
    """Rows that a mark is found in; all of them are looked at as one text first, since most files have none."""
    if not found("\n".join(texts)):
        return set()
    return {row for row, text in enumerate(texts) if found(text)}


def _same_sound(word: str, other: str) -> bool:
    return snor.homophone(word) == snor.homophone(other)


def _as_it_is(word: str) -> tuple[str, ...]:
    return (word,)
