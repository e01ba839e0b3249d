"""Words, with the phrases of a named list made into what they count as."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.rewriting import Rewriting


def rewrite(words: Sequence[str], rewriting: Rewriting) -> tuple[str, ...]:
    """The words after the list: from left to right, the longest phrase that fits, each word once.

    words: normalised by the rewriting's base. The time grows with the number of words, not with that of the pairs.
    """
    raise NotImplementedError
