"""Transcriptions in .sro conventions, made into Standard Normal Orthographic Representation.

Source: ATIS Spontaneous Speech Recognition Scoring Conventions (NIST, 1990), seeds/atis-sro-snor.txt.
"""

from __future__ import annotations

from enum import StrEnum

from harness.model.errors import Place

NOWHERE = Place("<text>", 1)


class Form(StrEnum):
    """What a line is converted to: Lexical SNOR (the official scoring), Expanded SNOR (diagnostics), the old .snr."""

    LEXICAL = "lsn"
    EXPANDED = "esn"
    SNR = "snr"


def convert(line: str, form: Form, place: Place = NOWHERE) -> str:
    """A line of .sro text, with its utterance id if it has one; InputError with line and column.

    place: of the line; columns in errors count from 1.
    """
    raise NotImplementedError


def words(text: str, form: Form = Form.LEXICAL, place: Place = NOWHERE) -> tuple[str, ...]:
    """The words of a text in a form, without any utterance id; InputError."""
    raise NotImplementedError


def homophone(word: str) -> str:
    """What a word of Expanded SNOR sounds like: `<WHERE>` is WHERE. Every other word is itself."""
    raise NotImplementedError
