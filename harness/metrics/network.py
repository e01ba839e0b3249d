"""Texts with alternatives `{ a / b / @ }`, words that may be left out `(w)`, and how they align, as sclite does.

Source: NIST SCTK 2.4.10, sclite, which aligns networks of words.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.model.errors import Place
from harness.model.transcript import AlignedWord

NOWHERE = Place("<text>", 1)


class Network:
    """A text as a network of words, from its first to its last."""


def is_plain(text: str) -> bool:
    """True when a text has no mark of a network, so that splitting it at spaces is enough. Cheap."""
    raise NotImplementedError


def parse(text: str, normalise: Callable[[str], tuple[str, ...]], place: Place = NOWHERE) -> Network:
    """The network of a text; its words are normalised one by one, and one may become several or none.

    InputError with line and column on unbalanced braces, empty alternatives and the like.
    """
    raise NotImplementedError


def align_networks(
    reference: Network,
    hypothesis: Network,
    same: Callable[[str, str], bool] | None = None,
    *,
    optional_words: bool = False,
    fragments: bool = False,
) -> tuple[AlignedWord, ...]:
    """The words of the cheapest way through both, side by side.

    same: whether two words count as one (None: equality). optional_words: a word `(w)` that was left out is correct
    (sclite's -D). fragments: a fragment `sho-` is correct against a word that begins so (sclite's -F).
    """
    raise NotImplementedError
