"""Recordings that begin or end with the phrase: what a log, its summary and the page say, and silence behind them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from harness.model.errors import InputError
from harness.model.offline import (
    Counting,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    ListedFile,
    ListKind,
    RejectReason,
    ScoreTrack,
    SpotRule,
    Task,
)
from harness.offline.asked import EvaluationAsked
from harness.offline.evaluating import EvaluationFiles
from harness.offline.figures.counts import NEEDED_TAIL_MS, OfflineCounts
from harness.offline.journal_lines import JournalHeader, ListFacts, differences, outcome_line, outcome_of
from harness.offline.one_file import FilePlayer
from harness.offline.reports.comparison import read_evaluated
from harness.offline.reports.log import fault_lines
from harness.offline.score_cache import ScoreCache
from harness.offline.several import read_engines, table_of
from harness.report.evaluation_page import write_evaluations
from harness.report.session_cases import SoundsIn
from tests.unit.offline.figures.outcomes import outcome, spot

RATE_HZ = 16_000
STEP = 160
FACTS = EngineFacts(
    EngineKind.WAKE, "1", RATE_HZ, ("alexa",), "0" * 64, lead_in_ms=1000, rule=SpotRule(0.05, RATE_HZ, 100)
)  # fmt: skip


class LateEngine:
    """Scores are the loudness 0.3 s earlier, so that sound is needed behind a phrase."""

    facts = FACTS

    def begin(self) -> LateEngine:
        self._heard = [np.zeros(round(0.3 * RATE_HZ), np.int16)]
        return self

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        self._heard.append(samples.copy())

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        sound = np.concatenate(self._heard) if flush else np.zeros(0)
        late = sound[: max(0, len(sound) - round(0.3 * RATE_HZ)) // STEP * STEP].reshape(-1, STEP) / 32768
        return (ScoreTrack("alexa", np.abs(late).mean(axis=1).astype(np.float32), STEP, STEP),)

    def close(self) -> None:
        """Has nothing to close."""


def clip(path: Path, lead_in_s: float, tail_s: float, kind: ListKind = ListKind.INV) -> ListedFile:
    """A tone of 0.2 s in quiet noise."""
    at = np.arange(RATE_HZ // 5) / RATE_HZ
    loud = 0.5 * np.sin(2 * np.pi * 440 * at)
    sound = np.concatenate([np.zeros(round(lead_in_s * RATE_HZ)), loud, np.zeros(round(tail_s * RATE_HZ))])
    sound += np.random.default_rng(1).normal(0, 0.0003, len(sound))
    soundfile.write(path, sound, RATE_HZ, subtype="PCM_16")
    return ListedFile(kind, 0, path.name, str(path))


def played(file: ListedFile, tail_s: float = 0.0, cache: ScoreCache | None = None) -> FileOutcome:
    return FilePlayer(LateEngine(), Evaluation(Task("late", ""), tail_s=tail_s), cache).play(file)


def test_a_miss_in_a_clip_that_ends_with_the_phrase_states_its_tail(tmp_path: Path) -> None:
    cut = played(clip(tmp_path / "cut.wav", 1.3, 0.1))
    assert (cut.spots, cut.tail_ms) == ((), 100)
    assert outcome_of(outcome_line(cut, "cut.wav")).outcome.tail_ms == 100
    whole = played(clip(tmp_path / "whole.wav", 1.3, 1.0))
    assert (len(whole.spots), whole.tail_ms) == (1, None)
    without = played(clip(tmp_path / "without.wav", 1.3, 0.1, ListKind.OOV))
    assert (without.spots, without.tail_ms) == ((), None)


def test_noise_without_a_phrase_has_no_tail(tmp_path: Path) -> None:
    noise = np.random.default_rng(2).normal(0, 0.01, RATE_HZ)
    soundfile.write(tmp_path / "noise.wav", noise, RATE_HZ, subtype="PCM_16")
    missed = played(ListedFile(ListKind.INV, 0, "noise.wav", str(tmp_path / "noise.wav")))
    assert (missed.rejected, missed.spots, missed.tail_ms) == (None, (), None)


def test_silence_behind_the_phrase_belongs_to_no_count(tmp_path: Path) -> None:
    file = clip(tmp_path / "cut.wav", 1.3, 0.1)
    cache = ScoreCache(tmp_path / "scores", lambda line: None)
    hashed = Evaluation(Task("late", ""), hashes=True)
    bare = FilePlayer(LateEngine(), hashed, cache).play(file)
    for _ in range(2):  # the second time from the cache
        padded = FilePlayer(LateEngine(), replace(hashed, tail_s=1.0), cache).play(file)
        assert [round(found.end / RATE_HZ, 1) for found in padded.spots] == [1.6]
        assert (padded.samples, padded.tail_ms) == (bare.samples, None)
        assert padded.sha256 != bare.sha256  # a cache keeps their scores apart
    assert bare.spots == ()
    without = replace(file, kind=ListKind.OOV)
    assert played(without, 1.0) == replace(played(without), cpu_s=pytest.approx(0, abs=10))


def header(counting: Counting, files: int, tail_s: float = 0.0) -> JournalHeader:
    lists = (ListFacts("yes", "0" * 64, ListKind.INV, files),)
    return JournalHeader(Evaluation(Task("late", ""), tail_s=tail_s), counting, FACTS, lists, files, 1e9)


def written(folder: Path, outcomes: list[FileOutcome]) -> tuple[str, list[str], str]:
    """The warnings of a log, of its summary, and of its page."""
    files = EvaluationFiles(folder / "late.log")
    journal = files.opened(header(Counting(), len(outcomes)), resume=False)
    for number, each in enumerate(outcomes):
        journal.append(replace(each, number=number), f"{number}.wav")
    journal.end(partial=False)
    files.write()
    engines = read_engines([files.log], lambda line: None)
    write_evaluations(engines, table_of(engines, None, {}, ""), folder / "page.html", SoundsIn.NONE)
    warnings = json.loads(files.summary.read_text())["warnings"]
    return files.log.read_text(), warnings, (folder / "page.html").read_text()


def test_log_summary_and_page_say_that_clips_have_no_tail(tmp_path: Path) -> None:
    hit, missed = outcome(ListKind.INV, spot(1.2, 1.9)), outcome(ListKind.INV)
    outcomes = [hit, missed, replace(missed, tail_ms=NEEDED_TAIL_MS), replace(missed, tail_ms=NEEDED_TAIL_MS - 20)]
    log, warnings, page = written(tmp_path, outcomes)
    said = "1 of 3 false rejects is in a recording that ends less than 0.5 s after the last speech"
    assert len(warnings) == 1
    assert warnings[0].startswith(said)
    assert "add silence with --tail 1" in warnings[0]
    assert f"INFO x-warning {warnings[0]}" in log
    assert 'INVFR "3.wav" x-tail-ms=480' in log
    assert said in page


def test_log_summary_and_page_say_that_clips_begin_with_the_phrase(tmp_path: Path) -> None:
    log, warnings, page = written(tmp_path, [outcome(ListKind.INV, spot(0.1, 0.5)) for _ in range(3)])
    said = "3 detections in recordings with the phrase came in the lead-in, or twice"
    assert [line.startswith(said) for line in warnings] == [True]
    assert f"INFO x-warning {said}" in log
    assert said in page


def test_log_summary_and_page_say_that_a_length_was_assumed(tmp_path: Path) -> None:
    tone = (0.3 * np.sin(np.arange(3 * RATE_HZ))).astype(np.float32)
    path = tmp_path / "half.wav"
    soundfile.write(path, tone, RATE_HZ, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[40:44] = (40_000).to_bytes(4, "little")
    path.write_bytes(content)
    file = ListedFile(ListKind.INV, 0, str(path), str(path))
    played = FilePlayer(LateEngine(), Evaluation(Task("late", ""))).play(file)
    assert (played.samples, played.detail) == (
        len(tone),
        "the header declares 40000 of 96000 bytes of sound; the rest is read, too",
    )
    log, warnings, page = written(tmp_path, [played])
    said = "1 file has a header that names no length, or another than the file has"
    assert warnings[0].startswith(said)
    assert f'INFO x-length "0.wav" {played.detail}\n' in log
    assert said in page


def test_a_log_alone_and_a_journal_without_a_tail_are_equal(tmp_path: Path) -> None:
    log, _, _ = written(tmp_path, [outcome(ListKind.INV, spot(1.2, 1.9))])
    assert "x-tail-s" not in log
    (tmp_path / "alone.log").write_text(log)
    alone, whole = read_evaluated(tmp_path / "alone.log"), read_evaluated(tmp_path / "late.log")
    assert alone.settings == whole.settings


def test_clips_shorter_than_the_lead_in_have_a_remedy() -> None:
    counts = OfflineCounts()
    counts.rejected[RejectReason.SHORT] = 2
    (line,) = fault_lines(counts, "the log says", resampling=False)
    assert "2 shorter than the lead-in (-s min-in-vocab-duration=0" in line


def test_a_tail_needs_a_phrase_and_makes_another_evaluation() -> None:
    with pytest.raises(InputError, match="--tail pads recordings with the phrase"):
        EvaluationAsked(oov=("o",), tail_s=1.0)
    with pytest.raises(InputError, match="-a, which removes silence"):
        EvaluationAsked(referenced=("c",), tail_s=1.0, vad=True)
    assert EvaluationAsked(inside=("yes",), tail_s=1.0).evaluation(Task("late", ""), "").tail_s == 1.0
    assert differences(header(Counting(), 1), header(Counting(), 1, 1.0)) == ["the tail is 0 s then, 1 s now"]
