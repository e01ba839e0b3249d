"""A project's room: desks of several people over one file, what others write, and the limits of names."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from harness.annotation.ledger import UtteranceState
from harness.annotation.project import (
    AnnotationFolder,
    AnnotationLog,
    AnnotationRoom,
    annotation_rows,
    project_text,
    read_project,
)
from harness.annotation.project_creation import make_project
from harness.model.annotation import (
    Accepted,
    Adjudicated,
    AnnotationProject,
    AnnotationRow,
    Labelled,
    LabelProposal,
    Proposed,
    Skipped,
    Struck,
    Withdrawn,
)
from harness.model.errors import InputError, LogError
from tests.unit.session.log.records import KILLS, killed, together


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "l.yaml").write_text(
        "label_set: t\nlabels:\n  - {id: a, description: a}\n  - {id: b, description: b}\n"
    )
    (tmp_path / "d.jsonl").write_text(
        "".join(json.dumps({"id": f"u{number}", "text": f"say {number}"}) + "\n" for number in range(5))
    )
    make_project(
        tmp_path / "p", [tmp_path / "d.jsonl"], tmp_path / "l.yaml", double_share=1.0, annotators=("ann", "ben")
    )
    return tmp_path / "p"


def test_data_without_labels_gives_none_to_import(folder: Path) -> None:
    data, labels = folder.parent / "d.jsonl", folder.parent / "l.yaml"
    with pytest.raises(InputError, match="the data: no utterance has labels"):
        make_project(folder.parent / "q", [data], labels, take_labels=True)


def test_rows_of_another_room_are_seen_after_a_refresh(folder: Path) -> None:
    room, other = AnnotationRoom(folder), AnnotationRoom(folder)
    ann, ben = room.desk("ann"), other.desk("ben")
    assert ann.view.item is not None
    utterance = ann.view.item.utterance
    ann.toggle("a")
    ann.save()
    assert other.rows == ()
    assert ben.refresh(other.refresh())
    assert not ben.refresh(other.refresh()), "nothing new"
    assert other.ledger.choices(utterance)["ann"].intents == ("a",)
    assert (
        other.ledger.status_of(utterance, other.assignment.annotators_needed(utterance)).state is UtteranceState.WAITING
    )
    room.close()
    other.close()


def test_new_batch_reaches_annotators_already_at_work(folder: Path) -> None:
    room, other = AnnotationRoom(folder), AnnotationRoom(folder)
    desk = room.desk("ann")
    other.write([Proposed("b", "t", tuple(LabelProposal(f"u{number}", ("a",)) for number in range(5)))])
    other.write([Proposed("b", "t", ())])
    assert len(room.refresh()) == 1, "sent twice, there once"
    desk.refresh(room.rows)
    ben = other.desk("ben")
    assert desk.view.count.to_review + ben.view.count.to_review == 5, (
        "each is reviewed by one, and labelled by the other"
    )
    room.close()
    other.close()


def test_stored_rows_are_known_at_once(folder: Path) -> None:
    room = AnnotationRoom(folder)
    room.write([Labelled("x", "ann", "u1", ("a",))])
    assert [row.id for row in room.rows] == ["x"]
    room.close()


def test_only_named_annotators_have_a_desk(folder: Path) -> None:
    room = AnnotationRoom(folder)
    with pytest.raises(InputError, match="'cem' is not an annotator"):
        room.desk("cem")
    assert room.adjudication("cem").view.count.total == 0, "anybody may settle"
    room.close()


def test_viewing_a_project_changes_no_file(folder: Path) -> None:
    def stored() -> dict[str, tuple[int, bytes]]:
        names = ("annotation.sqlite", "labels.yaml", "project.json", "utterances.jsonl")
        return {name: ((folder / name).stat().st_mtime_ns, (folder / name).read_bytes()) for name in names}

    before = stored()
    room = AnnotationRoom(folder)
    room.desk("ann")
    room.close()
    assert stored() == before


WRITERS, ROWS, PAGE = 4, 20, 3

# A page is two rows.
SAVES = """
from harness.annotation.project import AnnotationLog as opened
from harness.model.annotation import Accepted, Struck

def save(log, name):
    log.add([
        Accepted(f"{name}-a", "ann", "b", name, ("play",), (f"{name} 1", f"{name} 2")),
        Struck(f"{name}-s", "ann", "b", name, ("play",), (f"{name} 3",)),
    ])
