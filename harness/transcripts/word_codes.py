"""Words as integers: equal for equal words, different for different ones, many texts at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint64]
Places = NDArray[np.int64]

_SHORT = 8
"""Bytes of a word that are their own code."""
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_SHORT + 1)], np.uint64)
_LONG = np.uint64(0xFF << 56)
"""Marks the number of a longer word: no UTF-8 text holds this byte, so no short word looks like one."""


@dataclass(frozen=True, slots=True)
class CodedWords:
    """The words of n texts one after the other: text k has codes[starts[k] : starts[k] + lengths[k]]."""

    codes: Codes
    starts: Places
    lengths: Places


def code_texts(texts: Sequence[str]) -> CodedWords:
    """Of texts whose words are parted by single spaces; "" has no words, and two spaces have an empty one between."""
    joined = _joined(texts)
    if joined is None:
        return _numbered([text.split(" ") if text else [] for text in texts])
    ends, starts, last = _places(joined)
    sizes = ends - starts
    # Eight bytes from the start of each word, wherever that is.
    eights = np.ndarray((len(joined) - _SHORT + 1,), "<u8", joined, 0, (1,))
    codes = eights[starts] & _MASKS[np.minimum(sizes, _SHORT)]
    long = np.flatnonzero(sizes > _SHORT)
    number: defaultdict[bytes, int] = defaultdict(count().__next__)
    words = (joined[start:end] for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True))
    codes[long] = np.fromiter(map(number.__getitem__, words), np.uint64, len(long)) | _LONG
    firsts = np.concatenate(([0], last[:-1] + 1))
    return CodedWords(codes, firsts, _lengths(sizes, firsts, last))


def code_words(texts: Sequence[Sequence[str]]) -> CodedWords:
    """Of texts given as words."""
    coded = code_texts([" ".join(words) for words in texts])
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    # A space within a word, or an empty word alone, makes more words or fewer.
    return coded if np.array_equal(coded.lengths, lengths) else _numbered(texts)


def count_words(texts: Sequence[str]) -> Places:
    """How many words each text has, as `code_texts` has them."""
    joined = _joined(texts)
    if joined is None:
        return np.array([text.count(" ") + 1 if text else 0 for text in texts], np.int64)
    ends, starts, last = _places(joined)
    return _lengths(ends - starts, np.concatenate(([0], last[:-1] + 1)), last)


def _joined(texts: Sequence[str]) -> bytes | None:
    """UTF-8, a line for each text; None for texts with a line break or a NUL within, or no texts at all."""
    joined = "\n".join(texts)
    if not texts or joined.count("\n") != len(texts) - 1 or "\0" in joined:
        return None
    return joined.encode("utf-8", "surrogatepass") + b"\n" + bytes(_SHORT)


def _places(joined: bytes) -> tuple[Places, Places, Places]:
    """The first byte after each word, its first byte, and which words are the last of their text."""
    read = np.frombuffer(joined, np.uint8, len(joined) - _SHORT)
    ends = np.flatnonzero((read == ord(" ")) | (read == ord("\n")))
    starts = np.concatenate(([0], ends[:-1] + 1))
    return ends, starts, np.flatnonzero(read[ends] == ord("\n"))


def _lengths(sizes: Places, firsts: Places, last: Places) -> Places:
    lengths: Places = last - firsts + 1
    lengths[(lengths == 1) & (sizes[firsts] == 0)] = 0
    return lengths


def _numbered(texts: Iterable[Sequence[str]]) -> CodedWords:
    number: defaultdict[str, int] = defaultdict(count().__next__)
    held = list(texts)
    lengths = np.fromiter(map(len, held), np.int64, len(held))
    codes = np.fromiter(map(number.__getitem__, chain.from_iterable(held)), np.uint64)
    return CodedWords(codes, np.cumsum(lengths) - lengths, lengths)
