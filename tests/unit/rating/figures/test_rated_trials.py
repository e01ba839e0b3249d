"""Where each query ends, and which category its response has in the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.judgment import Category, JudgmentStatus, SubFlag
from harness.model.trial import MemoryPart, Outcome, Recognition
from harness.rating.figures.judged import Basis, Fate, judged_in, rated_in, rows_asked_for
from tests.unit.rating.figures.rated_rows import Case, progress_of, rated

C, W, A = Category.CORRECT, Category.WRONG, Category.ADMITTED_DEFEAT
HELD, FLAGGED, SKIPPED = JudgmentStatus.HELD, JudgmentStatus.FLAGGED, JudgmentStatus.SKIPPED


@pytest.mark.parametrize(
    ("case", "fate"),
    [
        (Case("t", outcome=None), Fate.NOT_PLAYED),
        (Case("t", outcome=Outcome.INTERRUPTED), Fate.NOT_TESTED),
        (Case("t", outcome=Outcome.SKIPPED), Fate.NOT_TESTED),
        (Case("t", outcome=Outcome.ABORTED), Fate.NOT_TESTED),
        (Case("t", outcome=Outcome.NO_WAKE, recognition=Recognition.NO), Fate.NOT_RECOGNISED),
        (Case("t", outcome=Outcome.MISHEARD, recognition=Recognition.NO), Fate.NOT_RECOGNISED),
        (Case("t", outcome=Outcome.NO_RESPONSE, recognition=Recognition.UNKNOWN), Fate.NOT_RECOGNISED),
        (Case("t", outcome=Outcome.NO_RESPONSE, recognition=Recognition.YES), Fate.SILENT),
        (Case("t", outcome=Outcome.NO_RESPONSE, recognition=Recognition.NOT_ASSESSED), Fate.SILENT),
        (Case("t", outcome=Outcome.INCONCLUSIVE, recognition=Recognition.UNKNOWN), Fate.INCONCLUSIVE),
        (Case("t", recorded=False), Fate.NO_RECORDING),
        (Case("t"), Fate.UNJUDGED),
        (Case("t", {"ann": SKIPPED}), Fate.SKIPPED),
        (Case("t", {"ann": HELD, "bo": SKIPPED}), Fate.HELD),
        (Case("t", {"ann": HELD, "bo": FLAGGED}), Fate.FLAGGED),
        (Case("t", {"ann": C, "bo": W}), Fate.DISPUTED),
        (Case("t", {"ann": C, "bo": HELD}), Fate.CATEGORY),
        (Case("t", {"ann": W}, outcome=Outcome.LATE), Fate.CATEGORY),
    ],
)
def test_every_query_has_one_end(case: Case, fate: Fate) -> None:
    (one,) = rated(case)
    assert one.fate is fate
    assert (one.category is not None) == (fate is Fate.CATEGORY) == (one.basis is not None)


@pytest.mark.parametrize(
    ("case", "category", "basis"),
    [
        (Case("t", {"ann": W}), W, Basis.ALONE),
        (Case("t", {"ann": W, "bo": W}), W, Basis.UNANIMOUS),
        (Case("t", {"ann": W, "bo": W, "cy": W}, settled=C), C, Basis.ADJUDICATED),
        (Case("t", {"ann": C, "bo": W}, settled=A), A, Basis.ADJUDICATED),
        (Case("t", {"ann": C, "bo": C, "cy": W}), C, Basis.CONSENSUS),
    ],
)
def test_the_category_follows_the_order_of_preference(case: Case, category: Category, basis: Basis) -> None:
    # What else these raters say tells the consensus that they can be trusted.
    others = [Case(f"o{n}", {"ann": one, "bo": one, "cy": one}) for n, one in enumerate((C, W, A) * 3)]
    one = rated(case, *others)[0]
    assert (one.category, one.basis) == (category, basis)


def test_two_raters_who_differ_are_no_consensus_and_three_who_all_differ_are_none_either() -> None:
    both = rated(Case("t", {"ann": C, "bo": W}), Case("u", {"ann": C, "bo": W, "cy": A}))
    assert [one.fate for one in both] == [Fate.DISPUTED, Fate.DISPUTED]
    # However well they agree elsewhere.
    others = [Case(f"o{n}", {"ann": one, "bo": one, "cy": one}) for n, one in enumerate((C, W, A) * 20)]
    differing = rated(Case("t", {"ann": C, "bo": W, "cy": A}), Case("u", {"ann": C, "bo": C, "cy": A}), *others)
    assert [one.fate for one in differing[:2]] == [Fate.DISPUTED, Fate.CATEGORY]


def test_a_sub_flag_is_one_when_half_of_those_who_gave_the_category_set_it() -> None:
    case = Case("t", {"ann": A, "bo": A, "cy": A})
    rows = case.judgments()
    lacks = ("core_capability_missing",)
    for setters, held in ((0, False), (1, False), (2, True), (3, True)):
        given = [replace(row, sub_flags=lacks) if at < setters else row for at, row in enumerate(rows)]
        progress = progress_of([case])
        (one,) = rated_in("s", progress.trials, judged_in("s", progress.trials, given))
        assert (SubFlag.CORE_CAPABILITY_MISSING in one.sub_flags) is held


def test_rows_of_a_rater_leave_out_what_others_say_and_adjudications() -> None:
    case = Case("t", {"ann": C, "bo": W}, settled=W)
    (one,) = rated(case, raters=("ann",))
    assert (one.category, one.basis) == (C, Basis.ALONE)


def test_rows_of_a_round_keep_its_corrections_and_adjudications() -> None:
    first = replace(Case("t", {"ann": C, "bo": W}, round="one"), settled=A)
    rows = first.judgments()
    rows[2] = replace(rows[2], round="")
    later = replace(Case("t", {"ann": W}, round="two").judgments()[0], id="later")
    undone = replace(
        rows[0], id="undone", status=JudgmentStatus.WITHDRAWN, category=None, replaces=rows[0].id, round=""
    )
    kept = rows_asked_for([*rows, later, undone], round_id="one")
    assert [row.id for row in kept] == ["ann:t", "bo:t", "settled:t", "undone"]


def test_memory_probes_and_wake_trials_are_no_queries_to_judge() -> None:
    progress = progress_of([Case("t", {"ann": C})])
    probe = replace(progress.trials[0], trial=replace(progress.trials[0].trial, memory=MemoryPart()))
    assert rated_in("s", (probe,), ()) == ()
