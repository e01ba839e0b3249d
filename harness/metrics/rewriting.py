"""Words, with the phrases of a named list made into what they count as."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.rewriting import Rewriting


def rewrite(words: Sequence[str], rewriting: Rewriting) -> tuple[str, ...]:
    """The words after the list: from left to right, the longest phrase that fits, each word once.

    words: normalised by the rewriting's base. The time grows with the number of words and the longest phrase, not with
    the number of pairs.
    """
    lengths = rewriting.lengths
    out: list[str] = []
    at = 0
    while at < len(words):
        for length in lengths.get(words[at], ()):
            meant = rewriting.meanings.get(tuple(words[at : at + length]))
            if meant is not None:
                out.extend(meant)
                at += length
                break
        else:
            out.append(words[at])
            at += 1
    return tuple(out)