"""


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "project.json").write_bytes(project_text(AnnotationProject("p", 3)))
    return tmp_path


def stored(empty: Path) -> list[AnnotationRow]:
    return [row for _, row in annotation_rows(empty)]


def pages(rows: list[AnnotationRow]) -> dict[str, list[str]]:
    """Page → utterances of its rows."""
    by_page: dict[str, list[str]] = {}
    for row in rows:
        assert isinstance(row, Accepted | Struck)
        by_page.setdefault(row.page, []).extend(row.utterances)
    return by_page


def test_concurrent_processes_lose_no_rows(empty: Path) -> None:
    acknowledged = together(empty, SAVES, WRITERS, ROWS)
    assert len(acknowledged) == WRITERS * ROWS
    by_page = pages(stored(empty))
    assert sorted(by_page) == sorted(acknowledged)
    assert all(len(utterances) == PAGE for utterances in by_page.values())


def test_kills_lose_no_acknowledged_page_and_leave_no_partial_page(empty: Path) -> None:
    acknowledged = killed(empty, SAVES)
    assert len({name.split("-")[0] for name in acknowledged}) > KILLS * 0.9
    by_page = pages(stored(empty))
    assert set(acknowledged) <= set(by_page)
    assert {len(utterances) for utterances in by_page.values()} == {PAGE}
    with sqlite3.connect(empty / "annotation.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_every_row_comes_back_as_it_was_given(empty: Path) -> None:
    originals: list[AnnotationRow] = [
        Proposed(
            "1",
            "tri",
            (LabelProposal("u1", ("a", "b"), (("a",), ("a", "b"))), LabelProposal("u2", None)),
            1.5,
            (("k", "v"),),
        ),
        Accepted("2", "ann", "1", "p", ("a",), ("u1",), 1.0, 2.0, 0.5),
        Struck("3", "ann", "1", "p", ("a",), ("u2",)),
        Labelled("4", "bén", "u2", (), "1", True, "why # so", "f.csv"),
        Skipped("5", "ann", "u3", True, "later"),
        Adjudicated("6", "cem", "u2", ("b",), ("3", "4")),
        Withdrawn("7", "ann", ("2", "3"), 9.0),
    ]
    log = AnnotationLog(empty)
    log.add(originals)
    log.close()
    assert stored(empty) == originals


def test_rows_that_are_sent_again_are_written_once_also_by_another_process(empty: Path) -> None:
    log, other = AnnotationLog(empty), AnnotationLog(empty)
    first = Labelled("a", "ann", "u1", ("x",))
    log.add([first, first])
    other.add([first, Labelled("b", "ann", "u2", ("x",))])
    assert [(seq, row.id) for seq, row in annotation_rows(empty)] == [(1, "a"), (2, "b")]
    assert [seq for seq, _ in annotation_rows(empty, 1)] == [2]
    log.close()
    other.close()


def test_a_batch_that_cannot_be_written_leaves_nothing(empty: Path) -> None:
    log = AnnotationLog(empty)
    with pytest.raises(LogError, match="cannot be written as text"):
        log.add([Labelled("a", "ann", "u1", ("x",)), Labelled("b", "ann", "u2", ("x",), comment="\udcff")])
    log.close()
    assert stored(empty) == []


def test_rows_cannot_be_changed_or_removed(empty: Path) -> None:
    log = AnnotationLog(empty)
    log.add([Labelled("a", "ann", "u1", ("x",))])
    log.close()
    with sqlite3.connect(empty / "annotation.sqlite") as connection:
        for statement in ("UPDATE entries SET body = ''", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="only added"):
                connection.execute(statement)
    connection.close()


def test_a_folder_that_is_no_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="not an annotation project"):
        AnnotationLog(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_log_of_a_session_is_no_annotation_log(empty: Path) -> None:
    with sqlite3.connect(empty / "annotation.sqlite") as connection:
        connection.execute("CREATE TABLE entries (seq INTEGER)")
        connection.execute("PRAGMA application_id=0x56484C47")
    connection.close()
    with pytest.raises(LogError, match="does not belong to an annotation project"):
        AnnotationLog(empty)


def test_a_row_that_cannot_be_read_is_named(empty: Path) -> None:
    log = AnnotationLog(empty)
    log.add([Labelled("a", "ann", "u1", ("x",))])
    log._connection.execute(
        "INSERT INTO entries (seq, run, at_s, wall_s, kind, body)"
        " VALUES (2, 0, 0.0, 0.0, 'new', '{\"kind\":\"of_later\"}')"
    )
    with pytest.raises(LogError, match="row 2 cannot be read"):
        list(annotation_rows(empty))
    log.close()


def test_changed_frozen_file_is_reported(tmp_path: Path) -> None:
    from hashlib import sha256

    files = AnnotationFolder(tmp_path)
    files.utterances.write_text("hello")
    project = AnnotationProject("p", 1, files=(("utterances.jsonl", sha256(b"hello").hexdigest()),))
    files.project.write_bytes(project_text(project))
    assert read_project(files) == project
    files.utterances.write_text("hallo")
    with pytest.raises(LogError, match="is not the file that the project was created with"):
        read_project(files)


def test_spellings_of_a_name_are_one_annotator(folder: Path) -> None:
    room = AnnotationRoom(folder)
    desk = room.desk("ANN")
    assert desk.annotator == "ann"
    room.write([Labelled("r1", "Jo\u0308rg", "u0", ("a",)), Labelled("r2", "jörg", "u0", ("b",))])
    assert room.adjudication("JÖRG").annotator == "Jo\u0308rg"
    (choice,) = room.ledger.choices("u0").values()
    assert (choice.id, choice.annotator) == ("r2", "Jo\u0308rg")
    room.close()
