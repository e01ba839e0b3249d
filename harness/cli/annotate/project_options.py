"""What all verbs of `harness annotate` say alike: a project's folder, an annotator, and what an import became."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.cells import counted
from harness.base.foreign import plain_text
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.annotation.making import Import
    from harness.annotation.project import AnnotationRoom

LONGEST_NAME = 64
LISTED = 3

project_argument = click.argument("project", type=click.Path(path_type=Path, file_okay=False), metavar="PROJECT")


def annotator_name(written: str) -> str:
    """A name that may stand in rows; InputError."""
    name = written.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{written!r} is no name of an annotator", remedy=f"Write 1 to {LONGEST_NAME} printable characters"
        )
    return name


def open_project(folder: Path) -> AnnotationRoom:
    """The room of a project; InputError when the folder is none."""
    from harness.annotation.project import AnnotationRoom

    if not (folder / "project.json").is_file():
        raise InputError(f"{folder} is no annotation project", remedy="Make one with: harness annotate new")
    return AnnotationRoom(folder)


def import_lines(found: Import) -> Iterator[str]:
    """What was taken, and what did not match."""
    taken = f"labelled {counted(len(found.rows), 'utterance')}"
    yield f"{taken}, {found.same} had the same labels before" if found.same else taken
    if found.without_text:
        missed = counted(len(found.without_text), "id")
        yield f"{missed} of the file with no utterance here{_such(found.without_text)}"
    if found.without_labels:
        missed = counted(len(found.without_labels), "utterance")
        yield f"{missed} without labels in the file{_such(found.without_labels)}"


def _such(ids: tuple[str, ...]) -> str:
    shown = ", ".join(plain_text(one, 60) for one in ids[:LISTED])
    return f": {shown}{', …' if len(ids) > LISTED else ''}"
