"""How an evaluation is cut into tasks, and how a file that ends workers is told from its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.model.offline import ListedFile, ListKind
from harness.offline.cluster import LEAST_TASK_S, MOST_FILES, Cutting, TaskPiece


def cutting(folder: Path, seconds: Sequence[float], task_s: float = 3600.0) -> Cutting:
    files = []
    for number, length_s in enumerate(seconds):
        path = folder / f"{number}.wav"
        with path.open("wb") as file:
            file.truncate(round(length_s * 32000))  # no block of the disk is used
        files.append(ListedFile(ListKind.OOV, number, path.name, str(path)))
    return Cutting(files, np.ones(len(files), bool), task_s)


def drained(cut: Cutting, slots: int) -> list[TaskPiece]:
    pieces = []
    while (piece := cut.next(slots, 0)) is not None:
        pieces.append(piece)
    return pieces


def test_tasks_are_of_an_hour_and_of_less_towards_the_end(tmp_path: Path) -> None:
    pieces = drained(cutting(tmp_path, [600.0] * 300), 4)
    hours = [len(one.positions) / 6 for one in pieces]
    assert sorted(position for one in pieces for position in one.positions) == list(range(300))
    assert hours[:40] == [1.0] * 40
    assert hours == sorted(hours, reverse=True)
    # At the end every worker has something, and the last of it is short.
    assert hours[-4:] == [1 / 6] * 4


def test_a_file_longer_than_a_task_goes_by_itself_and_first(tmp_path: Path) -> None:
    pieces = drained(cutting(tmp_path, [100.0, 9000.0, *[100.0] * 500, 4000.0]), 2)
    assert [one.positions for one in pieces[:2]] == [(1,), (502,)]


def test_short_and_unknown_files_are_cut_by_their_number(tmp_path: Path) -> None:
    files = [ListedFile(ListKind.OOV, n, f"s3://bucket/{n}.wav", f"s3://bucket/{n}.wav") for n in range(40_000)]
    pieces = drained(Cutting(files, np.ones(len(files), bool), 3600.0), 4)
    assert max(len(one.positions) for one in pieces) == MOST_FILES
    assert len(pieces[-1].positions) == 1 or len(pieces[-1].positions) * 0.1 <= LEAST_TASK_S
    assert sum(len(one.positions) for one in pieces) == 40_000


@pytest.mark.parametrize("guilty", [0, 3, 7])
def test_only_the_file_that_ends_workers_is_rejected_after_three_attempts(tmp_path: Path, guilty: int) -> None:
    cut = cutting(tmp_path, [300.0] * 8)
    deaths: list[TaskPiece] = []
    done: list[int] = []
    out: list[TaskPiece] = []
    rejected: list[int] = []
    while len(done) + len(rejected) < 8:
        while (piece := cut.next(2, len(out))) is not None:
            assert not (piece.attempt == 3 and out)
            out.append(piece)
        piece = out.pop(0)
        if guilty not in piece.positions:
            done += piece.positions
            continue
        deaths.append(piece)
        if not cut.suspect(piece):
            rejected += piece.positions
    assert rejected == [guilty]
    assert [one.attempt for one in deaths] == [1, 2, 3]
    assert [len(one.positions) for one in deaths[1:]] == [1, 1]
    assert cut.next(2, 0) is None
