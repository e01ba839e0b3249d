"""What was proposed for a project's utterances and what annotators said of it, in a file beside them.

As with judgments, several processes may add rows at the same time: screens, the annotators' site, tri-training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from harness.annotation.annotation_folder import AnnotationFolder, read_project
from harness.base.codec import CodecError, decode
from harness.model.annotation import AnnotationRow
from harness.model.errors import LogError
from harness.session.log.database import Content, Row, open_for_reading, texts
from harness.session.log.reader import Findings, checked, findings, notes
from harness.session.log.shared_rows import SharedRows

ANNOTATION = Content(
    0x5648414E,  # "VHAN"
    1,
    "an annotation project",
    "an annotation log",
    "Use the version of the tool that project.json names",
)
ANNOTATIONS: TypeAdapter[AnnotationRow] = TypeAdapter(Annotated[AnnotationRow, Field(discriminator="kind")])


class AnnotationLog(SharedRows[AnnotationRow]):
    """The annotation.sqlite of one project; thread-safe, and any number of processes may have it open.

    LogError when the folder holds no project or the file cannot be written; LogFull.
    """

    def __init__(self, folder: Path) -> None:
        project = AnnotationFolder(folder)
        super().__init__(project.demand().rows, ANNOTATION, project.demand)

    def append_all(self, rows: Sequence[AnnotationRow]) -> None:
        """Returns when the rows are on the disk, all or none; those that are there already are not written again."""
        self.add(rows)

    def rows(self, after_seq: int = 0) -> Iterator[tuple[int, AnnotationRow]]:
        """As `annotation_rows`."""
        return annotation_rows(self._path.parent, after_seq)

    def _id(self, record: AnnotationRow) -> str:
        return record.id

    def _kind(self, record: AnnotationRow) -> str:
        return record.kind

    def _record(self, row: Row) -> AnnotationRow:
        return _record_of(row, self._path)

    @property
    def _adapter(self) -> TypeAdapter[AnnotationRow]:
        return ANNOTATIONS


def annotation_rows(folder: Path, after_seq: int = 0) -> Iterator[tuple[int, AnnotationRow]]:
    """Committed rows after a seq, with their seq, by whichever process, in order; also of a read-only folder. LogError.

    Nothing is made or changed.
    """
    path = AnnotationFolder(folder).demand().rows
    connection = open_for_reading(path, may_be_blank=True, content=ANNOTATION)
    try:
        for row in texts(connection, path, after_seq):
            yield row[0], _record_of(row, path)
    finally:
        connection.close()


def _record_of(row: Row, path: Path) -> AnnotationRow:
    try:
        return decode(ANNOTATIONS, row[4])
    except CodecError as error:
        raise LogError(
            f"{path}: row {row[0]} cannot be read: {error.what}",
            remedy="Keep the folder, and go on with a copy from a backup",
        ) from error


def check_annotation(folder: Path) -> Findings:
    """Checks an annotation project whole: the files that it was made with, and its rows; LogError as `check`."""
    project = AnnotationFolder(folder).demand()
    damage = []
    try:
        read_project(project)
    except LogError as error:
        damage.append(error.what)
    rows_ = checked(project.rows, ANNOTATION, ANNOTATIONS, may_be_blank=True)
    return findings([rows_], None, [*damage, *rows_.damage], list(notes([rows_])))
