"""A project's room: desks of several people over one file, what others write, and the limits of names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.annotation.ledger import State
from harness.annotation.making import NewProject, make_project
from harness.annotation.project import AnnotationRoom, open_annotation
from harness.model.annotation import Labelled, LabelProposal, Proposed
from harness.model.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "l.yaml").write_text(
        "label_set: t\nlabels:\n  - {id: a, description: a}\n  - {id: b, description: b}\n"
    )
    (tmp_path / "d.jsonl").write_text(
        "".join(json.dumps({"id": f"u{number}", "text": f"say {number}"}) + "\n" for number in range(5))
    )
    make_project(
        tmp_path / "p",
        NewProject((tmp_path / "d.jsonl",), tmp_path / "l.yaml", double_share=1.0, annotators=("ann", "ben")),
    )
    return tmp_path / "p"


def test_rows_of_another_room_are_seen_after_a_refresh(folder: Path) -> None:
    one, other = AnnotationRoom(folder), open_annotation(folder)
    ann, ben = one.desk("ann"), other.desk("ben")
    assert ann.view.item is not None
    utterance = ann.view.item.utterance
    ann.toggle("a")
    ann.save()
    assert other.rows == ()
    assert ben.refresh(other.refresh())
    assert not ben.refresh(other.refresh()), "nothing new"
    assert other.ledger.choices(utterance)["ann"].intents == ("a",)
    assert other.ledger.standing(utterance, other.wanted(utterance)).state is State.WAITING
    one.close()
    other.close()


def test_a_batch_is_proposed_to_whoever_sits_there(folder: Path) -> None:
    one, other = AnnotationRoom(folder), AnnotationRoom(folder)
    desk = one.desk("ann")
    other.keep([Proposed("b", "t", tuple(LabelProposal(f"u{number}", ("a",)) for number in range(5)))])
    other.keep([Proposed("b", "t", ())])
    assert len(one.refresh()) == 1, "sent twice, there once"
    desk.refresh(one.rows)
    ben = other.desk("ben")
    assert desk.view.count.to_review + ben.view.count.to_review == 5, (
        "each is reviewed by one, and labelled by the other"
    )
    one.close()
    other.close()


def test_rows_that_are_kept_are_known_at_once(folder: Path) -> None:
    room = AnnotationRoom(folder)
    room.keep([Labelled("x", "ann", "u1", ("a",))])
    assert [row.id for row in room.rows] == ["x"]
    room.close()


def test_only_named_annotators_have_a_desk(folder: Path) -> None:
    room = AnnotationRoom(folder)
    with pytest.raises(InputError, match="'cem' is no annotator"):
        room.desk("cem")
    assert room.adjudication("cem").view.count.total == 0, "anybody may settle"
    room.close()


def test_who_only_looks_changes_no_file(folder: Path) -> None:
    def stored() -> dict[str, tuple[int, bytes]]:
        names = ("annotation.sqlite", "labels.yaml", "project.json", "utterances.jsonl")
        return {name: ((folder / name).stat().st_mtime_ns, (folder / name).read_bytes()) for name in names}

    before = stored()
    room = AnnotationRoom(folder)
    room.desk("ann")
    room.close()
    assert stored() == before
