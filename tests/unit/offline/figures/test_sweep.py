"""A sweep counts at every threshold what the log counts at one: proved file by file, at all operating points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.settings import operating_points
from harness.model.errors import InputError
from harness.model.offline import Counting, FileOutcome, LeadInRef, ListKind, RejectReason, ScoreTrack, SpotRule
from harness.offline.figures.counts import Key, OfflineCounts, Tally
from harness.offline.figures.det import Det
from harness.offline.figures.sweep import Grid, Steps, Sweep, joined, spans
from harness.offline.one_file import crossings, spots

LEVELS = np.array([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1], np.float32)


@given(
    st.lists(st.integers(0, len(LEVELS) - 1), max_size=60),
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from([-0.5, 0.0, 0.1, 0.2, 0.25, 0.7, 0.9, 0.95, 1.0]),
)
@settings(max_examples=120, deadline=None)
def test_spans_tell_the_spots_of_every_threshold(
    levels: list[int], refractory_samples: int, step: int, threshold: float
) -> None:
    track = ScoreTrack("hey", LEVELS[levels] if levels else np.zeros(0, np.float32), 7, step)
    found = spans(track, refractory_samples)
    at = found.index[(found.low <= np.float32(threshold)) & (np.float32(threshold) < found.high)]
    assert at.tolist() == crossings(track.scores, threshold, refractory_samples / step).tolist()
    ends = [one.end for one in spots(track, SpotRule(threshold, refractory_samples, 5))]
    assert (track.first_end + at * step).tolist() == ends


def test_steps_are_sums_of_spans() -> None:
    random = np.random.default_rng(3)
    low = random.random(5000, np.float32)
    high = (low + random.random(5000, np.float32)).astype(np.float32)
    steps = Steps(Grid(np.zeros(0, np.float32)))
    for part in range(0, 5000, 500):
        steps.add(low[part : part + 500], high[part : part + 500], 3)
    asked = np.concatenate([low[:50], random.random(50, np.float32)])
    expected = [3 * int(np.sum((low <= one) & (one < high))) for one in asked]
    assert steps.at(asked).tolist() == expected
    assert not steps.coarse


def test_a_grid_keeps_its_own_thresholds_exact() -> None:
    random = np.random.default_rng(4)
    own = np.array([0.5, 0.97, 0.123456789], np.float32)
    exact, coarse = Steps(Grid(own)), Steps(Grid(own, size=50), most=100)
    for _ in range(4):
        low = random.random(40_000, np.float32)
        high = (low + 0.1 * random.random(40_000, np.float32)).astype(np.float32)
        exact.add(low, high)
        coarse.add(low, high)
    assert coarse.at(own).tolist() == exact.at(own).tolist()
    assert coarse.coarse
    assert len(coarse.values()) < 60
    grid = Grid(own, size=50).values
    assert coarse.at(grid).tolist() == exact.at(grid).tolist()


def test_spans_are_joined_where_they_meet() -> None:
    low, high = joined(np.array([5, 1, 2, 8], np.float32), np.array([6, 2, 4, 9], np.float32))
    assert (low.tolist(), high.tolist()) == ([1, 5, 8], [4, 6, 9])
    low, high = joined(np.array([1, 2], np.float32), np.array([9, 3], np.float32))
    assert (low.tolist(), high.tolist()) == ([1], [9])
    assert not len(joined(np.zeros(0, np.float32), np.zeros(0, np.float32))[0])


@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_tracks(length: int) -> None:
    found = spans(ScoreTrack("hey", np.full(length, 0.5, np.float32), 0, 480), 16_000)
    assert found.index.tolist() == [0][:length]


POINTS = operating_points(0.97)
Scored = list[tuple[FileOutcome, tuple[ScoreTrack, ...]]]


def scored(seed: int, phrases: int = 2) -> Scored:
    """Files with wandering scores that are often high, also within the lead-in and at the very beginning and end."""
    random = np.random.default_rng(seed)
    found: Scored = []
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
        outcome = FileOutcome(kind, number, engine_samples * rate // 16_000, rate, 16_000, rejected=rejected)
        found.append((outcome, tuple(tracks)))
    return found


def counted(files: Scored, counting: Counting, rule: SpotRule) -> OfflineCounts:
    tally = Tally(counting)
    for outcome, tracks in files:
        found = tuple(spot for track in tracks for spot in spots(track, rule))
        tally.add(
            FileOutcome(outcome.kind, outcome.number, outcome.samples, outcome.rate_hz, 16_000, found,
                        rejected=outcome.rejected)
        )  # fmt: skip
    return tally.counts


def swept(files: Scored, counting: Counting, rule: SpotRule, most: int = 2_000_000) -> Sweep:
    sweep = Sweep(counting, rule, POINTS, most)
    for outcome, tracks in files:
        sweep.add(outcome, tracks)
    return sweep


def settings() -> Iterator[tuple[Counting, SpotRule]]:
    for lead_in_ref in LeadInRef:
        for with_u in (False, True):
            for lead_in_ms, refractory_ms, spot_ms in (
                (1000, 1000, 800),
                (0, 200, 1500),
                (300, 0, 0),
                (1500, 3000, 9000),
            ):
                counting = Counting(count_in_vocabulary=with_u, lead_in_ms=lead_in_ms, lead_in_ref=lead_in_ref)
                yield counting, SpotRule(0.97, refractory_ms * 16, spot_ms * 16)


@pytest.mark.parametrize(("counting", "rule"), tuple(settings()))
def test_all_operating_points_are_counted_as_the_log_counts(counting: Counting, rule: SpotRule) -> None:
    files = scored(1)
    sweep = swept(files, counting, rule)
    for point in POINTS:
        expected = counted(files, counting, SpotRule(point.threshold, rule.refractory_samples, rule.spot_samples))
        found = sweep.at(np.array([point.threshold], np.float32))
        assert found.files == expected.inv_files
        assert found.misses.tolist() == [expected.false_rejects]
        assert found.false_accepts.tolist() == [expected.false_accepts(counting)]
        assert found.hours[0] == pytest.approx(expected.exposure_hours(counting), abs=1e-12)
    assert sweep.oov_files == expected.oov_files
    assert sweep.rejected_files == expected.rejected_files > 0


def test_every_threshold_is_counted_as_the_log_counts() -> None:
    counting, rule = Counting(count_in_vocabulary=True), SpotRule(0.97, 16_000, 12_800)
    files = scored(2, phrases=1)
    found = swept(files, counting, rule).at()
    assert len(found) > 50
    for index in range(len(found)):
        between = np.nextafter(found.thresholds[index], np.float32(2))  # and so it stays up to the next
        for threshold in (found.thresholds[index], between):
            expected = counted(files, counting, SpotRule(float(threshold), 16_000, 12_800))
            assert found.misses[index] == expected.count(Key.INVFR)
            assert found.false_accepts[index] == expected.count(Key.OOVFA, Key.INVFA)


def test_too_many_values_for_all_leave_operating_points_exact() -> None:
    counting, rule = Counting(count_in_vocabulary=True), SpotRule(0.97, 16_000, 12_800)
    own = np.array([point.threshold for point in POINTS], np.float32)
    exact, coarse = swept(scored(3), counting, rule).at(own), swept(scored(3), counting, rule, most=10).at(own)
    for name in ("misses", "false_accepts", "hours"):
        assert getattr(exact, name).tolist() == getattr(coarse, name).tolist()


def test_without_files_there_is_nothing_to_divide_by() -> None:
    found: Det = Sweep(Counting(), SpotRule(0.5, 16_000, 12_800), POINTS).at()
    assert not found.has_rejects
    assert not found.has_accepts
    assert len(found) == 21
    assert np.isnan(found.per_hour()).all()


def test_files_with_a_reference_are_refused() -> None:
    with pytest.raises(InputError, match="wake phrases"):
        Sweep(Counting(), SpotRule(0.5, 1, 1)).add(FileOutcome(ListKind.REFERENCED, 0, 1, 1, 1), ())
