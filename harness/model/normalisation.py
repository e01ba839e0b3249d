"""How words are made comparable."""

from __future__ import annotations

from enum import StrEnum

ENGLISH = "en"


class Normalisation(StrEnum):
    """How reference and transcript are made comparable (words only; recorded with every figure).

    PLAIN: lower case, punctuation off. SPOKEN: words are the same where a person may say the same for both: "845" is
    "eight forty five", "5 km" five kilometers, "colour" color.
    SNOR: Lexical SNOR, as NIST scores ATIS. EXPANDED_SNOR: with events, pauses, false starts and verbal deletions, for
    scoring files only.
    """

    VERBATIM = "verbatim"
    PLAIN = "plain"
    SPOKEN = "spoken"
    SNOR = "snor"
    EXPANDED_SNOR = "expanded_snor"
