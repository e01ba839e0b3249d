"""Results by groups of recordings."""

from __future__ import annotations

import random

import pytest
from scipy.stats import fisher_exact

from harness.model.offline import CountingRules, FileOutcome, LeadInRef, ListKind, OfflineSpot
from harness.offline.figures.counts import Tally
from harness.offline.figures.figures import figures_of
from harness.offline.figures.groups import FileBreakdown, breakdown
from harness.offline.reports.log import interval_info
from harness.offline.reports.tables import group_lines
from harness.statistics.intervals import Share, clopper_pearson
from harness.statistics.voices import over_clusters
from tests.known import known

COUNTING = CountingRules(False, False, False, 0.0, LeadInRef.END)
HOUR = 3600 * 16000


def outcome(kind: ListKind, number: int, spots: int) -> FileOutcome:
    offline_spots = tuple(OfflineSpot("hey", spot * 100, spot * 100 + 50) for spot in range(spots))
    return FileOutcome(kind, number, HOUR, 16000, 16000, offline_spots)


def by(
    rejects: dict[str, tuple[int, int]], accepts: dict[str, tuple[int, int]], talkers: dict[str, int] | None = None
) -> FileBreakdown:
    """rejects: missed, files. accepts: events, hours, all in the first. talkers: how many share a group's files."""
    outcomes: list[FileOutcome] = []
    groups: dict[ListKind, list[str]] = {ListKind.INV: [], ListKind.OOV: []}
    talker_labels: dict[ListKind, list[str]] = {ListKind.INV: [], ListKind.OOV: []}
    for kind, by_label in ((ListKind.INV, rejects), (ListKind.OOV, accepts)):
        for label, (events, files) in by_label.items():
            for number in range(files):
                detected = 1 if number >= events else 0
                accepted = events if number == 0 else 0
                spots = detected if kind is ListKind.INV else accepted
                outcomes.append(outcome(kind, len(groups[kind]), spots))
                groups[kind].append(label)
                talker_labels[kind].append(f"{label}{number % (talkers or {}).get(label, 1)}")
    random.Random(1).shuffle(outcomes)
    columns = {"accent": groups, "talker": talker_labels}
    return breakdown(outcomes, COUNTING, columns, ["accent"], "talker" if talkers else "")


def test_groups_come_worst_first_and_add_up_to_the_whole() -> None:
    by_group = by({"us": (3, 40), "gb": (9, 30), "au": (0, 20)}, {"us": (4, 10), "tv": (30, 10)})
    assert [group.label for group in by_group.groups] == ["gb", "us", "au", "tv"]
    assert sum((group.rejects for group in by_group.groups), Share()) == Share(12, 90)
    assert sum(group.accepts for group in by_group.groups) == 34
    assert sum(group.hours for group in by_group.groups) == pytest.approx(20)
    gb = by_group.groups[0]
    assert gb.rejects_interval == clopper_pearson(9, 30)
    # Holm: the smallest of three is corrected three times.
    assert gb.rejects_p == pytest.approx(3 * float(fisher_exact([[9, 21], [3, 57]]).pvalue))
    assert (by_group.groups[-1].rejects.value, by_group.groups[-1].rejects_p) == (None, None)
    gap = known(by_group.rejects_gap)
    assert (gap.worst, gap.best, gap.difference.difference) == ("gb", "au", pytest.approx(0.3))
    assert known(by_group.accepts_gap).difference.difference == pytest.approx(2.6)
    # The extremes of three groups are one of three pairs.
    assert gap.difference.p == pytest.approx(3 * float(fisher_exact([[9, 21], [0, 20]]).pvalue))


def test_intervals_treat_each_talker_as_a_cluster() -> None:
    by_group = by({"us": (10, 40), "gb": (0, 40)}, {}, talkers={"us": 4, "gb": 4})
    us = by_group.groups[0]
    # The first ten of forty files are missed, of four talkers in turn: 3, 3, 2, 2.
    assert us.clusters == 4
    assert us.rejects_interval == over_clusters([3, 3, 2, 2], [10] * 4)
    assert known(us.rejects_interval)[1] > known(clopper_pearson(10, 40))[1]


