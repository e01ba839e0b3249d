"""What the command line of `harness score` says of how to score."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.choices import Marks
from harness.model.errors import InputError
from harness.model.transcript import ENGLISH, Normalisation

if TYPE_CHECKING:
    from harness.model.choices import TranscriptFormat as Format
    from harness.transcripts.words import Wording

LIST_SUFFIXES = (".yaml", ".yml")


class Shown(StrEnum):
    """Which utterances are shown word below word."""

    ERRORS = "errors"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Asked:
    """normalise: a name, a file, or None for what the reference's format asks for."""

    reference_format: Format | None
    hypothesis_format: Format | None
    encoding: str | None
    normalise: str | None
    like_sclite: bool
    optional_words: bool
    fragments: bool
    by: str
    marks: Marks = Marks.BOTH
    language: str = ENGLISH

    def wording(self, reference_format: Format) -> Wording:
        """How words are compared; InputError for a normalisation that there is not, or what is wrong in its file."""
        from harness.model.choices import TranscriptFormat as Format
        from harness.transcripts.words import Wording

        fold = self.like_sclite
        if self.normalise is None:
            of_sro = Normalisation.SNOR if reference_format is Format.SRO else Normalisation.VERBATIM
            return Wording(of_sro, fold_case=fold, marks=self.marks)
        if self.normalise in tuple(Normalisation):
            return Wording(Normalisation(self.normalise), None, fold, self.marks, self.language)
        if self.normalise.lower().endswith(LIST_SUFFIXES):
            # Here, since reading YAML takes longer to import than most files take to score.
            from harness.transcripts.files.normalisation_file import load_normalisation

            rewriting = load_normalisation(Path(self.normalise))
            return Wording(rewriting.base, rewriting, fold, self.marks, self.language)
        raise InputError(
            f"there is no normalisation {self.normalise!r}",
            remedy=f"There are {', '.join(Normalisation)}, or name a .yaml file with a list",
        )

    def rules(self, wording: Wording) -> str:
        """The name that stands beside every figure: of the normalisation, and of what else made words correct."""
        optional = self.optional_words and any(wording.reads_marks)
        also = (("optional words", optional), ("fragments", self.fragments))
        return ", ".join([wording.name, *(name for name, holds in also if holds)])
