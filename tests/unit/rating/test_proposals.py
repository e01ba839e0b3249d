"""A classifier's proposal stays out of sight until the rater has chosen, and each row tells what they had seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.judgment import (
    Category,
    Judgment,
    JudgmentStatus,
    ProposalRule,
    ProposalShown,
    RatingRound,
    in_force,
)
from harness.rating.desk import Desk
from harness.rating.items import CategoryProposal
from tests.unit.rating.sittings import Bench, exercises, items

CORRECT, WRONG = Category.CORRECT, Category.WRONG
AFTER, BEFORE, NEVER = ProposalShown.AFTER, ProposalShown.BEFORE, ProposalShown.NEVER
SAYS = CategoryProposal(WRONG, 0.714)
TOLD = "the classifier would have said Wrong (71 %)"


def bench_of(show: ProposalShown, count: int = 3, proposal: CategoryProposal | None = SAYS) -> Bench:
    return Bench(items(count), RatingRound(proposals=ProposalRule(("/s0",), show=show)), proposal=proposal)


def facts(row: Judgment) -> tuple[object, ...]:
    return row.category, row.proposed, row.proposed_probability, row.proposal_shown, row.unaided


def test_it_is_told_after_a_choice_that_differs_and_stored() -> None:
    bench = bench_of(AFTER)
    desk = bench.desk()
    assert desk.view.proposal is None
    assert "classifier" not in desk.view.said
    desk.judge(CORRECT)
    assert desk.view.said == f"{TOLD}; saved as Correct"
    assert desk.view.proposal is None, "the next response is judged unaided too"
    desk.judge(WRONG)
    assert desk.view.said == "saved as Wrong"
    assert [facts(row) for row in bench.disk.rows] == [
        (CORRECT, WRONG, 0.714, AFTER, None),
        (WRONG, WRONG, 0.714, NEVER, None),
    ]


@pytest.mark.parametrize("restarted", [False, True])
def test_who_was_told_and_takes_it_back_has_seen_it_and_agreement_keeps_the_first_choice(restarted: bool) -> None:
    bench = bench_of(AFTER)
    desk = bench.desk()
    desk.judge(CORRECT)
    desk.undo()
    if restarted:
        desk = bench.desk()
    assert desk.view.proposal == CategoryProposal(WRONG, 0.714)
    desk.judge(WRONG)
    assert "classifier" not in desk.view.said
    desk.undo()
    desk.judge(Category.INFERRABLE)
    (stands,) = in_force(bench.disk.rows)
    assert facts(stands) == (Category.INFERRABLE, WRONG, 0.714, BEFORE, CORRECT)
    assert stands.independent is CORRECT
    assert [row.independent for row in bench.disk.rows] == [CORRECT, None, CORRECT, None, CORRECT]


def test_an_undo_of_what_nobody_was_told_about_leaves_the_choice_unaided() -> None:
    bench = bench_of(AFTER)
    desk = bench.desk()
    desk.judge(WRONG)
    desk.undo()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert facts(bench.disk.rows[-1]) == (CORRECT, WRONG, 0.714, AFTER, None)


def test_shown_from_the_start_it_is_stored_as_seen_with_every_row() -> None:
    bench = bench_of(BEFORE)
    desk = bench.desk()
    assert desk.view.proposal == CategoryProposal(WRONG, 0.714)
    desk.skip()
    desk.judge(CORRECT)
    assert "classifier" not in desk.view.said
    skip, given = bench.disk.rows
    assert (skip.status, facts(skip)) == (JudgmentStatus.SKIPPED, (None, WRONG, 0.714, BEFORE, None))
    assert facts(given) == (CORRECT, WRONG, 0.714, BEFORE, None)
    assert given.independent is CORRECT


def test_never_shown_it_is_stored_all_the_same() -> None:
    bench = bench_of(NEVER)
    desk = bench.desk()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert (desk.view.said, desk.view.proposal) == ("saved as Correct", None)
    assert facts(bench.disk.rows[0]) == (CORRECT, WRONG, 0.714, NEVER, None)


def _without_rule(bench: Bench) -> Desk:
    return bench.desk(proposals=None)


def test_a_response_without_a_proposal_and_a_round_without_a_rule_say_nothing() -> None:
    for bench, sit in ((bench_of(AFTER, proposal=None), Bench.desk), (bench_of(AFTER), _without_rule)):
        desk = sit(bench)
        desk.judge(CORRECT)
        assert desk.view.said == "saved as Correct"
        assert bench.disk.rows[0].proposal_shown is NEVER


def test_exercises_and_adjudications_have_none() -> None:
    bench = bench_of(BEFORE)
    bench.exercises = exercises(CORRECT)
    desk = bench.desk()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert bench.disk.rows[0].proposed is None
    inputs = (replace(bench.disk.rows[0], id="a"), replace(bench.disk.rows[0], id="b", category=WRONG))
    settling = bench_of(BEFORE)
    settling.items = tuple(replace(one, inputs=inputs) for one in settling.items)
    desk = settling.desk()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert facts(settling.disk.rows[0]) == (CORRECT, None, None, NEVER, None)
