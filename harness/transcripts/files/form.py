"""The formats that transcripts come in, and which one a file is in."""

from __future__ import annotations

from pathlib import Path

from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError, Place

EITHER = "--reference-format or --hypothesis-format"


def format_of(path: Path, option: str = EITHER) -> Format:
    """The format that a file's suffix names, in any case; InputError when it names none.

    option: what else could name it.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in tuple(Format):
        return Format(suffix)
    what = f"the suffix .{suffix} names no format" if suffix else "no suffix says which format this is"
    remedy = f"Say it: {option} {'|'.join(Format)}"
    raise InputError(what, place=Place(str(path)), remedy=remedy)
