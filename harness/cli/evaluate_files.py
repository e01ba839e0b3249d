"""The files that an evaluation writes: its log, journal and summary, and when they may be replaced."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.whole_file import WholeFile
from harness.cli.read_once import refuse_overwriting
from harness.model.errors import InputError, Place
from harness.offline.journal import Journal, read_journal
from harness.offline.journal_lines import JournalHeader

if TYPE_CHECKING:
    from harness.offline.figures.figures import Figures
    from harness.offline.reports.log import Run

_FIRST_WORDS = (b"INFO ", b"INVTA ", b"INVFA ", b"INVFR ", b"OOVFA ", b"CMD", b"STT", b"REJECT ", b"ERROR ")


@dataclass(frozen=True, slots=True)
class EvaluationFiles:
    """The log by its name; the others stand beside it."""

    log: Path

    @property
    def journal(self) -> Path:
        return self.log.with_name(f"{self.log.name}.jsonl")

    @property
    def summary(self) -> Path:
        return self.log.with_name(f"{self.log.name}.json")

    def demand_room(self, lists: tuple[str, ...], *, resume: bool, force: bool) -> None:
        """InputError when something is there that nobody said may be replaced, or nothing can be written there."""
        if not self.log.name:
            raise InputError("a log needs a name", remedy="Choose another -l")
        try:
            self._demand_room(lists, resume=resume, force=force)
        except OSError as error:  # a name that is too long, a folder that may not be looked into
            what = f"the log cannot be written: {error.strerror or error}"
            raise InputError(what, place=Place(str(self.log)), remedy="Choose another -l") from error

    def _demand_room(self, lists: tuple[str, ...], *, resume: bool, force: bool) -> None:
        folder = self.log.parent
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}", place=Place(str(self.log)), remedy=f"mkdir -p {folder}")
        if not os.access(folder, os.W_OK):
            raise InputError("nothing can be written there", place=Place(str(folder)), remedy="Choose another -l")
        for one in (self.log, self.journal, self.summary):
            if one.exists() and not one.is_file():
                raise InputError("this is no file", place=Place(str(one)), remedy="Choose another -l")
            refuse_overwriting(str(one), lists)
        if resume:
            if self.log.exists() and not self.journal.exists():
                raise InputError(
                    f"there is no {self.journal.name} beside it, which --resume goes on with",
                    place=Place(str(self.log)),
                    remedy="Begin anew with --force, or choose another -l",
                )
            return
        if not (self.log.exists() or self.journal.exists()):
            return
        if not force:
            there = self.log if self.log.exists() else self.journal
            raise InputError("this is there already", place=Place(str(there)), remedy=self._ways_out())
        if self.log.exists() and not _is_log(self.log):
            raise InputError(
                "this is no wake-evaluation log, and --force replaces only those",
                place=Place(str(self.log)),
                remedy="Choose another -l",
            )

    def opened(self, header: JournalHeader, *, resume: bool) -> Journal:
        """The journal, new or gone on with; a log of before that is to be replaced goes with its summary."""
        if resume and self.journal.exists():
            return Journal.reopen(self.journal, header)
        journal = Journal.create(self.journal, header)
        # What they say is of another run from now on, and this one may be killed before it writes its own.
        self.log.unlink(missing_ok=True)
        self.summary.unlink(missing_ok=True)
        return journal

    def write(self) -> tuple[Run, Figures]:
        """Log and summary from the journal, each whole or not at all; HarnessError, InputError."""
        from harness.offline.reports.log import as_json, run_of, write_log

        journal = read_journal(self.journal)
        run = run_of(journal)
        with WholeFile(str(self.log)) as file:
            text = io.TextIOWrapper(io.BufferedWriter(file, 1 << 20), "utf-8", newline="\n")
            found = write_log(text, run, journal.outcomes())
            text.flush()
            file.keep()
        with WholeFile(str(self.summary)) as file:
            file.write((json.dumps(as_json(run, found), indent=2) + "\n").encode())
            file.keep()
        return run, found

    def _ways_out(self) -> str:
        ways = "--force begins anew and replaces it; -l names another"
        if not self.journal.exists():
            return ways
        try:
            complete = read_journal(self.journal).complete
        except InputError:
            return ways
        return ways if complete else f"It is partial: --resume goes on with it; {ways}"


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", place=Place(str(path))) from error
    return not start or start.startswith(_FIRST_WORDS)
