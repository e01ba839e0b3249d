"""Which files come next, what goes over a worker's pipe, and one file through an engine."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.base.child_process import ChildProcess
from harness.model.errors import EngineError
from harness.model.offline import (
    CountingRules,
    FileOutcome,
    ListedFile,
    ListKind,
    OfflineSpot,
    RejectReason,
    Said,
    ScoreTrack,
    SpotRule,
)
from harness.offline.figures.counts import Tally
from harness.offline.figures.figures import totals_of
from harness.offline.journal_lines import outcome_line, outcome_of
from harness.offline.messages import (
    FileAnswer,
    WorkerFrame,
    WorkerFrames,
    decode_answers,
    decode_files,
    encode_answers,
    encode_files,
    encode_frame,
    resource_use,
)
from harness.offline.one_file import (
    MAX_POSITION,
    MAX_TEXT_BYTES,
    MAX_TEXT_CHARS,
    check_detection,
    read_reference,
    spots_of_track,
)
from harness.offline.run import WINDOW, FileQueue, RunPace
from harness.sound.wave_file import UnusableSound
from tests.files import file_with
from tests.unit.offline.figures.outcomes import sized


def test_longest_files_come_first_and_short_files_are_grouped(tmp_path: Path) -> None:
    files = sized(tmp_path, [1, 2, 500, 3, 1, 90, 1])
    waiting = FileQueue(files, np.array([True] * 6 + [False]))
    assert [waiting.take(60, 4) for _ in range(3)] == [[2], [5], [3, 1, 0, 4]]
    assert not waiting
    waiting.give_back([1, 0])
    assert waiting.take(60, 4) == [1, 0]
    assert waiting.total_s == pytest.approx(597)
    for position in (2, 5):
        waiting.mark_finished(position)
    assert waiting.done_s == pytest.approx(590)


def test_a_million_files_are_scheduled_window_by_window() -> None:
    file = ListedFile(ListKind.OOV, 0, "a", "memory://a.wav")
    waiting = FileQueue([file] * (2 * WINDOW + 5), np.ones(2 * WINDOW + 5, bool))
    assert waiting.take(0, 1) == [0]
    assert waiting.total_s == pytest.approx(0.1 * (2 * WINDOW + 5), rel=1e-6)
    count = 1
    while batch := waiting.take(1e9, WINDOW):
        count += len(batch)
    assert count == 2 * WINDOW + 5


def test_frames_are_assembled_from_pieces() -> None:
    sent = (
        encode_frame(WorkerFrame.FILES, b"a" * 300)
        + encode_frame(WorkerFrame.READY)
        + encode_frame(WorkerFrame.OUTCOMES, b"b\n")
    )
    for size in (1, 4, 7, 1000):
        reader = WorkerFrames()
        got = [frame for start in range(0, len(sent), size) for frame in reader.feed(sent[start : start + size])]
        assert got == [(WorkerFrame.FILES, b"a" * 300), (WorkerFrame.READY, b""), (WorkerFrame.OUTCOMES, b"b\n")]
    with pytest.raises(ValueError):
        list(WorkerFrames().feed(b"Zabcdefgh" * 3))
    with pytest.raises(ValueError, match="a frame of"):
        list(WorkerFrames().feed(b"O\xff\xff\xff\xff"))


def test_a_file_goes_to_another_process_as_it_is() -> None:
    file = ListedFile(ListKind.REFERENCED, 3, 'a\n"\udce4.wav', "/x/\udce4", 9, "/x/r.txt", RejectReason.TWICE)
    assert decode_files(encode_files([file, replace(file, rejected=None)])) == [file, replace(file, rejected=None)]


def test_a_program_below_the_guard_counts_while_it_runs() -> None:
    busy = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True)\ntime.sleep(60)"
    before_s = resource_use(0.0, 0, ()).programs_cpu_s
    child = ChildProcess([sys.executable, "-c", busy], guarded=True)
    child.stdout.readline()
    used_s = resource_use(0.0, 0, ()).programs_cpu_s - before_s
    child.end()
    assert 0.38 <= used_s < 2.0


def test_progress_shows_hours_rates_and_remaining_time() -> None:
    pace = RunPace(10, 100.0)
    assert (pace.snapshot(100.0, None).rate, pace.snapshot(100.0, None).eta_s) == (None, None)
    pace.add(FileOutcome(ListKind.OOV, 0, 16000 * 600, 16000))
    pace.add(FileOutcome(ListKind.OOV, 1, 16000 * 600, 16000, rejected=RejectReason.ERROR, error="why"))
    now = pace.snapshot(110.0, 0.25)
    assert (now.done, now.rejected, now.errors, now.audio_s) == (2, 1, 1, 600)
    assert (now.rate, now.recent_rate, now.eta_s) == (60, 60, 30)
    for second in range(111, 150):
        pace.add(FileOutcome(ListKind.OOV, 2, 16000 * 6, 16000))
        now = pace.snapshot(float(second), 0.5)
    assert now.recent_rate == pytest.approx(6, rel=0.1)


OUTCOMES = [
    FileOutcome(ListKind.OOV, 1, 100_001, 48000, 16000, (OfflineSpot("okay nabu", 0, 5, 0.1 + 0.2),), cpu_s=0.25),
    FileOutcome(ListKind.INV, 2, rejected=RejectReason.ERROR, error="it\nended\x85\u2028"),
    FileOutcome(ListKind.INV, 3, rejected=RejectReason.RATE, detail="48000 Hz"),
]


def test_worker_answers_carry_journal_lines_and_counts() -> None:
    answers = decode_answers(encode_answers([FileAnswer.of(outcome, "a\r\x0b\n.wav") for outcome in OUTCOMES]))
    for answer, outcome in zip(answers, OUTCOMES, strict=True):
        assert answer.line == outcome_line(outcome, "a\r\x0b\n.wav")
        assert outcome_of(answer.line).outcome == outcome
        assert (answer.seconds, answer.rejected, answer.error) == (
            outcome.seconds,
            outcome.rejected,
            bool(outcome.error),
        )


def test_corrupted_answer_is_rejected() -> None:
    payload = encode_answers([FileAnswer.of(outcome, "a.wav") for outcome in OUTCOMES])
    head = payload.index(b"\n") + 1
    assert len(decode_answers(payload)) == 3
    for damaged in (
        payload.replace(b'"samples":100001', b'"samples":100003'),
        payload[:head],
        payload[head:],
        payload[:-10],
        payload + outcome_line(OUTCOMES[0], "a.wav"),
        payload + b'{"k":"inv","n":7,"file":"a"}\n',
        b"5\n" + payload[head:],
        b"[5,6,7]\n" + payload[head:],
        b"",
    ):
        with pytest.raises(ValueError):
            decode_answers(damaged)


def test_numpy_numbers_are_converted_for_the_journal() -> None:
    spot = OfflineSpot("a", np.int64(3), np.int32(16_000), np.float32(0.5))  # type: ignore[arg-type]
    outcome = FileOutcome(ListKind.OOV, 0, 32_000, 16_000, 16_000, (check_detection(spot),))
    assert outcome_of(outcome_line(outcome, "a.wav")).outcome.spots == (OfflineSpot("a", 3, 16_000, 0.5),)


@pytest.mark.parametrize(
    "result",
    [
        OfflineSpot("a", 0.5, 20_000.7),  # type: ignore[arg-type]
        OfflineSpot("a", 0, MAX_POSITION),
        OfflineSpot("a", 0, 5, math.nan),
        OfflineSpot("a", 0, 5, math.inf),
        OfflineSpot("a", 0, 5, "high"),  # type: ignore[arg-type]
        OfflineSpot(b"a", 0, 5),  # type: ignore[arg-type]
        OfflineSpot("a" * (MAX_TEXT_CHARS + 1), 0, 5),
        Said("a", 5, 4),
        Said("a", -5, 4),
        Said(None, 0, 4),  # type: ignore[arg-type]
    ],
    ids=lambda case: repr(case)[:40],
)
def test_impossible_result_is_an_engine_error_for_its_file_only(result: OfflineSpot | Said) -> None:
    with pytest.raises(EngineError, match="the engine reported"):
        check_detection(result)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"turn on the light", "turn on the light"),
        (b"  turn on\r\nthe light\n\n", "turn on the light"),
        (b"\xef\xbb\xbfturn on", "turn on"),
        ("schalte das Licht ein – für Åsa".encode(), "schalte das Licht ein – für Åsa"),
    ],
)
def test_a_reference_text_is_read(tmp_path: Path, content: bytes, text: str) -> None:
    path = file_with(tmp_path / "a.txt", content)
    assert read_reference(str(path)) == text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"caf\xe9", "not UTF-8 at byte 3"),
        ("text".encode("utf-16"), "not UTF-8"),
        (b"a\0b", "NUL"),
        (b"x" * (MAX_TEXT_BYTES + 1), "longer than 1 MiB"),
    ],
)
def test_an_invalid_reference_text_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = file_with(tmp_path / "a.txt", content)
    with pytest.raises(UnusableSound, match=words) as refused:
        read_reference(str(path))
    assert refused.value.reason is RejectReason.REFERENCE
    assert str(path) in refused.value.detail


def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path / "no", "No such")):
        with pytest.raises(UnusableSound, match=words) as refused:
            read_reference(str(path))
        assert refused.value.reason is RejectReason.REFERENCE


RATE_HZ, STEP = 16_000, 1280  # a score each 80 ms
RULE = SpotRule(threshold=0.5, refractory_samples=RATE_HZ, spot_samples=RATE_HZ // 2)


def found(*bursts: tuple[float, float], seconds: float = 60.0) -> tuple[OfflineSpot, ...]:
    """Spots of a detector that is above its threshold in these stretches of seconds."""
    scores = np.zeros(int(seconds * RATE_HZ / STEP), np.float32)
    for start_s, end_s in bursts:
        scores[round(start_s * RATE_HZ / STEP) : round(end_s * RATE_HZ / STEP)] = 0.9
    return spots_of_track(ScoreTrack("alexa", scores, 0, STEP), RULE)


def total(kind: ListKind, *files: tuple[OfflineSpot, ...], seconds: float = 60.0) -> dict[str, float]:
    tally = Tally(CountingRules())
    for number, spots in enumerate(files):
        tally.add(FileOutcome(kind, number, round(seconds * RATE_HZ), RATE_HZ, RATE_HZ, spots))
    return totals_of(tally.counts, CountingRules())


@pytest.mark.parametrize(
    ("above", "count"),
    [
        # openWakeWord's helper counts these three events of five frames each as 15.
        pytest.param(((10, 10.4), (20, 20.4), (30, 30.4)), 3, id="frames of an event are one event"),
        pytest.param(((10, 25),), 1, id="a detector that stays above its threshold has said one thing"),
        # microWakeWord's counter begins in its cool-down, which hides what comes first.
        pytest.param(((0, 0.3), (5, 5.3)), 2, id="no cool-down is armed at the start"),
    ],
)
def test_events_are_counted_and_not_frames(above: tuple[tuple[float, float], ...], count: int) -> None:
    assert total(ListKind.OOV, found(*above))["FACOUNT"] == count


def test_many_hits_in_one_file_do_not_make_up_for_a_miss_in_another() -> None:
    # Hits counted frame by frame, or spot by spot, would be 5 of 2 files here.
    hits = found((2, 2.3), (10, 10.3), (20, 20.3), (30, 30.3), (40, 40.3))
    figures = total(ListKind.INV, hits, found())
    assert (figures["TACOUNT"], figures["FRCOUNT"], figures["FRRATIO"]) == (1, 1, 50)


def test_the_lead_in_is_taken_off_once() -> None:
    # A grace period that is added a second time, as MLPerf Tiny's runner does, would forgive up to 2 s.
    tally = Tally(CountingRules())
    for end in (15_999, 16_000, 24_000):
        spot = OfflineSpot("alexa", max(0, end - 8000), end)
        tally.add(FileOutcome(ListKind.INV, end, 4 * RATE_HZ, RATE_HZ, RATE_HZ, (spot,)))
    figures = totals_of(tally.counts, CountingRules())
    assert (figures["TACOUNT"], figures["FRCOUNT"]) == (2, 1)
