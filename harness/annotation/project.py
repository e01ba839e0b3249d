"""An annotation project: its files, its facts, its log of rows, and the room in which annotators work.

Several processes may add rows at the same time: screens, the annotators' site, tri-training.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import Ledger, UtteranceAssignment
from harness.annotation.worklist import Worklist
from harness.base.codec import CodecError, decode
from harness.base.row_store import RowFormat, SharedRows, read_rows
from harness.base.user_text import known_name, name_key, person_name
from harness.base.whole_file import disk_errors
from harness.model.annotation import IMPORTED, AnnotationProject, AnnotationRow, LabelSet, Proposed
from harness.model.errors import InputError, LogError, Place
from harness.model.frozen import frozen
from harness.model.understanding import Utterance
from harness.session.log.reader import LogFindings, check_file, combine_findings
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.label_set_file import load_label_set

_PROJECT: TypeAdapter[AnnotationProject] = TypeAdapter(AnnotationProject)


@frozen
class AnnotationFolder:
    """Paths of the files of one project: frozen copies of its data and label set, its facts, and its rows."""

    path: Path

    @property
    def project(self) -> Path:
        """The file of facts, hashes, and what annotators may see. Written last, so a folder with it is complete."""
        return self.path / "project.json"

    @property
    def utterances(self) -> Path:
        return self.path / "utterances.jsonl"

    @property
    def labels(self) -> Path:
        return self.path / "labels.yaml"

    @property
    def rows(self) -> Path:
        return self.path / "annotation.sqlite"

    def first_hash(self) -> bytes:
        """The hash at which the chain of the project's rows begins. Raises LogError if it cannot be computed."""
        with disk_errors(f"{self.project} cannot be read"):
            return hashlib.sha256(self.project.read_bytes()).digest()

    def demand(self) -> AnnotationFolder:
        """Returns this object. Raises LogError if there is no project in the folder."""
        if not self.project.is_file():
            raise LogError(
                f"{self.path} is not an annotation project: it has no {self.project.name}",
                remedy="Create a project with: harness understand annotate new",
            )
        return self


