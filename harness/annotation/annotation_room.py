"""What annotators sit in: a project's utterances, its labels, and where its rows are kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from harness.annotation.annotation_folder import AnnotationFolder, read_project
from harness.annotation.annotation_log import AnnotationLog, annotation_rows
from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import Ledger
from harness.annotation.shares import Shares
from harness.model.annotation import AnnotationProject, AnnotationRow, LabelSet
from harness.model.errors import InputError
from harness.model.understanding import Utterance
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.label_set_file import load_label_set


class AnnotationRoom:
    """Opens a project's folder; thread-safe. LogError when it is none, InputError when its files were changed."""

    def __init__(self, folder: Path) -> None:
        files = AnnotationFolder(folder).demand()
        self.folder = files
        self.project: AnnotationProject = read_project(files)
        self.label_set: LabelSet = load_label_set(files.labels)
        self.utterances: tuple[Utterance, ...] = read_corpus(files.utterances).utterances
        self.shares = Shares(self.project, self.utterances)
        self._lock = threading.RLock()
        self._log: AnnotationLog | None = None  # who only looks needs no right to write
        self._rows: list[AnnotationRow] = []
        self._seq = 0
        self.refresh()

    def refresh(self) -> tuple[AnnotationRow, ...]:
        """Reads what was added since it was last asked, by whichever process; LogError. All rows so far."""
        with self._lock:
            for seq, row in annotation_rows(self.folder.path, self._seq):
                self._seq = seq
                self._rows.append(row)
            return tuple(self._rows)

    @property
    def rows(self) -> tuple[AnnotationRow, ...]:
        """All rows, in the order of the file, as of the last `refresh` or `keep`."""
        with self._lock:
            return tuple(self._rows)

    @property
    def ledger(self) -> Ledger:
        """What the rows say together, now."""
        return Ledger(self.label_set, self.rows)

    def wanted(self, utterance: str) -> int:
        """How many annotators are to label it."""
        return self.shares.wanted(utterance)

    def desk(self, annotator: str, again: Sequence[str] = ()) -> AnnotationDesk:
        """A sitting; InputError when the project names its annotators and this is none of them.

        again: at just these utterances, whatever was said of them (`may_label_again`).
        """
        if self.project.annotators and annotator not in self.project.annotators:
            raise InputError(
                f"{annotator!r} is no annotator of this project",
                remedy=f"Its annotators: {', '.join(self.project.annotators)}",
            )
        return self._sitting(annotator, again, adjudicating=False)

    def adjudication(self, annotator: str, again: Sequence[str] = ()) -> AnnotationDesk:
        """A sitting at what annotators disagree on, with their labels as inputs; again: as of `desk`."""
        return self._sitting(annotator, again, adjudicating=True)

    def keep(self, rows: Sequence[AnnotationRow]) -> None:
        """Returns when the rows are on the disk, all or none; those that are there already change nothing."""
        with self._lock:
            if self._log is None:
                self._log = AnnotationLog(self.folder.path)
            log = self._log
        log.append_all(rows)
        self.refresh()

    def close(self) -> None:
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._log = None

    def _sitting(self, annotator: str, again: Sequence[str], *, adjudicating: bool) -> AnnotationDesk:
        return AnnotationDesk(
            annotator,
            self.project,
            self.label_set,
            self.utterances,
            self.refresh(),
            self.keep,
            adjudicating=adjudicating,
            again=again,
        )


def open_annotation(folder: Path) -> AnnotationRoom:
    """The room of a project's folder."""
    return AnnotationRoom(folder)
