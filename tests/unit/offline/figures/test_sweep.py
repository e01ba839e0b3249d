"""What counts add up to, and a sweep that counts at every threshold what the log counts at one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.settings import operating_points
from harness.model.errors import InputError
from harness.model.offline import (
    CountingRules,
    FileOutcome,
    LabelledPhrase,
    LeadInRef,
    ListKind,
    RejectReason,
    ScoreTrack,
    SpotRule,
)
from harness.offline.figures.counts import LogKey, OfflineCounts, Tally, judge_file
from harness.offline.figures.det import Det
from harness.offline.figures.figures import figures_of, totals_of
from harness.offline.figures.sweep import Grid, Steps, Sweep, spans_of_track, union_of_spans
from harness.offline.one_file import crossings, spots_in, spots_of_track
from harness.statistics.intervals import clopper_pearson
from tests.known import known
from tests.unit.offline.figures.outcomes import outcome, said, spot

LEVELS = np.array([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1], np.float32)


@given(
    st.lists(st.integers(0, len(LEVELS) - 1), max_size=60),
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from([-0.5, 0.0, 0.1, 0.2, 0.25, 0.7, 0.9, 0.95, 1.0]),
)
def test_score_spans_give_the_spots_of_every_threshold(
    levels: list[int], refractory_samples: int, step: int, threshold: float
) -> None:
    track = ScoreTrack("hey", LEVELS[levels] if levels else np.zeros(0, np.float32), 7, step)
    low, high, ends = spans_of_track(track, refractory_samples)
    spot_ends = ends[(low <= np.float32(threshold)) & (np.float32(threshold) < high)]
    indices = crossings(track.scores, threshold, refractory_samples / step)
    assert spot_ends.tolist() == (track.first_end + indices * step).tolist()
    assert spot_ends.tolist() == [
        spot.end for spot in spots_of_track(track, SpotRule(threshold, refractory_samples, 5))
    ]


def test_a_grid_keeps_its_own_thresholds_exact() -> None:
    random = np.random.default_rng(4)
    thresholds = np.array([0.5, 0.97, 0.123456789], np.float32)
    exact, is_coarse = Steps(Grid(thresholds)), Steps(Grid(thresholds, size=50), max_steps=100)
    for _ in range(4):
        low = random.random(40_000, np.float32)
        high = (low + 0.1 * random.random(40_000, np.float32)).astype(np.float32)
        exact.add(low, high)
        is_coarse.add(low, high)
    assert is_coarse.counts_at(thresholds).tolist() == exact.counts_at(thresholds).tolist()
    assert is_coarse.is_coarse
    assert len(is_coarse.values()) < 60
    grid = Grid(thresholds, size=50).values
    assert is_coarse.counts_at(grid).tolist() == exact.counts_at(grid).tolist()


def test_spans_are_joined_where_they_meet() -> None:
    low, high = union_of_spans(np.array([5, 1, 2, 8], np.float32), np.array([6, 2, 4, 9], np.float32))
    assert (low.tolist(), high.tolist()) == ([1, 5, 8], [4, 6, 9])
    low, high = union_of_spans(np.array([1, 2], np.float32), np.array([9, 3], np.float32))
    assert (low.tolist(), high.tolist()) == ([1], [9])
    assert not len(union_of_spans(np.zeros(0, np.float32), np.zeros(0, np.float32))[0])


POINTS = operating_points(0.97)
Scored = list[tuple[FileOutcome, tuple[ScoreTrack, ...]]]


def scored(seed: int, phrases: int = 2) -> Scored:
    """Files with wandering scores that are often high, also within the lead-in and at the very beginning and end."""
    random = np.random.default_rng(seed)
    files: Scored = []
    for number in range(60):
        kind = ListKind.INV if number % 2 else ListKind.OOV
        rate = 48_000 if number % 5 == 0 else 16_000
        engine_samples = int(random.integers(8_000, 64_000 if kind is ListKind.INV else 320_000))
        tracks = []
        for phrase in range(phrases):
            length = (engine_samples + 480) // 480
            walk = np.cumsum(random.normal(0, 2.5, length)) + random.normal(0, 1)
            scores = np.round(255 / (1 + np.exp(-(walk - walk.mean())))) / 255
            tracks.append(ScoreTrack(f"phrase {phrase}", scores.astype(np.float32), 480, 480))
        rejected = RejectReason.RATE if number % 17 == 0 else None
        file_outcome = FileOutcome(kind, number, engine_samples * rate // 16_000, rate, 16_000, rejected=rejected)
        files.append((file_outcome, tuple(tracks)))
    return files


def counted(files: Scored, counting: CountingRules, rule: SpotRule) -> OfflineCounts:
    tally = Tally(counting)
    for file_outcome, tracks in files:
        file_spots = tuple(spot for track in tracks for spot in spots_of_track(track, rule))
        tally.add(replace(file_outcome, spots=file_spots))
    return tally.counts


def swept(files: Scored, counting: CountingRules, rule: SpotRule, max_steps: int = 2_000_000) -> Sweep:
    sweep = Sweep(counting, rule, POINTS, max_steps)
    for file_outcome, tracks in files:
        sweep.add(file_outcome, tracks)
    return sweep


def settings() -> Iterator[tuple[CountingRules, SpotRule]]:
    for lead_in_ref in LeadInRef:
        for with_u in (False, True):
            for lead_in_ms, refractory_ms, spot_ms in (
                (1000, 1000, 800),
                (0, 200, 1500),
                (300, 0, 0),
                (1500, 3000, 9000),
            ):
                counting = CountingRules(count_in_vocabulary=with_u, lead_in_ms=lead_in_ms, lead_in_ref=lead_in_ref)
                yield counting, SpotRule(0.97, refractory_ms * 16, spot_ms * 16)


@pytest.mark.parametrize(("counting", "rule"), tuple(settings()))
def test_all_operating_points_are_counted_as_the_log_counts(counting: CountingRules, rule: SpotRule) -> None:
    files = scored(1)
    sweep = swept(files, counting, rule)
    for point in POINTS:
        expected = counted(files, counting, SpotRule(point.threshold, rule.refractory_samples, rule.spot_samples))
        curve = sweep.det_at(np.array([point.threshold], np.float32))
        assert curve.files == expected.inv_files
        assert curve.misses.tolist() == [expected.false_rejects]
        assert curve.false_accepts.tolist() == [expected.false_accepts(counting)]
        assert curve.hours[0] == pytest.approx(expected.exposure_hours(counting), abs=1e-12)
    assert sweep.oov_files == expected.oov_files
    assert sweep.rejected_files == expected.rejected_files > 0


def test_an_operating_point_has_the_interval_over_talkers_of_a_run_at_it() -> None:
    def talker_of(kind: ListKind, number: int, label: LabelledPhrase | None) -> str:
        return "" if number % 3 == 0 else "abc"[number % 7 // 3]

    files, counting, rule = scored(1), CountingRules(), SpotRule(0.97, 16_000, 12_800)
    sweep = Sweep(counting, rule, POINTS, talker_of=talker_of)
    for file_outcome, tracks in files:
        sweep.add(file_outcome, tracks)
    for point in POINTS:
        tally = Tally(counting, talker_of=talker_of)
        for file_outcome, tracks in files:
            at_point = replace(rule, threshold=point.threshold)
            tally.add(replace(file_outcome, spots=spots_in(tracks, at_point)))
        run = figures_of(tally, counting)
        figures = sweep.figures_at(point.threshold)
        assert (figures.talkers, figures.unknown_talkers, figures.false_reject_interval) == (4, True, run.false_rejects)
        assert figures.false_reject_interval != clopper_pearson(figures.misses, figures.files)


def test_every_threshold_is_counted_as_the_log_counts() -> None:
    counting, rule = CountingRules(count_in_vocabulary=True), SpotRule(0.97, 16_000, 12_800)
    files = scored(2, phrases=1)
    curve = swept(files, counting, rule).det_at()
    assert len(curve) > 50
    for index in range(len(curve)):
        between = np.nextafter(curve.thresholds[index], np.float32(2))  # and so it stays up to the next
        for threshold in (curve.thresholds[index], between):
            expected = counted(files, counting, SpotRule(float(threshold), 16_000, 12_800))
            assert curve.misses[index] == expected.count(LogKey.INVFR)
            assert curve.false_accepts[index] == expected.count(LogKey.OOVFA, LogKey.INVFA)


def test_too_many_values_for_all_leave_operating_points_exact() -> None:
    counting, rule = CountingRules(count_in_vocabulary=True), SpotRule(0.97, 16_000, 12_800)
    thresholds = np.array([point.threshold for point in POINTS], np.float32)
    exact = swept(scored(3), counting, rule).det_at(thresholds)
    is_coarse = swept(scored(3), counting, rule, max_steps=10).det_at(thresholds)
    for name in ("misses", "false_accepts", "hours"):
        assert getattr(exact, name).tolist() == getattr(is_coarse, name).tolist()


def test_totals_without_files_have_no_rates() -> None:
    curve: Det = Sweep(CountingRules(), SpotRule(0.5, 16_000, 12_800), POINTS).det_at()
    assert not curve.has_rejects
    assert not curve.has_accepts
    assert len(curve) == 21
    assert np.isnan(curve.per_hour()).all()


def test_files_with_a_reference_are_refused() -> None:
    with pytest.raises(InputError, match="wake phrases"):
        Sweep(CountingRules(), SpotRule(0.5, 1, 1)).add(FileOutcome(ListKind.REFERENCED, 0, 1, 1, 1), ())


INV, OOV, REF = ListKind.INV, ListKind.OOV, ListKind.REFERENCED
EARLY, GOOD, LATER = spot(0.2, 0.8), spot(1.2, 1.9), spot(3.0, 3.5)
DEFAULT = CountingRules()
FROM_START = CountingRules(lead_in_ref=LeadInRef.START)
WORDS = CountingRules(words=True, lead_in_ms=0)
PLAIN = CountingRules(normalise=True)
PLAIN_WORDS = CountingRules(words=True, normalise=True, lead_in_ms=0)


def keys(file_outcome: FileOutcome, counting: CountingRules = DEFAULT) -> str:
    return " ".join(fact.key.value for fact in judge_file(file_outcome, counting).facts)


@pytest.mark.parametrize(
    ("file_outcome", "counting", "expected"),
    [
        pytest.param(outcome(INV, GOOD), DEFAULT, "INVTA", id="first spot after the lead-in"),
        pytest.param(outcome(INV), DEFAULT, "INVFR", id="no spot"),
        pytest.param(outcome(INV, EARLY), DEFAULT, "INVFA INVFR", id="ruling 3: in the lead-in only"),
        pytest.param(outcome(INV, EARLY, GOOD), DEFAULT, "INVFA INVTA INVTX", id="ruling 3: lead-in, then a good one"),
        pytest.param(outcome(INV, EARLY, spot(0.7, 0.9)), DEFAULT, "INVFA INVFA INVFR INVTX", id="two in the lead-in"),
        pytest.param(outcome(INV, GOOD, LATER), DEFAULT, "INVTA INVFA INVTX", id="a second spot"),
        pytest.param(outcome(INV, LATER, GOOD), DEFAULT, "INVTA INVFA INVTX", id="in time, however they are told"),
        pytest.param(outcome(INV, spot(0.5, 1.2)), DEFAULT, "INVTA", id="ruling 2: by its end"),
        pytest.param(outcome(INV, spot(0.5, 1.2)), FROM_START, "INVFA INVFR", id="ruling 2: by its start"),
        pytest.param(outcome(INV, spot(0.5, 1.0)), DEFAULT, "INVTA", id="the lead-in ends before its last moment"),
        pytest.param(outcome(INV, EARLY), CountingRules(lead_in_ms=0), "INVTA", id="no lead-in"),
        pytest.param(outcome(INV, spot(1.2, 1.9, "another")), DEFAULT, "INVTA", id="ruling 5: any phrase with -i"),
        pytest.param(outcome(INV, spot(3.8, 4.3)), DEFAULT, "INVTA", id="ruling 9: from the flush at the end"),
        pytest.param(outcome(OOV, EARLY, GOOD), DEFAULT, "OOVFA OOVFA", id="every spot"),
        pytest.param(outcome(OOV), DEFAULT, "", id="correct silence"),
        pytest.param(outcome(OOV, seconds=0.5), DEFAULT, "", id="a lead-in is of in-vocabulary files"),
        pytest.param(outcome(INV, seconds=0.5), DEFAULT, "REJECT", id="ruling 7: shorter than the lead-in"),
        pytest.param(outcome(INV, GOOD, seconds=1.0), DEFAULT, "INVTA", id="as long as the lead-in is no shorter"),
        pytest.param(outcome(OOV, seconds=0), DEFAULT, "REJECT", id="empty"),
        pytest.param(outcome(INV, GOOD, rejected=RejectReason.TWICE), DEFAULT, "REJECT", id="a reject counts nothing"),
        pytest.param(
            outcome(INV, GOOD, rejected=RejectReason.CRASH, error="segmentation fault"),
            DEFAULT,
            "ERROR REJECT",
            id="ruling 10: an error is an ERROR and a REJECT",
        ),
        pytest.param(outcome(REF, said=said("light on"), reference="light on"), DEFAULT, "CMDTA", id="match"),
        pytest.param(outcome(REF, said=said("light on"), reference="light on\n"), DEFAULT, "CMDTA", id="a line end"),
        pytest.param(outcome(REF, said=said("light off"), reference="light on"), DEFAULT, "CMDSB", id="mismatch"),
        pytest.param(outcome(REF, said=said("Light, on!"), reference="light on"), DEFAULT, "CMDSB", id="without -n"),
        pytest.param(outcome(REF, said=said("Light, on!"), reference="light on"), PLAIN, "CMDTA", id="with -n"),
        pytest.param(outcome(REF, reference="light on"), DEFAULT, "CMDFR", id="nothing"),
        pytest.param(outcome(REF, said=said(" "), reference="light on"), DEFAULT, "CMDFR", id="spaces are nothing"),
        pytest.param(outcome(REF, said=said("x"), reference=" "), DEFAULT, "REJECT", id="a reference of no command"),
        pytest.param(outcome(REF, GOOD, reference="alexa"), DEFAULT, "CMDTA", id="ruling 5: equality with -c"),
        pytest.param(outcome(REF, GOOD, reference="computer"), DEFAULT, "CMDSB", id="another phrase of the model"),
        pytest.param(outcome(REF, EARLY, reference="alexa"), DEFAULT, "INVFA CMDFR", id="a command in the lead-in"),
        pytest.param(outcome(REF, GOOD, LATER, reference="alexa"), DEFAULT, "CMDTA INVFA INVTX", id="a second command"),
        pytest.param(outcome(REF, said=said("a b"), reference="a b"), WORDS, "STTTA", id="no mismatch"),
        pytest.param(outcome(REF, said=said("a c"), reference="a b"), WORDS, "STTSB", id="a mismatch"),
        pytest.param(outcome(REF, reference="a b"), WORDS, "STTFR", id="no words"),
        pytest.param(outcome(REF, said=said("A, b."), reference="a b"), WORDS, "STTSB", id="words without -n"),
        pytest.param(outcome(REF, said=said("A, b."), reference="a b"), PLAIN_WORDS, "STTTA", id="words with -n"),
        pytest.param(outcome(REF, said=said("…"), reference="a b"), PLAIN_WORDS, "STTFR", id="punctuation is nothing"),
        pytest.param(outcome(REF, reference=""), WORDS, "STTTA", id="silence, and heard as one"),
        pytest.param(outcome(REF, said=said("thank you"), reference=""), WORDS, "STTSB", id="words out of silence"),
    ],
)
def test_an_outcome_is_logged_under_the_expected_keys(
    file_outcome: FileOutcome, counting: CountingRules, expected: str
) -> None:
    assert keys(file_outcome, counting) == expected


def test_u_option_changes_totals_but_not_log_lines() -> None:
    file_outcome = outcome(INV, EARLY, GOOD)
    assert keys(file_outcome) == keys(file_outcome, CountingRules(count_in_vocabulary=True)) == "INVFA INVTA INVTX"


def test_the_words_of_a_text_that_was_missed_are_deletions() -> None:
    (fact,) = judge_file(outcome(REF, reference="Well-known: three words!"), PLAIN_WORDS).facts
    assert fact.key is LogKey.STTFR
    assert fact.reference == "well known three words"
    assert fact.words is not None
    assert (fact.words.deletions, fact.words.words, fact.words.errors) == (4, 4, 4)


def test_texts_are_logged_as_normalised() -> None:
    (fact,) = judge_file(outcome(REF, said=said("Light, ON"), reference="light off."), PLAIN).facts
    assert (known(fact.spot).phrase, fact.reference) == ("light on", "light off")


def test_a_lead_in_is_exact_at_any_rate() -> None:
    just_before = outcome(INV, spot(0.5, 15_999 / 16_000))
    assert keys(just_before) == "INVFA INVFR"
    assert keys(outcome(INV, seconds=44_099 / 44_100, rate_hz=44_100)) == "REJECT"


WITH_U = CountingRules(count_in_vocabulary=True)


def counts_of(outcomes: list[FileOutcome], counting: CountingRules | None = None) -> OfflineCounts:
    tally = Tally(counting or CountingRules())
    for file_outcome in outcomes:
        tally.add(file_outcome)
    return tally.counts


def test_in_vocabulary_sound_that_is_no_true_accept_is_exposure_with_u() -> None:
    outcomes = [
        outcome(INV, spot(1.0, 1.5), seconds=4),
        outcome(INV, seconds=3),  # all of a file without a true accept
        outcome(INV, spot(0.1, 0.5), seconds=2),  # lead-in spots take nothing off
        outcome(OOV, spot(1, 2), seconds=10),
        outcome(INV, seconds=99, rejected=RejectReason.RATE),
    ]
    counts = counts_of(outcomes, WITH_U)
    assert (counts.inv_ms, counts.oov_ms, counts.inv_oov_ms) == (9000, 10_000, 8500)
    assert counts.exposure_hours(WITH_U) == pytest.approx(18.5 / 3600)
    assert counts.exposure_hours(CountingRules()) == pytest.approx(10 / 3600)
    assert totals_of(counts, WITH_U)["FACOUNT"] == 2
    assert totals_of(counts, CountingRules())["FACOUNT"] == 1
    assert totals_of(counts, WITH_U)["FARATE"] == pytest.approx(2 / 18.5 * 3600)


def test_a_spot_behind_the_end_takes_off_what_lies_in_the_file() -> None:
    counts = counts_of([outcome(INV, spot(3.5, 4.2), seconds=4)])
    assert counts.inv_oov_ms == 3500


def test_files_of_several_rates_are_counted_in_their_own_samples() -> None:
    third = FileOutcome(OOV, 0, samples=1, rate_hz=3, engine_rate_hz=16_000)
    counts = counts_of([third, third, third, outcome(OOV, seconds=2, rate_hz=48_000), outcome(OOV, seconds=1)])
    assert dict(counts.oov_samples) == {3: 3, 48_000: 96_000, 16_000: 16_000}
    assert counts.oov_ms == 4000  # a third of a second, thrice, is a second and no less


def test_rejected_files_count_nowhere() -> None:
    usable = [outcome(INV, spot(1.2, 2)), outcome(OOV)]
    rejects = [outcome(kind, spot(1.2, 2), rejected=reason) for kind in (INV, OOV) for reason in RejectReason]
    counts = counts_of(usable + rejects)
    assert counts.rejected_files == len(rejects)
    assert totals_of(counts, CountingRules()) == totals_of(counts_of(usable), CountingRules())
    assert (counts.inv_files, counts.oov_files, counts.inv_ms, counts.oov_ms) == (1, 1, 4000, 4000)


def test_totals_are_undefined_without_data() -> None:
    assert totals_of(OfflineCounts(), CountingRules()) == {}
    none = figures_of(Tally(CountingRules()), CountingRules())
    assert none.false_accepts is none.false_rejects is none.word_errors is none.clustering is None
    silence = counts_of([outcome(REF, reference="")], CountingRules(words=True, lead_in_ms=0))
    assert "WER" not in totals_of(silence, CountingRules(words=True))