def read_project(folder: AnnotationFolder) -> AnnotationProject:
    """The facts of a project. Raises LogError if they cannot be read, or if a frozen file does not have its hash."""
    with disk_errors(f"{folder.project} cannot be read"):
        text = folder.project.read_bytes()
    try:
        project = decode(_PROJECT, text)
    except CodecError as error:
        raise LogError(
            f"this is not a project file: {error.what}",
            place=Place(str(folder.project)),
            remedy="Restore the file; it is written once and never changed",
        ) from error
    for name, sha256 in project.files:
        path = folder.path / name
        with disk_errors(f"{path} cannot be read"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != sha256:
            raise LogError(
                f"{path} is not the file that the project was created with",
                remedy="Restore the file, or create a new project for other data",
            )
    return project


def project_text(project: AnnotationProject) -> bytes:
    """The content of project.json."""
    return _PROJECT.dump_json(project, indent=2) + b"\n"


ANNOTATION: RowFormat[AnnotationRow] = RowFormat(
    application_id=0x5648414E,  # "VHAN"
    version=1,
    whole="an annotation project",
    name="an annotation log",
    other_version="Use the harness version named in project.json",
    unreadable="Keep the folder, and continue with a copy from a backup",
    adapter=TypeAdapter(Annotated[AnnotationRow, Field(discriminator="kind")]),
    id_of=lambda row: row.id,
)


class AnnotationLog(SharedRows[AnnotationRow]):
    """The annotation.sqlite of one project; thread-safe, and any number of processes may have it open.

    Raises LogError if the folder holds no project, or if the file cannot be written. Raises LogFull if the disk is
    full.
    """

    def __init__(self, folder: Path) -> None:
        project = AnnotationFolder(folder)
        super().__init__(project.demand().rows, ANNOTATION, project.demand, project.first_hash)


def annotation_rows(folder: Path, after_seq: int = 0) -> Iterator[tuple[int, AnnotationRow]]:
    """Yields (seq, row) for each committed row after `after_seq`, in order, of all processes. Raises LogError.

    Nothing is made or changed, so the folder may be read-only.
    """
    for row, record in read_rows(AnnotationFolder(folder).demand().rows, ANNOTATION, after_seq, may_be_blank=True):
        yield row[0], record


def check_annotation(folder: Path) -> LogFindings:
    """Checks a whole annotation project: the files with which it was made, and its rows. LogError as `check`."""
    project = AnnotationFolder(folder).demand()
    damage, tied = [], False
    try:
        tied = read_project(project).tied
    except LogError as error:
        damage.append(error.what)
    file = check_file(project.rows, ANNOTATION, may_be_blank=True, first=project.first_hash(), tied=tied)
    return combine_findings([file], clips=None, damage=[*damage, *file.damage])


def annotator_name(text: str) -> str:
    """The name of a person as it is kept. Raises InputError, also for the name that labels from files have."""
    name = person_name(text, "annotator name")
    if name_key(name) == IMPORTED:
        raise InputError(f"{name!r} is reserved for labels from files", remedy="Choose another name")
    return name


class AnnotationRoom:
    """Opens a project's folder; thread-safe.

    Raises LogError if the folder does not hold a project, or if its frozen files were changed. Raises InputError if
    such a file cannot be understood.
    """

    def __init__(self, folder: Path) -> None:
        files = AnnotationFolder(folder).demand()
        self.folder = files
        self.project: AnnotationProject = read_project(files)
        self.label_set: LabelSet = load_label_set(files.labels)
        self.utterances: tuple[Utterance, ...] = read_corpus(files.utterances).utterances
        self.assignment = UtteranceAssignment(self.project, self.utterances)
        self._lock = threading.RLock()
        self._log: AnnotationLog | None = None  # opened for the first write: reading needs no write permission
        self._rows: list[AnnotationRow] = []
        self._seq = 0
        self.refresh()

    def refresh(self) -> tuple[AnnotationRow, ...]:
        """Reads the rows that any process has added since the last call. Returns all rows so far. Raises LogError."""
        with self._lock:
            for seq, row in annotation_rows(self.folder.path, self._seq):
                self._seq = seq
                self._rows.append(row)
            return tuple(self._rows)

    @property
    def rows(self) -> tuple[AnnotationRow, ...]:
        """All rows, in the order of the file, as of the last `refresh` or `write`."""
        with self._lock:
            return tuple(self._rows)

    @property
    def ledger(self) -> Ledger:
        """A new ledger of all rows so far."""
        return Ledger(self.label_set, self.rows)

    def desk(self, annotator: str, again: Sequence[str] = ()) -> AnnotationDesk:
        """A sitting.

        Raises InputError when the project names its annotators and this is none of them, or as `annotator_name`.

        again: ids of utterances to label again, and nothing else (`may_label_again`); empty for the usual queue.
        """
        annotator = self._annotator_name(annotator)
        if self.project.annotators and annotator not in self.project.annotators:
            raise InputError(
                f"{annotator!r} is not an annotator of this project",
                remedy=f"Its annotators: {', '.join(self.project.annotators)}",
            )
        return self._sitting(annotator, again, adjudicating=False)

    def adjudication(self, annotator: str, again: Sequence[str] = ()) -> AnnotationDesk:
        """A sitting to settle disagreements, with the labels of the annotators as inputs. again: as for `desk`."""
        return self._sitting(self._annotator_name(annotator), again, adjudicating=True)

    def write(self, rows: Sequence[AnnotationRow]) -> None:
        """Writes rows, all or none. Returns when they are on the disk. Rows that are there already change nothing."""
        with self._lock:
            if self._log is None:
                self._log = AnnotationLog(self.folder.path)
            log = self._log
        log.add(rows)
        self.refresh()

    def close(self) -> None:
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._log = None

    def _annotator_name(self, annotator: str) -> str:
        """The name as the project already spells it; unchanged if the annotator is new. Raises InputError."""
        annotators = (row.annotator for row in self.rows if not isinstance(row, Proposed))
        return known_name(annotator_name(annotator), dict.fromkeys((*self.project.annotators, *annotators)))

    def _sitting(self, annotator: str, again: Sequence[str], *, adjudicating: bool) -> AnnotationDesk:
        worklist = Worklist(
            annotator,
            self.project,
            self.label_set,
            self.utterances,
            rows=self.refresh(),
            save_rows=self.write,
            adjudicating=adjudicating,
            again=again,
        )
        return AnnotationDesk(worklist)
