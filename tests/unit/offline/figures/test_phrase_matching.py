"""Phrases in long recordings: matching, counting, groups and the sweep of thresholds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from harness.model.offline import (
    CountingRules,
    FileOutcome,
    LabelledPhrase,
    ListKind,
    OfflineSpot,
    ScoreTrack,
    SpotRule,
)
from harness.offline.figures.counts import LogKey, PhraseCounts, Tally, judge_file
from harness.offline.figures.figures import figures_of
from harness.offline.figures.groups import breakdown, talker_of
from harness.offline.figures.phrase_matching import match_labels
from harness.offline.figures.sweep import Sweep
from harness.offline.journal_lines import Talkers
from harness.offline.one_file import spots_in
from tests.unit.offline.figures.outcomes import RATE_HZ, spot

ALEXA, JARVIS = "alexa", "hey jarvis"
BOTH = CountingRules(tolerance_s=0.5, phrases=(ALEXA, JARVIS))


def recording(labels: Sequence[LabelledPhrase], *spots: OfflineSpot, seconds: float = 3600.0) -> FileOutcome:
    samples = round(seconds * RATE_HZ)
    return FileOutcome(ListKind.LABELLED, 0, samples, RATE_HZ, RATE_HZ, tuple(spots), labels=tuple(labels))


def test_each_detection_belongs_to_one_phrase_at_most() -> None:
    labels = [
        LabelledPhrase(10.0, 10.8, "Alexa", (("talker", "ann"),)),
        LabelledPhrase(20.0, 20.8, "alexa", (("talker", "bob"),)),
        LabelledPhrase(30.0, 31.0, "Hey_Jarvis", (("talker", "ann"),)),
        LabelledPhrase(40.0, 41.0, "computer"),  # not a phrase of the engine
    ]
    heard = [
        spot(10.1, 10.9),  # a true accept
        spot(10.2, 11.3),  # within the tolerance, but the phrase has its detection
        spot(20.2, 21.31),  # too late
        spot(30.2, 31.2),  # the wrong phrase
        spot(30.2, 31.2, JARVIS),  # a true accept
        spot(40.2, 41.2, JARVIS),
    ]
    outcome = recording(labels, *heard)
    facts = judge_file(outcome, BOTH).facts
    assert [(fact.key, fact.spot.end / RATE_HZ if fact.spot else None) for fact in facts] == [
        (LogKey.INVTA, 10.9), (LogKey.OOVFA, 11.3), (LogKey.INVFR, None), (LogKey.OOVFA, 21.31), (LogKey.OOVFA, 31.2),
        (LogKey.INVTA, 31.2), (LogKey.OOVFA, 41.2),
    ]  # fmt: skip
    tally = Tally(BOTH)
    tally.add(outcome)
    assert (tally.counts.true_accepts, tally.counts.false_rejects, tally.counts.false_accepts(BOTH)) == (2, 1, 4)
    assert tally.counts.exposure_hours(BOTH) == 1.0

    def groups(*grouping: str) -> dict[str, tuple[int, int, int, float]]:
        columns = {"folder": {ListKind.LABELLED: ["kitchen"]}}
        by_group = breakdown([outcome], BOTH, columns, grouping, "")
        return {
            group.label: (group.rejects.count, group.rejects.total, group.accepts, group.hours)
            for group in by_group.groups
        }

    # False accepts and hours belong to the recording; by phrase, to the phrase that was detected.
    assert groups("talker") == {"ann": (0, 2, 0, 0.0), "bob": (1, 1, 0, 0.0), "(none)": (0, 0, 4, 1.0)}
    assert groups("phrase") == {ALEXA: (1, 2, 3, 1.0), JARVIS: (0, 1, 1, 1.0)}
    assert groups("folder") == {"kitchen": (1, 3, 4, 1.0)}


def test_a_phrase_is_a_cluster_over_conditions_of_any_speed() -> None:
    labels = [LabelledPhrase(10.0 * number, 10.0 * number + 1, ALEXA) for number in range(1, 7)]
    fast = [LabelledPhrase(label.start_s / 2, label.end_s / 2, ALEXA) for label in labels]

    def interval(second: Sequence[LabelledPhrase]) -> object:
        recordings = [
            recording(phrases, *(spot(label.start_s, label.end_s) for label in phrases[:3]))
            for phrases in (labels, second)
        ]
        outcomes = [replace(outcome, number=number) for number, outcome in enumerate(recordings)]
        columns = {"folder": {ListKind.LABELLED: ["kitchen"] * 2}}
        (group,) = breakdown(outcomes, BOTH, columns, ["folder"], "", conditions=2).groups
        return group.rejects_interval

    assert interval(fast) == interval(labels)


def test_a_late_detection_does_not_move_a_phrase_to_another_cluster() -> None:
    labels = [LabelledPhrase(10.0, 10.9, ALEXA), LabelledPhrase(10.5, 10.95, JARVIS)]
    tally = Tally(BOTH, conditions=2)
    for number, known_s in enumerate((11.0, 10.8)):  # after the end of the phrase that is missed, and before it
        tally.add(replace(recording(labels, spot(10.0, known_s)), number=number))
    assert sorted(tally.counts_by_file) == [PhraseCounts(0, 0, 2), PhraseCounts(2, 0, 2)]


def most_by_force(
    labels: Sequence[LabelledPhrase], spots: Sequence[OfflineSpot], tolerance_s: float
) -> tuple[int, float]:
    """The most pairs, and the least total distance of so many: tries every choice."""

    def best(row: int, free: frozenset[int]) -> tuple[int, float]:
        if row == len(labels):
            return 0, 0.0
        label = labels[row]
        least = best(row + 1, free)
        for index in free:
            end_s = spots[index].end / RATE_HZ
            if label.start_s <= end_s <= label.end_s + tolerance_s and label.phrase in ("", spots[index].phrase):
                count, distance = best(row + 1, free - {index})
                least = min(least, (count - 1, distance + abs(end_s - label.end_s)))
        return least

    return best(0, frozenset(range(len(spots))))


def random_case(chance: random.Random) -> tuple[list[LabelledPhrase], list[OfflineSpot], float]:
    phrases = chance.choice([[""], [ALEXA, JARVIS]])
    starts = sorted(chance.randrange(0, 60) / 10 for _ in range(chance.randrange(0, 6)))
    labels = [LabelledPhrase(start, start + chance.randrange(1, 20) / 10, chance.choice(phrases)) for start in starts]
    ends = [chance.randrange(1, 90) / 10 for _ in range(chance.randrange(0, 6))]
    spots = [spot(max(0.0, end - 0.5), end, chance.choice([ALEXA, JARVIS])) for end in ends]
    return labels, spots, chance.choice([0.0, 0.3, 1.0])


def test_matching_equals_trying_every_choice() -> None:
    chance = random.Random(20)
    for _ in range(10_000):
        labels, spots, tolerance_s = random_case(chance)
        pairs = match_labels(labels, spots, RATE_HZ, tolerance_s)
        assert len({row for row, _ in pairs}) == len({event for _, event in pairs}) == len(pairs)
        distance = sum(abs(spots[event].end / RATE_HZ - labels[row].end_s) for row, event in pairs)
        count, least = most_by_force(labels, spots, tolerance_s)
        assert (-len(pairs), pytest.approx(distance, abs=1e-6)) == (count, least), (labels, spots)


@pytest.mark.parametrize("phrase", [None, ALEXA])
@pytest.mark.parametrize("with_u", [False, True])
def test_a_sweep_counts_what_the_run_counts_at_every_threshold(phrase: str | None, with_u: bool) -> None:
    chance = np.random.Generator(np.random.PCG64(3))
    counting = replace(BOTH, count_in_vocabulary=with_u)
    rule = SpotRule(0.5, 2 * RATE_HZ // 10, RATE_HZ // 2)
    for _ in range(20):
        step = RATE_HZ // 10
        tracks = [
            ScoreTrack(name, (chance.integers(0, 40, 120) / 40).astype(np.float32), step, step)
            for name in (ALEXA, JARVIS)
        ]
        starts = np.sort(chance.uniform(0, 11, 8))
        labels = [
            LabelledPhrase(
                float(start), float(start) + 0.6, str(chance.choice([ALEXA, JARVIS])), (("talker", "abc"[place % 3]),)
            )
            for place, start in enumerate(starts)
        ]
        outcome = recording(labels, seconds=12.0)
        sweep = Sweep(counting, rule, phrase=phrase, talker_of=talker_of(Talkers("talker")))
        sweep.add(outcome, tracks)
        det = sweep.det_at()
        assert len(det) > 20
        for index, threshold in enumerate(det.thresholds):
            mine = [track for track in tracks if phrase in (None, track.phrase)]
            with_spots = replace(
                outcome,
                spots=spots_in(mine, replace(rule, threshold=float(threshold))),
                labels=tuple(label for label in labels if phrase in (None, label.phrase)),
            )
            tally = Tally(counting, talker_of=talker_of(Talkers("talker")))
            tally.add(with_spots)
            counts = tally.counts
            if index % 8 == 0:
                run = figures_of(tally, counting)
                figures = sweep.figures_at(float(threshold))
                assert (figures.talkers, figures.false_reject_interval) == (run.talkers, run.false_rejects)
            assert (det.misses[index], det.files) == (counts.false_rejects, counts.false_rejects + counts.true_accepts)
            assert det.false_accepts[index] == counts.false_accepts(counting)
