"""A file of transcripts of any format, and a reference with its hypothesis."""

from __future__ import annotations

from pathlib import Path

from harness.library.transcripts.form import Format
from harness.model.transcript import Transcripts


def read_transcripts(path: Path, format: Format | None = None, encoding: str | None = None) -> Transcripts:
    """The transcripts of a trn, .sro or CSV file; InputProblems with all that is wrong with it.

    format: without it the file's suffix says so. encoding: without it UTF-8, with or without a byte order mark.
    """
    raise NotImplementedError


def read_pair(
    reference_path: Path,
    hypothesis_path: Path,
    reference_format: Format | None = None,
    hypothesis_format: Format | None = None,
    encoding: str | None = None,
) -> tuple[Transcripts, Transcripts]:
    """A reference and a hypothesis whose ids pair, whatever their formats; InputError when the two do not go together.

    Ids that differ in case only are one: the hypothesis takes the reference's spelling.
    """
    raise NotImplementedError
