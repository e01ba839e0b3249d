"""The formats that transcripts come in, and which one a file is in."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from harness.model.errors import InputError, Place


class Format(StrEnum):
    """How a file of transcripts is written; the values are the suffixes."""

    TRN = "trn"
    CTM = "ctm"
    STM = "stm"
    SRO = "sro"
    CSV = "csv"


def format_of(path: Path) -> Format:
    """The format that a file's suffix names, in any case; InputError when it names none."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in tuple(Format):
        return Format(suffix)
    what = f"the suffix .{suffix} names no format of transcripts" if suffix else "the file's name has no suffix"
    known = ", ".join(f".{one.value}" for one in Format)
    remedy = f"The formats are {known}; name one with --reference-format or --hypothesis-format"
    raise InputError(what, place=Place(str(path)), remedy=remedy)
