"""The files that an evaluation writes: the log, its journal and its summary. Which of them may be replaced."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from harness.base.whole_file import WholeFile, demand_folder
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.offline.journal import Journal, JournalFile
from harness.offline.journal_lines import JournalHeader
from harness.offline.request import DeclaredLimits

if TYPE_CHECKING:
    from harness.offline.figures.figures import Figures
    from harness.offline.figures.groups import FileBreakdown
    from harness.offline.reports.log import EvaluationRun

Breakdowns: TypeAlias = "Callable[[JournalFile], Iterable[FileBreakdown]]"
_LINE_STARTS = (b"INFO ", b"INVTA ", b"INVFA ", b"INVFR ", b"OOVFA ", b"CMD", b"STT", b"REJECT ", b"ERROR ")
"""Beginnings of the lines of a wake-evaluation log."""
_ANOTHER_LOG = "Choose another log with -l"


@frozen
class EvaluationFiles:
    """The files that an evaluation writes: the log, and the others beside it."""

    log: Path

    @property
    def journal(self) -> Path:
        return self.log.with_name(f"{self.log.name}.jsonl")

    @property
    def summary(self) -> Path:
        return self.log.with_name(f"{self.log.name}.json")

    @property
    def all(self) -> tuple[Path, ...]:
        return (self.log, self.journal, self.summary) if self.log.name else ()

    def check_output(self, *, resume: bool, force: bool) -> None:
        """Raises InputError if a file exists and may not be replaced, or the folder is not writable."""
        if not self.log.name:
            raise InputError("a log needs a name", remedy=_ANOTHER_LOG)
        try:
            self._check_output(resume=resume, force=force)
        except OSError as error:  # the name is too long, or the folder cannot be read
            problem = f"the log cannot be written: {error.strerror or error}"
            raise InputError(problem, place=Place(str(self.log)), remedy=_ANOTHER_LOG) from error

    def _check_output(self, *, resume: bool, force: bool) -> None:
        """As `check_output`, but OSError for a path that cannot be looked at."""
        folder = self.log.parent
        demand_folder(self.log)
        if not os.access(folder, os.W_OK):
            raise InputError("the folder is not writable", place=Place(str(folder)), remedy=_ANOTHER_LOG)
        for path in self.all:
            if path.exists() and not path.is_file():
                raise InputError("this is not a regular file", place=Place(str(path)), remedy=_ANOTHER_LOG)
        if resume:
            if self.log.exists() and not self.journal.exists():
                problem = f"--resume needs {self.journal.name}, which is not next to the log"
                remedy = "Start again with --force, or choose another log with -l"
                raise InputError(problem, place=Place(str(self.log)), remedy=remedy)
            return
        if not (self.log.exists() or self.journal.exists()):
            return
        if not force:
            existing = self.log if self.log.exists() else self.journal
            raise InputError(
                "this file already exists", place=Place(str(existing)), remedy=self._existing_file_remedy()
            )
        if self.log.exists() and not _is_log(self.log):
            problem = "this is not a wake-evaluation log, and --force replaces only such logs"
            raise InputError(problem, place=Place(str(self.log)), remedy=_ANOTHER_LOG)

    def open_journal(self, header: JournalHeader, *, resume: bool) -> Journal:
        """The journal, new or resumed. Deletes an earlier log and its summary, which it replaces."""
        if resume and self.journal.exists():
            return Journal.reopen(self.journal, header)
        journal = Journal.create(self.journal, header)
        # The old files do not describe this run, and the run may be killed before it writes its own.
        self.log.unlink(missing_ok=True)
        self.summary.unlink(missing_ok=True)
        return journal

    def write(
        self,
        breakdowns: Breakdowns = lambda journal: (),
        limits: DeclaredLimits = DeclaredLimits(),  # noqa: B008 – frozen
    ) -> tuple[EvaluationRun, Figures]:
        """Writes log and summary from the journal, each completely or not at all.

        Raises InputError for a damaged journal, another HarnessError if a file cannot be written.

        breakdowns: returns the results by groups, from the journal.
        """
        from harness.offline.reports.log import run_of, summary_json, write_log

        journal = JournalFile(self.journal)
        evaluated = replace(run_of(journal), breakdowns=tuple(breakdowns(journal)), limits=limits)
        with WholeFile(str(self.log)) as file:
            text = io.TextIOWrapper(io.BufferedWriter(file, 1 << 20), "utf-8", newline="\n")
            figures = write_log(text, evaluated, journal.outcomes())
            text.flush()
            file.keep()
        with WholeFile(str(self.summary)) as file:
            file.write((json.dumps(summary_json(evaluated, figures), indent=2) + "\n").encode())
            file.keep()
        return evaluated, figures

    def _existing_file_remedy(self) -> str:
        replace_remedy = "Replace it with --force, or choose another log with -l"
        if not self.journal.exists():
            return replace_remedy
        try:
            complete = JournalFile(self.journal).complete
        except InputError:
            return replace_remedy
        return replace_remedy if complete else f"It is incomplete: use --resume to continue. {replace_remedy}"


def _is_log(path: Path) -> bool:
    """Whether a file is empty or begins like a wake-evaluation log."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", place=Place(str(path))) from error
    return not start or start.startswith(_LINE_STARTS)
