"""Rows in the order in which they were given."""

from __future__ import annotations

from harness.model.record import Entry, NoteWritten, chronological


def row(name: str, seq: int, wall_s: float) -> Entry:
    return Entry(seq, 0, 0.0, wall_s, NoteWritten(name, "ann"))


def test_files_are_merged_by_time_and_a_clock_that_is_set_back_changes_no_order() -> None:
    log = [row("a", 1, 100.0), row("b", 2, 300.0)]
    later = [row("c", 1, 200.0), row("d", 2, 400.0), row("e", 3, 50.0), row("f", 4, 60.0)]
    found = [entry.record.text for entry in chronological(log, later) if isinstance(entry.record, NoteWritten)]
    assert found == ["a", "c", "b", "d", "e", "f"]
