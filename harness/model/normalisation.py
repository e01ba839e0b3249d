"""How words are made comparable."""

from __future__ import annotations

from enum import StrEnum


class Normalisation(StrEnum):
    """How reference and transcript are made comparable (words only; recorded with every figure).

    PLAIN: lower case, punctuation off. SPOKEN is PLAIN with numbers, contractions and "per cent" written in one way.
    SNOR: Lexical SNOR, as NIST scores ATIS. EXPANDED_SNOR: with events, pauses, false starts and verbal deletions, for
    scoring files only.
    """

    VERBATIM = "verbatim"
    PLAIN = "plain"
    SPOKEN = "spoken"
    SNOR = "snor"
    EXPANDED_SNOR = "expanded_snor"
