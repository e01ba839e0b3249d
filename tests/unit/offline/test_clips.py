"""Recordings that begin or end with the phrase, or have no sound: what a log, its summary and the page say of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from harness.model.errors import InputError
from harness.model.offline import (
    CountingRules,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    LabelledPhrase,
    ListedFile,
    ListKind,
    RejectReason,
    ScoreTrack,
    SpotRule,
    Task,
)
from harness.offline.compared_evaluation import read_evaluated
from harness.offline.evaluation_files import EvaluationFiles
from harness.offline.evaluation_results import read_engines, table_of
from harness.offline.figures.comparison import compare
from harness.offline.figures.counts import NEEDED_TAIL_MS, OfflineCounts
from harness.offline.journal_lines import JournalHeader, ListFacts, differences, outcome_line, outcome_of
from harness.offline.one_file import FilePlayer
from harness.offline.reports.comparison import warnings_of
from harness.offline.reports.log import corrected_command, fault_lines
from harness.offline.request import EvaluationRequest
from harness.offline.score_cache import ScoreCache
from harness.report.evaluation_page import write_evaluations
from harness.report.session_cases import SoundStorage
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
    times_s = np.arange(RATE_HZ // 5) / RATE_HZ
    loud = 0.5 * np.sin(2 * np.pi * 440 * times_s)
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
    assert (len(whole.spots), whole.tail_ms) == (1, 1000)
    later = played(replace(clip(tmp_path / "later.wav", 1.3, 1.0), number=101))
    assert (len(later.spots), later.tail_ms) == (1, None)  # a sample of the hits is enough
    without = played(clip(tmp_path / "without.wav", 1.3, 0.1, ListKind.OOV))
    assert (without.spots, without.tail_ms) == ((), None)


def test_noise_without_a_phrase_has_no_tail(tmp_path: Path) -> None:
    noise = np.random.default_rng(2).normal(0, 0.01, RATE_HZ)
    soundfile.write(tmp_path / "noise.wav", noise, RATE_HZ, subtype="PCM_16")
    missed = played(ListedFile(ListKind.INV, 0, "noise.wav", str(tmp_path / "noise.wav")))
    assert (missed.rejected, missed.spots, missed.tail_ms) == (None, (), None)


def test_silence_after_the_phrase_counts_nowhere(tmp_path: Path) -> None:
    file = clip(tmp_path / "cut.wav", 1.3, 0.1)
    cache = ScoreCache(tmp_path / "scores", lambda line: None)
    hashed = Evaluation(Task("late", ""), hashes=True)
    bare = FilePlayer(LateEngine(), hashed, cache).play(file)
    for _ in range(2):  # the second time from the cache
        padded = FilePlayer(LateEngine(), replace(hashed, tail_s=1.0), cache).play(file)
        assert [round(spot.end / RATE_HZ, 1) for spot in padded.spots] == [1.6]
        assert (padded.samples, padded.tail_ms) == (bare.samples, None)
        assert padded.sha256 != bare.sha256  # a cache keeps their scores apart
    assert bare.spots == ()
    without = replace(file, kind=ListKind.OOV)
    assert played(without, 1.0) == replace(played(without), cpu_s=pytest.approx(0, abs=10))


def header(counting: CountingRules, files: int, tail_s: float = 0.0) -> JournalHeader:
    lists = (ListFacts("yes", "0" * 64, ListKind.INV, files),)
    return JournalHeader(Evaluation(Task("late", ""), tail_s=tail_s), counting, FACTS, lists, files, 1e9)


def written(folder: Path, outcomes: list[FileOutcome]) -> tuple[str, list[str], str]:
    """The warnings of a log, of its summary, and of its page."""
    files = EvaluationFiles(folder / "late.log")
    journal = files.open_journal(header(CountingRules(), len(outcomes)), resume=False)
    for number, file_outcome in enumerate(outcomes):
        journal.append(replace(file_outcome, number=number), f"{number}.wav")
    journal.end(partial=False)
    files.write()
    engines = read_engines([files.log], lambda line: None)
    write_evaluations(engines, table_of(engines, None, {}), folder / "page.html", SoundStorage.NONE)
    warnings = json.loads(files.summary.read_text())["warnings"]
    return files.log.read_text(), warnings, (folder / "page.html").read_text()


def test_log_summary_and_page_say_that_clips_have_no_tail(tmp_path: Path) -> None:
    hit, missed = outcome(ListKind.INV, spot(1.2, 1.9)), outcome(ListKind.INV)
    outcomes = [hit, missed, replace(missed, tail_ms=NEEDED_TAIL_MS), replace(missed, tail_ms=NEEDED_TAIL_MS - 20)]
    log, warnings, page = written(tmp_path, outcomes)
    notice = "1 of 3 false rejects is in a recording that ends less than 0.5 s after the last speech"
    assert len(warnings) == 1
    assert warnings[0].startswith(notice)
    assert "add silence with --tail 1" in warnings[0]
    assert f"INFO x-warning {warnings[0]}" in log
    assert 'INVFR "3.wav" x-tail-ms=480' in log
    assert notice in page


@pytest.mark.parametrize(("hit_tail_ms", "missed_tail_ms", "warned"), [(100, 100, 0), (440, 100, 3), (900, 900, 0)])
def test_a_missing_tail_is_named_only_if_hits_do_not_end_alike(
    tmp_path: Path, hit_tail_ms: int, missed_tail_ms: int, warned: int
) -> None:
    hit, missed = outcome(ListKind.INV, spot(1.2, 1.9)), outcome(ListKind.INV)
    outcomes = [replace(hit, tail_ms=hit_tail_ms)] * 9 + [replace(missed, tail_ms=missed_tail_ms)] * 3
    log, warnings, _ = written(tmp_path, outcomes)
    assert [int(line.split()[0]) for line in warnings] == [warned] * bool(warned)
    assert log.count("x-tail-ms") == 3  # of misses only


def test_log_summary_and_page_say_that_clips_begin_with_the_phrase(tmp_path: Path) -> None:
    log, warnings, page = written(tmp_path, [outcome(ListKind.INV, spot(0.1, 0.5)) for _ in range(3)])
    notice = "3 detections in recordings with the phrase came in the lead-in, or twice"
    assert [line.startswith(notice) for line in warnings] == [True]
    assert f"INFO x-warning {notice}" in log
    assert notice in page


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
        "the header declares 40000 of 96000 bytes of sound; the rest is read as well",
    )
    log, warnings, page = written(tmp_path, [played])
    notice = "1 file has a header that declares no length, or a wrong one"
    assert warnings[0].startswith(notice)
    assert f'INFO x-length "0.wav" {played.detail}\n' in log
    assert notice in page


def test_a_log_alone_and_a_journal_without_a_tail_are_equal(tmp_path: Path) -> None:
    log, _, _ = written(tmp_path, [outcome(ListKind.INV, spot(1.2, 1.9))])
    assert "x-tail-s" not in log
    (tmp_path / "alone.log").write_text(log)
    alone, whole = read_evaluated(tmp_path / "alone.log"), read_evaluated(tmp_path / "late.log")
    assert alone.settings == whole.settings


def test_a_comparison_warns_of_another_tolerance_and_of_removed_silence(tmp_path: Path) -> None:
    evaluated = []
    for name, tolerance_s, vad in (("a", 1.0, False), ("b", 0.2, True)):
        lists = (ListFacts("long", "0" * 64, ListKind.LABELLED, 1),)
        counting = CountingRules(tolerance_s=tolerance_s)
        files = EvaluationFiles(tmp_path / f"{name}.log")
        journal = files.open_journal(
            JournalHeader(Evaluation(Task("late", ""), vad=vad), counting, FACTS, lists, 1, 1e9), resume=False
        )
        journal.append(outcome(ListKind.LABELLED), "hour.wav")
        journal.end(partial=False)
        files.write()
        evaluated.append(read_evaluated(files.log))
        (tmp_path / "alone.log").write_text(files.log.read_text())
        assert read_evaluated(tmp_path / "alone.log").settings == evaluated[-1].settings
    warnings = list(warnings_of(compare(*evaluated)))
    assert {"--label-tolerance (s) differs: 1 and 0.2", "-a differs: no and yes"} <= set(warnings)


def test_clips_shorter_than_the_lead_in_have_a_remedy() -> None:
    counts = OfflineCounts()
    counts.rejected[RejectReason.SHORT] = 2
    (line,) = fault_lines(counts, "the log says", resampling=False)
    assert "2 shorter than the lead-in (-s min-in-vocab-duration=0 accepts them)" in line


def test_corrected_command_has_all_that_rejected_clips_need() -> None:
    counts = OfflineCounts(rejected=Counter({RejectReason.SHORT: 2}))
    run = replace(header(CountingRules(), 2), command_line=("harness", "evaluate", "--in", "my clips", "--resume"))
    start, lead_in, tail = "harness evaluate --in 'my clips'", "-s min-in-vocab-duration=0", "--tail 1"
    assert corrected_command(run, counts) == f"{start} {lead_in} {tail} --force"
    counts.rejected[RejectReason.RATE] = 1
    assert corrected_command(run, counts) == f"{start} {lead_in} {tail} --resample --force"
    padded = replace(run, evaluation=replace(run.evaluation, tail_s=0.5, resample=True))
    assert corrected_command(padded, counts) == f"{start} {lead_in} --force"
    assert corrected_command(run, OfflineCounts(rejected=Counter({RejectReason.UNREADABLE: 1}))) == ""


def test_a_tail_needs_a_phrase_and_makes_another_evaluation() -> None:
    with pytest.raises(InputError, match="--tail needs recordings with the phrase"):
        EvaluationRequest(oov=("o",), tail_s=1.0)
    with pytest.raises(InputError, match="-a, which removes silence"):
        EvaluationRequest(referenced=("c",), tail_s=1.0, vad=True)
    assert EvaluationRequest(inside=("yes",), tail_s=1.0).evaluation(Task("late", ""), "").tail_s == 1.0
    assert differences(header(CountingRules(), 1), header(CountingRules(), 1, 1.0)) == ["the tail is 0 s then, 1 s now"]


def constant(path: Path, value: int, kind: ListKind = ListKind.INV, seconds: float = 2.0) -> ListedFile:
    soundfile.write(path, np.full(round(seconds * RATE_HZ), value, np.int16), RATE_HZ, subtype="PCM_16")
    return ListedFile(kind, 0, path.name, str(path))


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
@pytest.mark.parametrize("value", [0, 1, -20_000])  # the engine finds something in the last one
def test_a_clip_without_sound_is_neither_hit_nor_miss(tmp_path: Path, name: str, value: int) -> None:
    file = constant(tmp_path / name, value)
    cache = ScoreCache(tmp_path / "scores", lambda line: None)
    hashed = Evaluation(Task("late", ""), hashes=True, cache=str(cache))
    silence = (RejectReason.SILENT, f"every sample is {value}")
    for played_file in (
        played(file), played(file, tail_s=1.0), FilePlayer(LateEngine(), hashed, cache).play(file),
        FilePlayer(LateEngine(), hashed, cache).play(file),
    ):  # fmt: skip
        assert (played_file.rejected, played_file.detail) == silence
    without = played(replace(file, kind=ListKind.OOV))
    assert (without.rejected, len(without.spots)) == (None, value < -1000)


def test_scores_that_were_stored_before_do_not_make_silence_a_miss(tmp_path: Path) -> None:
    file = constant(tmp_path / "a.wav", 0)
    cache = ScoreCache(tmp_path / "scores", lambda line: None)
    player = FilePlayer(LateEngine(), Evaluation(Task("late", ""), hashes=True), cache)
    sha256 = player.play(replace(file, kind=ListKind.OOV)).sha256
    cache.put(FACTS.fingerprint, sha256, (ScoreTrack("alexa", np.zeros(100, np.float32), STEP, STEP),), 32_000, RATE_HZ)
    assert player.play(file).rejected is RejectReason.SILENT


@pytest.mark.parametrize("value", [0, -20_000])  # the engine finds something in the last one
def test_scores_of_silence_are_stored_where_it_counts_so_that_a_sweep_has_them(tmp_path: Path, value: int) -> None:
    file = constant(tmp_path / "a.wav", value)
    cache = ScoreCache(tmp_path / "scores", lambda line: None)
    player = FilePlayer(LateEngine(), Evaluation(Task("late", ""), hashes=True), cache)
    ambient = player.play(replace(file, kind=ListKind.OOV))
    assert ambient.rejected is None
    assert cache.tracks(FACTS, ambient.sha256) is not None
    assert player.play(file).rejected is RejectReason.SILENT


def test_single_nonzero_sample_counts_as_sound(tmp_path: Path) -> None:
    for position in (0, 100, 31_999):
        samples = np.zeros(32_000, np.int16)
        samples[position] = 1
        soundfile.write(tmp_path / "a.wav", samples, RATE_HZ, subtype="PCM_16")
        file = ListedFile(ListKind.INV, 0, "a.wav", str(tmp_path / "a.wav"))
        assert played(file).rejected is None


def hour(path: Path, labels: tuple[LabelledPhrase, ...], rate_hz: int = RATE_HZ) -> ListedFile:
    """10 s of quiet noise with tones at 2 s and 8 s; from 4 s to 6 s every sample is 7."""
    times_s = np.arange(10 * rate_hz) / rate_hz
    sound = np.random.default_rng(1).normal(0, 0.0003, len(times_s)) + 0.5 * np.sin(2 * np.pi * 440 * times_s) * (
        times_s % 6 // 0.2 == 10
    )
    samples = np.round(32768 * sound).astype(np.int16)
    samples[4 * rate_hz : 6 * rate_hz] = 7
    soundfile.write(path, samples, rate_hz, subtype="PCM_16")
    return ListedFile(ListKind.LABELLED, 0, path.name, str(path), labels=labels)


LABELS = (LabelledPhrase(2.0, 2.2), LabelledPhrase(4.5, 5.5), LabelledPhrase(5.9, 6.5), LabelledPhrase(8.0, 8.2))


def test_stored_scores_and_new_ones_find_the_same_silence_in_a_long_recording(tmp_path: Path) -> None:
    samples = np.full(100 * RATE_HZ, 7, np.int16)  # more than one block
    samples[20 * RATE_HZ : 30 * RATE_HZ : 2] = 9
    soundfile.write(tmp_path / "h.wav", samples, RATE_HZ, subtype="PCM_16")
    labels = (LabelledPhrase(21.0, 22.0), LabelledPhrase(81.0, 82.0))
    file = ListedFile(ListKind.LABELLED, 0, "h.wav", str(tmp_path / "h.wav"), labels=labels)
    player = FilePlayer(LateEngine(), Evaluation(Task("late", ""), hashes=True), ScoreCache(tmp_path / "s", print))
    assert [player.play(file).silent_labels for _ in range(2)] == [(1,), (1,)]
    assert player.cached_files == 1


@pytest.mark.parametrize("rate_hz", [RATE_HZ, 22_050])
def test_a_label_where_a_recording_has_no_sound_does_not_count(tmp_path: Path, rate_hz: int) -> None:
    file = hour(tmp_path / "h.wav", LABELS, rate_hz)
    cache = ScoreCache(tmp_path / "scores", lambda line: None)
    evaluation = Evaluation(Task("late", ""), hashes=True, resample=True)
    for _ in range(2):  # the second time from the cache
        outcome = FilePlayer(LateEngine(), evaluation, cache).play(file)
        assert (outcome.rejected, outcome.silent_labels) == (None, (1,))
    assert outcome_of(outcome_line(outcome, "h.wav")).outcome.silent_labels == (1,)
    log, warnings, page = written(tmp_path, [outcome])
    assert [line for line in log.splitlines() if line.startswith("INFO x-no-sound")] == [
        'INFO x-no-sound "0.wav" 4500-5500', "INFO x-no-sound-phrases 1"
    ]  # fmt: skip
    assert (log.count("INVTA "), log.count("INVFR ")) == (2, 1)  # of three phrases
    assert "FRRATIO 33.33" in log
    assert warnings == [
        "1 labelled phrase does not count: its recording has no sound there. The log lists each (INFO x-no-sound)"
    ]
    assert "1 labelled phrase does not count" in page


def test_a_recording_is_rejected_that_has_no_sound_or_ends_before_a_label(tmp_path: Path) -> None:
    silent = replace(constant(tmp_path / "s.wav", 0, ListKind.LABELLED), labels=(LabelledPhrase(0.5, 1),))
    assert played(silent).rejected is RejectReason.SILENT
    assert played(replace(silent, labels=())).rejected is None  # it has no phrases to miss
    cut = played(hour(tmp_path / "h.wav", (*LABELS, LabelledPhrase(9.0, 10.2))))
    assert (cut.rejected, cut.detail) == (RejectReason.REFERENCE, "a label ends at 10.2 s, but the recording at 10 s")
    assert played(hour(tmp_path / "h.wav", (*LABELS, LabelledPhrase(9.0, 10.05)))).rejected is None


def test_rejected_clips_without_sound_are_counted_apart_and_are_no_fault() -> None:
    counts = OfflineCounts(rejected=Counter({RejectReason.SILENT: 2}), inv_files=1)
    assert list(fault_lines(counts, "the log says", resampling=False)) == ["2 files rejected: 2 no sound"]
    assert not counts.has_faults


def test_copies_of_a_recording_are_reported_if_files_are_hashed(tmp_path: Path) -> None:
    hit = outcome(ListKind.INV, spot(1.2, 1.9))
    hashed = [replace(hit, sha256=digit * 64) for digit in "abacbab"]
    _, warnings, _ = written(tmp_path, hashed)
    show = "Copies have the same sha256 in the journal (.jsonl)"
    assert warnings == [f"4 recordings are copies of others and count again, such as 2.wav of 0.wav. {show}"]
    notes = written(tmp_path, hashed[:3])[1]
    assert notes == [f"1 recording is a copy of another and counts again, such as 2.wav of 0.wav. {show}"]
    assert written(tmp_path, [hit, hit])[1] == []
