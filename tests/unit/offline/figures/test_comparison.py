"""Two evaluations against each other, and live against offline."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.base.lazy_sequence import LazySequence
from harness.model.errors import InputError
from harness.model.offline import (
    CountingRules,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    LabelledPhrase,
    ListKind,
    OfflineSpot,
    Task,
)
from harness.model.record import EventReviewed, ReviewVerdict
from harness.model.scenario import TrialKind
from harness.model.stimulus import Channel, SoundCondition
from harness.model.trial import Outcome
from harness.offline import wake_log
from harness.offline.compared_evaluation import read_evaluated
from harness.offline.figures.comparison import (
    AmbientFiles,
    Clusters,
    ComparedEvaluation,
    SharedFilesResult,
    SpokenFile,
    SpokenFiles,
    compare,
    file_keys_of,
    remaining_rows,
    renumber_groups,
    shared_rows,
)
from harness.offline.figures.session_comparison import (
    AmbientCounts,
    DeviceComparison,
    OfflineDetections,
    compare_device,
)
from harness.offline.journal import Journal
from harness.offline.journal_lines import JournalHeader, WorkerUse
from harness.offline.reports.comparison import as_json, differing_csv, lines, warnings_of
from harness.offline.reports.log import counting_info
from harness.offline.reports.session import comparison_csv
from harness.offline.reports.session import comparison_lines as session_lines
from harness.statistics.intervals import latency_figures
from harness.statistics.significance import Discordance, mcnemar, poisson_rates
from tests.known import known
from tests.unit.wake.wake_rows import WakeRows, played, rows_of, wake_trial


def ambient(names: list[str], clusters: Clusters | None = None) -> AmbientFiles:
    files = AmbientFiles(clusters)
    for number, name in enumerate(names):
        files.add(name, number, 1.0)
    return files


def test_repeated_file_names_are_paired_in_order() -> None:
    drawn = random.Random(5)
    for size in (0, 1, 2, 40):
        first, second = ([f"{drawn.randrange(30)}.wav" for _ in range(size)] for _ in range(2))
        first_keys, other = file_keys_of(ambient(first)), file_keys_of(ambient(second))
        left, right = (
            {(name, names[:row].count(name)): row for row, name in enumerate(names)} for names in (first, second)
        )
        rows = shared_rows(first_keys, other)
        assert [*zip(*rows, strict=True)] == [(row, right[key]) for key, row in left.items() if key in right]
        assert remaining_rows(first_keys, rows[0]).tolist() == [row for key, row in left.items() if key not in right]
        assert first_keys.repeated == size - len(set(first))
        assert shared_rows(first_keys, file_keys_of(ambient(first)))[1].tolist() == [*range(size)]


def test_clusters_are_numbered_in_order_of_appearance() -> None:
    files = ambient(["b/1", "a/1", "b/2", "c/1", "a/2"], Clusters("folder"))
    every = known(files.clusters(np.arange(5)))
    assert every.tolist() == [0, 1, 0, 2, 1]
    assert renumber_groups(every[1:]).tolist() == [0, 1, 2, 0]
    assert ambient(["a"]).clusters(np.arange(1)) is None


def test_lazy_sequence_behaves_like_a_sequence() -> None:
    squares = LazySequence(4, lambda number: number * number)
    assert (len(squares), squares[-1], list(squares[1:3]), list(squares)) == (4, 9, [1, 4], [0, 1, 4, 9])
    assert list(reversed(squares)) == [9, 4, 1, 0]
    for index in (4, -5):
        with pytest.raises(IndexError):
            squares[index]


def test_replaced_file_is_detected() -> None:
    listing = [("a.wav", SpokenFile(True))]
    files = SpokenFiles(listing.__getitem__)
    files.add(*listing[0], 0)
    assert files.outcome_of(0) == ("a.wav", SpokenFile(True))
    listing[0] = ("b.wav", SpokenFile(True))
    with pytest.raises(InputError, match="has replaced another file"):
        files.outcome_of(0)


FAIR = {"the lead-in (ms)": "1000", "-u": "no"}


def spoken_files(files: Iterable[tuple[str, SpokenFile]], clusters: Clusters | None = None) -> SpokenFiles:
    entries = list(files)
    result = SpokenFiles(entries.__getitem__, clusters)
    for place, (name, file) in enumerate(entries):
        result.add(name, file, place)
    return result


def evaluated(
    name: str,
    right: str,
    ambient: dict[str, tuple[int, float]] | None = None,
    clusters: Clusters | None = None,
    **more: object,
) -> ComparedEvaluation:
    """right: a sign a file, + for a true accept."""
    spoken = spoken_files(
        ((f"talker{n // 5}/{n}.wav", SpokenFile(sign == "+")) for n, sign in enumerate(right)), clusters
    )
    audio, heard = AmbientFiles(clusters), ambient or {}
    for file, pair in heard.items():
        audio.add(file, *pair)
    count, hours = sum(count for count, _ in heard.values()), sum(hours for _, hours in heard.values())
    options = {"settings": FAIR, **more}
    return ComparedEvaluation(name, spoken, audio, count, hours, **options)  # type: ignore[arg-type]


def test_the_same_files_are_paired() -> None:
    comparison = compare(evaluated("a", "++++++++++----------"), evaluated("b", "+++++++++-+---------"))
    shared = known(comparison.same_files)
    discordance = shared.discordance
    assert (discordance.both, discordance.only_first, discordance.only_second, discordance.neither) == (9, 1, 1, 9)
    assert discordance.p == mcnemar(1, 1)
    interval = known(discordance.difference)
    assert known(shared.difference).interval == pytest.approx((-interval.interval[1], -interval.interval[0]))
    assert known(shared.difference).p == discordance.p
    assert [name for name, _, _ in shared.differing] == ["talker1/9.wav", "talker2/10.wav"]
    assert (shared.first_errors, shared.second_errors) == (10, 10)
    assert not list(warnings_of(comparison))
    assert comparison.false_accepts is None
    assert len([*differing_csv(comparison)]) == 3
    json.dumps(as_json(comparison))


def test_files_in_one_evaluation_only_are_reported_and_left_out() -> None:
    comparison = compare(evaluated("a", "+++-"), evaluated("b", "++"))
    assert known(comparison.same_files).discordance.total == 2
    first_warning, *_ = warnings_of(comparison)
    assert "in-vocabulary files in one evaluation only: 2 in the first" in first_warning
    assert "talker0/3.wav,listed,not listed,,\n" in [*differing_csv(comparison)]


def test_repeated_file_name_is_reported() -> None:
    twice = [("a.wav", SpokenFile(False)), ("b.wav", SpokenFile(True)), ("a.wav", SpokenFile(True))]
    first = ComparedEvaluation("a", spoken_files(twice), None, 0, 0.0, FAIR)
    comparison = compare(first, ComparedEvaluation("b", spoken_files(twice[:2]), None, 0, 0.0, FAIR))
    first_warning, *_ = warnings_of(comparison)
    assert first_warning == "a: 1 file has the same name as another one; such files are paired in list order"
    assert comparison.same_files is not None
    assert (comparison.same_files.discordance.both, comparison.same_files.discordance.neither) == (1, 1)
    assert [*comparison.same_files.only_first] == ["a.wav"]


def test_clusters_widen_what_talkers_decide() -> None:
    def compared(clusters: Clusters | None) -> SharedFilesResult | None:
        other = "+" * 20 + "-" * 10 + "+" * 10
        return compare(evaluated("a", "+" * 40, clusters=clusters), evaluated("b", other, clusters=clusters)).same_files

    alone, clustered = known(compared(None)), known(compared(Clusters("folder")))
    assert clustered.clusters == 8
    assert known(clustered.difference).p > 10 * known(alone.difference).p
    assert known(clustered.second_interval)[1] > known(alone.second_interval)[1]
    assert known(clustered.difference).interval[1] <= 1
    by_talker = known(compared(Clusters(r"talker(\d)")))
    assert (by_talker.clusters, by_talker.difference) == (8, clustered.difference)
    with pytest.raises(InputError, match="regular expression"):
        Clusters("(")


def test_two_rates_on_different_and_on_the_same_audio() -> None:
    quiet = {f"{n}.wav": (0, 1.0) for n in range(10)}
    busy = {f"{n}.wav": (3, 1.0) for n in range(10)}
    other = {f"x{n}.wav": (3, 1.0) for n in range(10)}
    result = compare(evaluated("a", "", quiet), evaluated("b", "", busy))
    assert result.same_files is None
    assert result.false_accepts is not None
    assert known(result.false_accepts.poisson_difference).p == poisson_rates(0, 10.0, 30, 10.0)
    assert result.false_accepts.same_audio
    assert known(result.false_accepts.difference).difference == pytest.approx(-3)
    apart = compare(evaluated("a", "", quiet), evaluated("b", "", other))
    assert known(apart.false_accepts).difference is None
    assert any("different audio" in warning for warning in warnings_of(apart))
    never = known(compare(evaluated("a", "", quiet), evaluated("b", "", quiet)).false_accepts)
    assert known(never.poisson_difference).p == 1.0
    assert never.difference is None


def test_four_false_accepts_against_none_are_not_called_significant() -> None:
    files = range(20)
    some = {f"{n}.wav": (int(n < 4), 0.05) for n in files}
    none = {f"{n}.wav": (0, 0.05) for n in files}
    comparison = compare(evaluated("a", "", some), evaluated("b", "", none))
    difference = known(known(comparison.false_accepts).difference)
    assert difference.p == 0.125
    assert difference.interval[0] < 0 < difference.interval[1]
    assert any("p = 0.125 (exact)" in line for line in lines(comparison))
    assert as_json(comparison)["false_accepts"]["difference_per_hour"]["exact"]


def test_word_errors_are_compared_on_the_same_files() -> None:
    first = {f"{n}": SpokenFile(n > 3, 0 if n > 3 else 2, 10) for n in range(20)}
    second = {f"{n}": SpokenFile(n > 9, 0 if n > 9 else 1, 10 if n else 11) for n in range(20)}
    comparison = compare(
        ComparedEvaluation("a", spoken_files(first.items()), AmbientFiles(), 0, 0.0, FAIR, has_words=True),
        ComparedEvaluation("b", spoken_files(second.items()), AmbientFiles(), 0, 0.0, FAIR, has_words=True),
    )
    assert comparison.same_files is not None
    assert comparison.same_files.word_errors == (6, 9, 190)
    assert comparison.same_files.differing_references == 1
    assert known(comparison.same_files.words).difference == pytest.approx(-3 / 190)
    assert any("the WER leaves them out" in warning for warning in warnings_of(comparison))
    assert any("WER" in line for line in lines(comparison))


def test_unfair_settings_are_reported_first() -> None:
    first = evaluated("a", "++", settings={"the lead-in (ms)": "1000", "-u": "no"})
    second = evaluated("b", "++", settings={"the lead-in (ms)": "500"}, notes=("it is partial, 2 of 9 files",))
    warnings = list(warnings_of(compare(first, second)))
    assert any(warning.startswith("the lead-in (ms) differs: 1000 and 500") for warning in warnings)
    assert any(warning.startswith("only a reports -u: the other may differ") for warning in warnings)
    assert "b: it is partial, 2 of 9 files" in warnings
    with pytest.raises(InputError, match="in common"):
        compare(evaluated("a", "++"), evaluated("b", "", {"x": (1, 1.0)}))


def test_a_log_of_the_original_tool_can_be_compared(tmp_path: Path) -> None:
    text = (
        'INVTA "/data/1.wav" 1510 2310 "hey" sv-score 0\nINVFR "/data/2.wav"\n'
        'OOVFA "/data/long.wav" 100 900 "hey" sv-score 0\nINFO inv-files 2\nINFO inv-seconds 7\n'
        "INFO oov-files 1\nINFO oov-seconds 7200\nINFO oov-hours 2:00:00.000\nFACOUNT 1\n"
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.log").write_text(text if name == "a" else text.replace("INVFR", "REJECT").replace(
            'REJECT "/data/2.wav"', 'REJECT "/data/2.wav" unreadable'))  # fmt: skip
    first, second = read_evaluated(tmp_path / "a.log"), read_evaluated(tmp_path / "b.log")
    assert [first.spoken.outcome_of(row) for row in range(2)] == [
        ("/data/1.wav", SpokenFile(True, said="hey")),
        ("/data/2.wav", SpokenFile(False)),
    ]
    assert first.ambient is None
    assert (first.false_accepts, first.hours) == (1, 2.0)
    comparison = compare(first, second)
    assert any(warning.endswith("rejected: 1 file") for warning in warnings_of(comparison))
    assert not known(comparison.false_accepts).same_audio
    with pytest.raises(InputError, match="cannot be read"):
        read_evaluated(tmp_path / "none.log")


def test_another_processor_is_named(tmp_path: Path) -> None:
    parts = (
        Evaluation(Task("moonshine", "")),
        CountingRules(),
        EngineFacts(EngineKind.WAKE, "1", 16_000, ("alexa",), ""),
    )
    for name, vectors in (("a", "x86_64, AVX2"), ("b", "x86_64, AVX2, AVX-512"), ("old", "")):
        host = (("processor", "Xeon"), ("instruction set", vectors), ("threads", "1")) if vectors else ()
        header = JournalHeader(*parts, lists=(), planned=1, started_s=0.0)
        with Journal.create(tmp_path / f"{name}.log.jsonl", header) as journal:
            journal.append(FileOutcome(ListKind.INV, 0, 48_000, 16_000, 16_000), "a.wav")
            journal.end(partial=False, used=WorkerUse(host=host))
    first, second, old = (read_evaluated(tmp_path / f"{name}.log") for name in ("a", "b", "old"))
    assert list(warnings_of(compare(first, second))) == [
        "the instruction set differs: x86_64, AVX2 and x86_64, AVX2, AVX-512"
    ]
    assert "only a.log reports the processor: the other may differ" in list(warnings_of(compare(first, old)))
    assert not list(warnings_of(compare(old, old)))


def test_a_journal_and_a_log_alone_state_the_same_settings(tmp_path: Path) -> None:
    header = JournalHeader(
        Evaluation(Task("e", ""), resample=True),
        CountingRules(lead_in_ms=2_000_000.0),
        EngineFacts(EngineKind.WAKE, "1", 16_000, ("alexa",), ""),
        lists=(),
        planned=1,
        started_s=0.0,
    )
    with Journal.create(tmp_path / "a.log.jsonl", header) as journal:
        journal.append(FileOutcome(ListKind.INV, 0, 48_000, 16_000, 16_000), "a.wav")
        journal.end(partial=False)
    info = [wake_log.info_line(*pair) for pair in counting_info(header)]
    (tmp_path / "b.log").write_text("\n".join([*info, 'INVFR "a.wav"', "INFO inv-files 1", "INFO inv-seconds 3", ""]))
    first, second = (read_evaluated(tmp_path / f"{name}.log") for name in ("a", "b"))
    assert first.settings == second.settings
    assert (first.settings["--resample"], first.settings["--tail (s)"]) == ("yes", "0")


def test_files_with_the_phrase_belong_to_the_rate_if_their_false_accepts_count(tmp_path: Path) -> None:
    facts = EngineFacts(EngineKind.WAKE, "1", 16_000, ("alexa",), "")
    early, late = OfflineSpot("alexa", 0, 8000), OfflineSpot("alexa", 24_000, 32_000)
    for name, counted, spots in (("a", True, (late,)), ("b", True, (early, late)), ("without", False, (late,))):
        counting = CountingRules(count_in_vocabulary=counted, lead_in_ms=1000.0)
        header = JournalHeader(Evaluation(Task("e", "")), counting, facts, lists=(), planned=21, started_s=0.0)
        with Journal.create(tmp_path / f"{name}.log.jsonl", header) as journal:
            journal.append(FileOutcome(ListKind.OOV, 0, 16_000, 16_000, 16_000), "quiet.wav")
            for number in range(20):
                journal.append(FileOutcome(ListKind.INV, number, 48_000, 16_000, 16_000, spots), f"{number}.wav")
            journal.end(partial=False)
    first, second, without = (read_evaluated(tmp_path / f"{name}.log") for name in ("a", "b", "without"))
    rates = known(compare(first, second).false_accepts)
    assert (rates.first, rates.second) == ((0, pytest.approx(51 / 3600)), (20, pytest.approx(51 / 3600)))
    assert rates.same_audio
    assert known(rates.difference).difference == pytest.approx(-20 / (51 / 3600))
    other = compare(first, without)
    assert not known(other.false_accepts).same_audio
    assert any("the rates are of different audio" in warning for warning in warnings_of(other))


@pytest.mark.parametrize("kind", [ListKind.INV, ListKind.LABELLED])
def test_a_file_in_all_its_conditions_is_one_cluster(tmp_path: Path, kind: ListKind) -> None:
    """Of 8 recordings in 5 conditions, the second engine also detects two, in each."""
    conditions = tuple(
        SoundCondition((("speed", str(speed)),), channel=Channel(speed)) for speed in (1.0, 0.9, 1.1, 1.2, 1.3)
    )
    facts = EngineFacts(EngineKind.WAKE, "1", 16_000, ("alexa",), "")
    header = JournalHeader(
        Evaluation(Task("e", ""), conditions=conditions),
        CountingRules(lead_in_ms=0.0),
        facts,
        lists=(),
        planned=40,
        started_s=0.0,
    )
    for name, right in (("a", 4), ("b", 6)):
        with Journal.create(tmp_path / f"{name}.log.jsonl", header) as journal:
            for number in range(40):
                speed = conditions[number % 5].channel.speed
                label = LabelledPhrase(0.5 / speed, 1 / speed, "alexa")
                spots = (OfflineSpot("alexa", 8000, round(16_000 / speed)),) if number // 5 < right else ()
                labels = (label,) if kind is ListKind.LABELLED else ()
                outcome = FileOutcome(kind, number, 48_000, 16_000, 16_000, spots, labels=labels)
                journal.append(outcome, f"{number // 5}.wav @ {conditions[number % 5].label()}")
            journal.end(partial=False)
    shared = known(compare(*(read_evaluated(tmp_path / f"{name}.log") for name in ("a", "b"))).same_files)
    assert (shared.first_errors, shared.second_errors, shared.discordance.total, shared.clusters) == (20, 10, 40, 8)
    assert known(shared.discordance.p) < 0.01
    assert known(shared.difference).p > 0.1  # only two recordings of eight differ


def test_an_end_of_an_interval_is_never_written_with_an_exponent() -> None:
    def heard(name: str, wrong: int) -> ComparedEvaluation:
        files = [(f"{talker}/{n}.wav", SpokenFile(talker >= wrong)) for talker in range(3) for n in range(40)]
        spoken = SpokenFiles(files.__getitem__, Clusters("folder"))
        for place, file in enumerate(files):
            spoken.add(*file, place)
        return ComparedEvaluation(name, spoken, None, 0, 0.0, {})

    text = "\n".join(lines(compare(heard("a", 2), heard("b", 1))))
    assert "over 3 clusters" in text
    assert not any("e-" in line for line in text.splitlines() if " wrong, " in line)


RATE_HZ = 16_000
DEVICE = "kitchen"


def heard(*ends_s: float, score: float | None = None, peak: float | None = None) -> OfflineDetections:
    spots = tuple(OfflineSpot("alexa", 0, round(end_s * RATE_HZ), score) for end_s in ends_s)
    return OfflineDetections(spots, RATE_HZ, peak)


def compared(
    rows: WakeRows,
    offline: Mapping[str, OfflineDetections],
    *,
    notes: Mapping[str, Sequence[str]] | None = None,
    threshold: float | None = None,
) -> DeviceComparison:
    return compare_device(
        rows.figures,
        DEVICE,
        offline,
        clips={"sha-wake-2": "00002.flac"},
        notes=notes or {},
        reasons_left_out={"p9": "its recording is gone"},
        threshold=threshold,
    )


def session(injected: bool = True) -> WakeRows:
    """Five wake trials: live wakes in the first three; quiet ones are the last two."""
    rows = WakeRows()
    trials = [
        wake_trial(number, injected=injected, conditions=(("level", "loud" if number < 4 else "quiet"),))
        for number in range(1, 6)
    ]
    rows.plan(*trials)
    for number, trial in enumerate(trials, 1):
        rows.play(trial, [(DEVICE, 1.75)] if number < 4 else [])
    return rows


def test_the_csv_has_the_result_and_the_score_of_each_side() -> None:
    offline = {"p1": heard(1.7, score=0.75), "p2": heard(peak=0.25)}
    rows = list(csv.DictReader(io.StringIO(comparison_csv([compared(session(), offline)]))))
    assert [(row["trial"], row["live"], row["offline"], row["offline_score"]) for row in rows[:2]] == [
        ("wake-1", "1", "1", "0.75"),
        ("wake-2", "1", "0", "0.25"),
    ]


def test_the_table_counts_each_trial_once_on_both_sides() -> None:
    offline = {"p1": heard(1.7), "p2": heard(), "p3": heard(1.7), "p4": heard(1.7), "p5": heard()}
    comparison = compared(session(), offline)
    assert comparison.counts(TrialKind.WAKE) == Discordance(2, 1, 1, 1)
    assert [trial.trial_id for trial in comparison.trials if trial.differs] == ["wake-2", "wake-4"]
    assert dict(comparison.conditions) == {
        "level=loud": Discordance(2, 1, 0, 0),
        "level=quiet": Discordance(0, 0, 1, 1),
    }
    difference = known(comparison.counts(TrialKind.WAKE).difference)
    assert difference.difference == 0
    assert comparison.trials[1].clip == "00002.flac"
    assert comparison.counts(TrialKind.COMMAND).difference is None


def test_delays_are_compared_where_both_woke() -> None:
    offline = {f"p{number}": heard(1.6 + 0.01 * number) for number in range(1, 6)}
    comparison = compared(session(), offline)
    assert comparison.delay_differences.total == comparison.live_delays.total == 3
    assert known(comparison.live_delays.p50).value_s == pytest.approx(0.15)
    assert known(comparison.delay_differences.p50).value_s == pytest.approx(0.13)


def test_a_spot_outside_the_window_is_reported_but_is_not_a_hit() -> None:
    late = compared(session(), {"p1": heard(3.0), "p2": heard(0.2), "p3": heard(1.7)}, threshold=0.5)
    assert late.counts(TrialKind.WAKE) == Discordance(1, 2, 0, 0)
    first, second = late.trials[:2]
    assert first.notes == ("offline: an event +1.40 s from the end of the phrase is outside its window",)
    assert second.notes == ("offline: an event -1.40 s from the end of the phrase is outside its window",)
    assert (first.offline.extra, late.trials[2].offline.extra) == (1, 0)


def test_threshold_margins_and_notes_of_the_log_are_shown() -> None:
    offline = {"p1": heard(peak=0.42), "p4": heard(1.7, score=0.91)}
    comparison = compared(
        session(), offline, notes={"wake-1": ["an attempt before was interrupted (link_lost)"]}, threshold=0.5
    )
    missed, woke = comparison.trials
    assert missed.offline.score == 0.42
    assert missed.notes == (
        "an attempt before was interrupted (link_lost)",
        "offline: score 0.420, 0.080 below the threshold",
    )
    assert woke.notes == ("offline: score 0.910, 0.410 above the threshold",)


def test_trials_without_offline_audio_are_left_out_with_reason() -> None:
    comparison = compared(session(), {"p1": heard(1.7)})
    assert len(comparison.trials) == 1
    assert [trial for trial, _ in comparison.left_out] == ["wake-2", "wake-3", "wake-4", "wake-5"]


def test_ambient_events_are_paired_within_a_second() -> None:
    rows = played(wake_trial(1, TrialKind.AMBIENT), [(DEVICE, 10.0), (DEVICE, 30.0)])
    ambient_counts = compared(rows, {"p1": heard(10.4, 31.2, 50.0)}).ambient
    assert ambient_counts.segments == 1
    assert ambient_counts.counts == Discordance(1, 1, 2)
    assert (ambient_counts.live_s, ambient_counts.offline_s) == (pytest.approx(60.0), pytest.approx(60.0))
    assert [(event.live, event.offline) for event in ambient_counts.events] == [
        (True, True), (True, False), (False, True), (False, True),
    ]  # fmt: skip


def test_a_phrase_contained_in_the_recording_counts_on_neither_side() -> None:
    trial = wake_trial(1, TrialKind.AMBIENT)
    rows = rows_of(trial)
    seqs = rows.play(trial, [(DEVICE, 10.0), (DEVICE, 30.0)])
    rows.add(EventReviewed(seqs[0], ReviewVerdict.STIMULUS_FAULT, "ann"))
    assert compared(rows, {"p1": heard(10.4, 30.1)}).ambient.counts == Discordance(1, 0, 0)


def test_one_offline_event_matches_only_one_live_event() -> None:
    rows = played(wake_trial(1, TrialKind.AMBIENT), [(DEVICE, 10.0), (DEVICE, 12.1)])
    assert compared(rows, {"p1": heard(11.0)}).ambient.counts == Discordance(1, 1, 0)


def test_an_interrupted_take_counts_on_neither_side() -> None:
    trial = wake_trial(1)
    rows = rows_of(trial)
    rows.play(trial, [(DEVICE, 1.7)], outcome=Outcome.INTERRUPTED, finish=False)
    rows.play(trial, [], attempt=2)
    comparison = compared(rows, {"p1": heard(1.7), "p2": heard(1.7)})
    assert comparison.counts(TrialKind.WAKE) == Discordance(0, 0, 1, 0)


def test_spot_near_the_previous_stimulus_is_the_same_event() -> None:
    """With one state over all stimuli, a spot within the refractory time of the one before is the same event."""
    rows = session()
    near = OfflineDetections((OfflineSpot("alexa", 0, round(0.3 * RATE_HZ)),), RATE_HZ, before_s=-0.5)
    fresh = OfflineDetections((OfflineSpot("alexa", 0, round(0.3 * RATE_HZ)),), RATE_HZ)
    assert compared(rows, {"p1": near}).trials[0].offline.extra == 0
    assert compared(rows, {"p1": fresh}).trials[0].offline.extra == 1


@pytest.mark.parametrize("injected", [True, False])
def test_comparison_knows_air_from_injection(injected: bool) -> None:
    rows = session(injected)
    comparison = compared(rows, {"p1": heard(1.7)})
    assert comparison.through_air is not injected
    assert comparison.counts(TrialKind.WAKE).both == 1


FACTS = EngineFacts(EngineKind.WAKE, "1", 16_000, ("alexa",), "0" * 64)


def test_columns_stay_separated_with_wide_cells() -> None:
    cells = {
        "voice=" + "x" * 40: Discordance(9_000_000, 20, 0, 0),
        "level_dbfs=-20": Discordance(0, 0, 200, 1_000),
        "noise=fan": Discordance(1, 0, 0, 0),
    }
    none = latency_figures([])
    comparison = DeviceComparison("a", (), AmbientCounts(), none, none, none, False, False, (), tuple(cells.items()))
    table = [
        line
        for line in session_lines(comparison, FACTS, "engine:a", continuous=True)
        if "=" in line or "condition" in line
    ]
    head, *rows = table
    assert head.split()[-5:] == ["only", "live", "only", "offline", "p"]
    assert [row.split()[1:] for row in rows] == [
        ["9000020", "0", "20", "20", "0", "<", "0.001"],
        ["1200", "1200", "1000", "0", "200", "<", "0.001"],
        ["1", "0", "0", "0", "0", "n/a"],
    ]
    assert len({len(line) for line in table}) == 1
