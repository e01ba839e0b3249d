"""Which files come next, and what goes over a worker's pipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.model.offline import FileOutcome, ListedFile, ListKind, OfflineSpot, RejectReason
from harness.offline.journal_lines import outcome_line, outcome_of
from harness.offline.messages import (
    FileAnswer,
    WorkerFrame,
    WorkerFrames,
    answers_of,
    answers_told,
    files_of,
    files_told,
    framed,
)
from harness.offline.run import WINDOW, HandingOut, RunPace


def sized(folder: Path, seconds: list[float]) -> list[ListedFile]:
    files = []
    for number, length_s in enumerate(seconds):
        path = folder / f"{number}.wav"
        with path.open("wb") as file:
            file.truncate(round(32000 * length_s))
        files.append(ListedFile(ListKind.OOV, number, path.name, str(path)))
    return files


def test_the_longest_come_first_long_ones_alone_and_short_ones_together(tmp_path: Path) -> None:
    files = sized(tmp_path, [1, 2, 500, 3, 1, 90, 1])
    waiting = HandingOut(files, np.array([True] * 6 + [False]))
    assert [waiting.take(60, 4) for _ in range(3)] == [[2], [5], [3, 1, 0, 4]]
    assert not waiting
    waiting.give_back([1, 0])
    assert waiting.take(60, 4) == [1, 0]
    assert waiting.total_s == pytest.approx(597)
    for position in (2, 5):
        waiting.finished(position)
    assert waiting.done_s == pytest.approx(590)


def test_no_batch_has_more_files_than_asked_for(tmp_path: Path) -> None:
    waiting = HandingOut(sized(tmp_path, [1] * 10), np.ones(10, bool))
    assert [len(waiting.take(1000, 4)) for _ in range(4)] == [4, 4, 2, 0]


def test_a_million_files_are_looked_at_a_window_at_a_time() -> None:
    file = ListedFile(ListKind.OOV, 0, "a", "memory://a.wav")
    waiting = HandingOut([file] * (2 * WINDOW + 5), np.ones(2 * WINDOW + 5, bool))
    assert waiting.take(0, 1) == [0]
    assert waiting.total_s == pytest.approx(0.1 * (2 * WINDOW + 5), rel=1e-6)
    count = 1
    while batch := waiting.take(1e9, WINDOW):
        count += len(batch)
    assert count == 2 * WINDOW + 5


def test_frames_come_together_from_pieces() -> None:
    sent = framed(WorkerFrame.FILES, b"a" * 300) + framed(WorkerFrame.READY) + framed(WorkerFrame.OUTCOMES, b"b\n")
    for size in (1, 4, 7, 1000):
        reader = WorkerFrames()
        got = [one for at in range(0, len(sent), size) for one in reader.feed(sent[at : at + size])]
        assert got == [(WorkerFrame.FILES, b"a" * 300), (WorkerFrame.READY, b""), (WorkerFrame.OUTCOMES, b"b\n")]
    with pytest.raises(ValueError):
        list(WorkerFrames().feed(b"Zabcdefgh" * 3))
    with pytest.raises(ValueError, match="a frame of"):
        list(WorkerFrames().feed(b"O\xff\xff\xff\xff"))


def test_a_file_goes_to_another_process_as_it_is() -> None:
    file = ListedFile(ListKind.REFERENCED, 3, 'a\n"\udce4.wav', "/x/\udce4", 9, "/x/r.txt", RejectReason.TWICE)
    assert files_of(files_told([file, replace(file, rejected=None)])) == [file, replace(file, rejected=None)]


def test_progress_tells_hours_rates_and_what_is_left() -> None:
    pace = RunPace(10, 100.0)
    assert (pace.snapshot(100.0, None, 2).rate, pace.snapshot(100.0, None, 2).eta_s) == (None, None)
    pace.count(FileOutcome(ListKind.OOV, 0, 16000 * 600, 16000))
    pace.count(FileOutcome(ListKind.OOV, 1, 16000 * 600, 16000, rejected=RejectReason.ERROR, error="why"))
    now = pace.snapshot(110.0, 0.25, 2)
    assert (now.done, now.rejected, now.errors, now.audio_s) == (2, 1, 1, 600)
    assert (now.rate, now.recent_rate, now.eta_s) == (60, 60, 30)
    for second in range(111, 150):
        pace.count(FileOutcome(ListKind.OOV, 2, 16000 * 6, 16000))
        now = pace.snapshot(float(second), 0.5, 2)
    assert now.recent_rate == pytest.approx(6, rel=0.1)


OUTCOMES = [
    FileOutcome(ListKind.OOV, 1, 100_001, 48000, 16000, (OfflineSpot("okay nabu", 0, 5, 0.1 + 0.2),), cpu_s=0.25),
    FileOutcome(ListKind.INV, 2, rejected=RejectReason.ERROR, error="it\nended\x85\u2028"),
    FileOutcome(ListKind.INV, 3, rejected=RejectReason.RATE, detail="48000 Hz"),
]


def test_what_a_run_counts_is_told_beside_the_journals_lines() -> None:
    found = answers_of(answers_told([FileAnswer.of(one, "a\r\x0b\n.wav") for one in OUTCOMES]))
    for answer, outcome in zip(found, OUTCOMES, strict=True):
        assert answer.line == outcome_line(outcome, "a\r\x0b\n.wav")
        assert outcome_of(answer.line).outcome == outcome
        assert (answer.seconds, answer.rejected, answer.error) == (
            outcome.seconds,
            outcome.rejected,
            bool(outcome.error),
        )


def test_what_has_changed_on_its_way_is_no_answer() -> None:
    told = answers_told([FileAnswer.of(one, "a.wav") for one in OUTCOMES])
    head = told.index(b"\n") + 1
    assert len(answers_of(told)) == 3
    for damaged in (
        told.replace(b'"samples":100001', b'"samples":100003'),
        told[:head],
        told[head:],
        told[:-10],
        told + outcome_line(OUTCOMES[0], "a.wav"),
        told + b'{"k":"inv","n":7,"file":"a"}\n',
        b"5\n" + told[head:],
        b"[5,6,7]\n" + told[head:],
        b"",
    ):
        with pytest.raises(ValueError):
            answers_of(damaged)
