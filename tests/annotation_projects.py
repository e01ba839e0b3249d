"""Annotation projects for tests: utterances of travellers, with proposals of which some are wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationFolder, AnnotationLog, AnnotationRoom, annotation_rows, project_text
from harness.model.annotation import AnnotationProject, AnnotationRow, Intents, LabelProposal, Proposed

LABELS = """\
label_set: travel
title: Travel talk
intro: Label what is wanted, not how it is said.
labels:
  - id: greeting
    title: Greeting
    description: Says hello or goodbye, alone or before something else.
    examples:
      - text: good morning
    counterexamples:
      - text: good
        labels: [yes_please]
        why: It says yes to what was asked.
  - id: yes_please
    title: "Yes"
    description: Says yes to what was asked or offered, in whatever words.
  - id: booking
    title: Booking
    description: Wants a room, or gives a date, a place or a price that belongs to one.
  - id: information
    title: Information
    description: Asks for something to be told.
  - id: filler
    title: Filler
    description: Fills the time; says nothing of what is wanted.
    alone: true
never_together:
  - [yes_please, information]
"""
CONCEPTS = """\
concepts:
  - {id: city, title: City, description: Where the room is to be.}
  - {id: date, key: d}
  - {id: nights}
"""
TALK: tuple[tuple[str, Intents | None], ...] = (
    ("yes please", ("yes_please",)),
    ("yes that is fine", ("yes_please",)),
    ("yes two nights in lyon from the fifth of july", ("booking", "yes_please")),
    ("hello there", ("greeting",)),
    ("what does breakfast cost", ("information",)),
    ("er", None),
)
"""Text, and what is proposed; None: no consensus."""


def annotation_project(
    folder: Path, talk: Sequence[tuple[str, Intents | None]] = TALK, labels: str = LABELS, **project: Any
) -> Path:
    """A project in a new folder. Ids are u0, u1, … in the order of the talk; the batch of proposals is b1."""
    folder.mkdir(parents=True)
    files = AnnotationFolder(folder)
    files.labels.write_text(labels, encoding="utf-8")
    with files.utterances.open("w", encoding="utf-8") as file:
        for number, (text, _) in enumerate(talk):
            file.write(json.dumps({"id": f"u{number}", "text": text}) + "\n")
    files.project.write_bytes(project_text(AnnotationProject(project.pop("id", "talk"), len(talk), **project)))
    proposals = tuple(LabelProposal(f"u{number}", intents) for number, (_, intents) in enumerate(talk))
    log = AnnotationLog(folder)
    log.add([Proposed("b1", "tri-training", proposals)])
    log.close()
    return folder


def repeated(times: int) -> list[tuple[str, Intents | None]]:
    """The talk so many times, each time in other words."""
    return [(f"{text} {number}" if number else text, intents) for number in range(times) for text, intents in TALK]


def rows(folder: Path) -> list[AnnotationRow]:
    """What annotators gave, as it is on the disk, oldest first."""
    return [row for _, row in annotation_rows(folder) if not isinstance(row, Proposed)]


def opened(folder: Path) -> AnnotationRoom:
    return AnnotationRoom(folder)


@contextmanager
def sitting(folder: Path, annotator: str, *reopened: str, adjudicating: bool = False) -> Iterator[AnnotationDesk]:
    """An annotator's desk at a project; reopened: at just these utterances."""
    room = opened(folder)
    try:
        yield room.adjudication(annotator, reopened) if adjudicating else room.desk(annotator, reopened)
    finally:
        room.close()


def give(desk: AnnotationDesk, *label_sets: str) -> None:
    """Saves labels for one utterance after another; label_sets: ids, separated by blanks."""
    for labels in label_sets:
        item = desk.view.item
        assert item is not None
        for label in {*item.chosen} ^ {*labels.split()}:
            desk.toggle(label)
        assert desk.save(), desk.view.said
