"""Collects the utterances of a file that has one in each line, and reports repeated ids."""

from __future__ import annotations

from harness.base.text_file import Problems, encoding_name, repetition
from harness.model.transcript import Transcripts

ID_EXAMPLE = "End the line with its id: what day is it (spk1_001)"


class UtteranceLines:
    """The utterances of one file. Its problems are raised together, when all lines have been taken."""

    def __init__(self, file: str) -> None:
        self.problems = Problems(file)
        self._ids: list[str] = []
        self._texts: list[str] = []
        self._lines: list[int] = []
        self._first: dict[str, int] = {}

    def add(self, line: int, id_: str, text: str, caseless: str, column: int = 1) -> None:
        """Adds an utterance.

        - caseless: form of its id in which ids are compared.
        - column: where the id begins in its line.
        """
        if (first_line := self._first.setdefault(caseless, line)) != line:
            self.problems.add(line, column, *repetition(id_, first_line))
            return
        self._ids.append(id_)
        self._texts.append(text)
        self._lines.append(line)

    def columns(self, example: str, *, may_be_empty: bool) -> tuple[list[str], list[str], list[int]]:
        """Ids, texts and line numbers.

        Raises InputProblems if there are problems, or no utterances in a file that may not be empty. example: a correct
        line, for the remedy.
        """
        self.problems.demand(self._ids or may_be_empty, "the file has no transcripts", example)
        return self._ids, self._texts, self._lines

    def transcripts(self, encoding: str | None, example: str, *, may_be_empty: bool) -> Transcripts:
        """The utterances as Transcripts; InputProblems as in `columns`."""
        ids, texts, lines = self.columns(example, may_be_empty=may_be_empty)
        columns = tuple(ids), tuple(texts), tuple(lines), ("",) * len(ids)
        return Transcripts(self.problems.file, *columns, encoding_name(encoding))