def test_the_table_shows_counts_intervals_and_differences() -> None:
    text = "\n".join(group_lines(by({"us": (1, 4), "gb": (0, 4)}, {"us": (2, 4)}), 120))
    assert " ".join(text.splitlines()[3].split()) == "us 4 25.0 % 0.63–80.6 % 1.000 4.00 0.50 0.061–1.81 n/a"
    assert "gb is not shown to differ from us: gb minus us -25.00 points (-80.59 to +39.98), p = 1.000" in text
    none = "\n".join(group_lines(by({}, {"us": (2, 4)}), 120))
    assert "FR" not in none


def test_groups_of_random_evaluations_add_up_to_the_total() -> None:
    drawn = random.Random(3)
    for _ in range(200):
        kinds = [drawn.choice([ListKind.INV, ListKind.OOV]) for _ in range(drawn.randint(1, 60))]
        numbers = {ListKind.INV: 0, ListKind.OOV: 0}
        outcomes = []
        for kind in kinds:
            outcomes.append(outcome(kind, numbers[kind], drawn.randint(0, 3)))
            numbers[kind] += 1
        columns = {
            name: {kind: [drawn.choice(["", "a", "b"]) for _ in range(count)] for kind, count in numbers.items()}
            for name in ("x", "y", "talker")
        }
        by_group = breakdown(outcomes, COUNTING, columns, ["x", "y"], drawn.choice(["", "talker"]))
        whole = Tally(COUNTING)
        for file_outcome in outcomes:
            whole.add(file_outcome)
        counts = whole.counts
        assert sum(group.rejects.count for group in by_group.groups) == counts.false_rejects
        assert sum(group.accepts for group in by_group.groups) == counts.false_accepts(COUNTING)
        assert sum(group.hours for group in by_group.groups) == pytest.approx(counts.exposure_hours(COUNTING))


def test_files_in_conditions_count_once_for_the_intervals_of_the_whole() -> None:
    """Eight conditions in which the engine does the same say no more than one."""
    missed, heard = {1, 4}, {0: 3, 2: 1}
    onefold, eightfold = Tally(COUNTING, 1), Tally(COUNTING, 8)
    for kind in (ListKind.INV, ListKind.OOV):
        for file in range(10):
            spots = heard.get(file, 0) if kind is ListKind.OOV else int(file not in missed)
            onefold.add(outcome(kind, file, spots))
            for condition in range(8):
                eightfold.add(outcome(kind, file * 8 + condition, spots))
    single, eight = figures_of(onefold, COUNTING), figures_of(eightfold, COUNTING)
    assert single.false_rejects == clopper_pearson(2, 10)
    assert (eight.counts.false_rejects, eight.by_file, eight.false_rejects_wilson) == (16, True, None)
    assert known(eight.false_rejects) == pytest.approx(over_clusters([8, 8] + 8 * [0], 10 * [8]))
    assert len(eightfold.false_accepts) == len(onefold.false_accepts) == 10
    assert list(eightfold.false_accepts) == [8 * count for count in onefold.false_accepts]


def test_the_total_interval_counts_each_talker_as_one_cluster() -> None:
    """12 files of 3 talkers, 2 more of unknown ones, which are one talker together."""
    names = ["ann"] * 4 + ["ben"] * 4 + ["cat"] * 4 + [""] * 2
    tally = Tally(COUNTING, talker_of=lambda kind, number, label: names[number])
    for file in range(14):
        tally.add(outcome(ListKind.INV, file, int(file not in (0, 1, 4, 12))))
    whole = figures_of(tally, COUNTING)
    assert (whole.talkers, whole.unknown_talkers, whole.by_file, whole.false_rejects_wilson) == (4, True, False, None)
    assert whole.false_rejects == over_clusters([2, 1, 0, 1], [4, 4, 4, 2])
    unknown = Tally(COUNTING, talker_of=lambda kind, number, label: "")
    unknown.add(outcome(ListKind.INV, 0, 1))
    assert figures_of(unknown, COUNTING).false_rejects == clopper_pearson(0, 1), "no talker is known"
    alone = Tally(COUNTING, talker_of=lambda kind, number, label: "ann")
    alone.add(outcome(ListKind.INV, 0, 1))
    single = figures_of(alone, COUNTING)
    assert single.false_rejects is None
    assert ("x-frratio-interval", "too few voices for an interval") in [*interval_info(single)]
    assert any(
        line.endswith("%, over 4 voices, unknown talkers counted as one, 95 %") for _, line in interval_info(whole)
    )
    assert "x-fr+sbratio-interval" not in dict(interval_info(whole)), "without references nothing is mistaken"
