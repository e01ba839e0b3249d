"""An annotation project's folder: what lies where, and its facts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from harness.base.codec import CodecError, decode
from harness.base.whole_file import disk_errors
from harness.model.annotation import AnnotationProject
from harness.model.errors import LogError, Place

_PROJECT: TypeAdapter[AnnotationProject] = TypeAdapter(AnnotationProject)


@dataclass(frozen=True, slots=True)
class AnnotationFolder:
    """Names of the files of one project; creates nothing."""

    path: Path

    @property
    def project(self) -> Path:
        """Facts, hashes, and what annotators may see. Written last: a folder with it is whole."""
        return self.path / "project.json"

    @property
    def utterances(self) -> Path:
        """A frozen copy of the data."""
        return self.path / "utterances.jsonl"

    @property
    def labels(self) -> Path:
        """A frozen copy of the label set."""
        return self.path / "labels.yaml"

    @property
    def rows(self) -> Path:
        """All that was proposed and given."""
        return self.path / "annotation.sqlite"

    def demand(self) -> AnnotationFolder:
        """Itself; LogError when there is no project here."""
        if not self.project.is_file():
            raise LogError(
                f"{self.path} is no annotation project: it holds no {self.project.name}",
                remedy="Make one with: harness annotate new",
            )
        return self


def read_project(folder: AnnotationFolder) -> AnnotationProject:
    """The facts of a project; LogError when they cannot be read, or a frozen file is not the one they name."""
    with disk_errors(f"{folder.project} cannot be read"):
        text = folder.project.read_bytes()
    try:
        project = decode(_PROJECT, text)
    except CodecError as error:
        raise LogError(
            f"this is no project: {error.what}",
            place=Place(str(folder.project)),
            remedy="Restore the file; it is written once and never changed",
        ) from error
    for name, sha256 in project.files:
        path = folder.path / name
        with disk_errors(f"{path} cannot be read"):
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256:
            raise LogError(
                f"{path} is not the file that the project was made with",
                remedy="Restore it: rows name utterances and labels as they were. For other data make a new project",
            )
    return project


def project_text(project: AnnotationProject) -> bytes:
    """What stands in project.json."""
    return _PROJECT.dump_json(project, indent=2) + b"\n"
