"""A classifier's proposal stays out of sight until the rater has chosen, and each row tells what they had seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.rate_lines import item_lines
from harness.model.errors import InputError, PluginError
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
from harness.rating.rating_room import RatingRoom
from tests.rating_sessions import judged_source, proposing_round, rating_session, right_for
from tests.unit.rating.sittings import Bench, exercises, items

CORRECT, WRONG = Category.CORRECT, Category.WRONG
AFTER, BEFORE, NEVER = ProposalShown.AFTER, ProposalShown.BEFORE, ProposalShown.NEVER
SAYS = CategoryProposal(WRONG, 0.714)


def bench_of(show: ProposalShown, count: int = 3, proposal: CategoryProposal | None = SAYS) -> Bench:
    return Bench(items(count), RatingRound(proposals=ProposalRule(("/s0",), show=show)), proposal=proposal)


def facts(row: Judgment) -> tuple[object, ...]:
    return row.category, row.proposed, row.proposed_probability, row.proposal_shown, row.unaided


@pytest.mark.parametrize("restarted", [False, True])
def test_undo_after_a_shown_proposal_keeps_the_first_choice(restarted: bool) -> None:
    bench = bench_of(AFTER)
    desk = bench.desk()
    desk.judge(CORRECT)
    desk.undo()
    if restarted:
        desk = bench.desk()
    assert desk.view.proposal == CategoryProposal(WRONG, 0.714)
    desk.judge(WRONG)
    assert "classifier" not in desk.view.message
    desk.undo()
    desk.judge(Category.INFERRABLE)
    (stands,) = in_force(bench.disk.rows)
    assert facts(stands) == (Category.INFERRABLE, WRONG, 0.714, BEFORE, CORRECT)
    assert stands.independent is CORRECT
    assert [row.independent for row in bench.disk.rows] == [CORRECT, None, CORRECT, None, CORRECT]


def test_undo_before_any_proposal_was_shown_leaves_the_choice_unaided() -> None:
    bench = bench_of(AFTER)
    desk = bench.desk()
    desk.judge(WRONG)
    desk.undo()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert facts(bench.disk.rows[-1]) == (CORRECT, WRONG, 0.714, AFTER, None)


def test_proposal_shown_from_the_start_is_stored_with_every_row() -> None:
    bench = bench_of(BEFORE)
    desk = bench.desk()
    assert desk.view.proposal == CategoryProposal(WRONG, 0.714)
    desk.skip()
    desk.judge(CORRECT)
    assert "classifier" not in desk.view.message
    skip, row = bench.disk.rows
    assert (skip.status, facts(skip)) == (JudgmentStatus.SKIPPED, (None, WRONG, 0.714, BEFORE, None))
    assert facts(row) == (CORRECT, WRONG, 0.714, BEFORE, None)
    assert row.independent is CORRECT


def test_hidden_proposal_is_stored_with_the_judgment() -> None:
    bench = bench_of(NEVER)
    desk = bench.desk()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert (desk.view.message, desk.view.proposal) == ("saved as Correct", None)
    assert facts(bench.disk.rows[0]) == (CORRECT, WRONG, 0.714, NEVER, None)


def _without_rule(bench: Bench) -> Desk:
    return bench.desk(proposals=None)


def test_no_proposal_is_shown_without_a_rule_of_the_round() -> None:
    for bench, sit in ((bench_of(AFTER, proposal=None), Bench.desk), (bench_of(AFTER), _without_rule)):
        desk = sit(bench)
        desk.judge(CORRECT)
        assert desk.view.message == "saved as Correct"
        assert bench.disk.rows[0].proposal_shown is NEVER


def test_exercises_and_adjudications_have_no_proposal() -> None:
    bench = bench_of(BEFORE)
    bench.exercises = exercises(CORRECT)
    desk = bench.desk()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert bench.disk.rows[0].proposed is None
    inputs = (replace(bench.disk.rows[0], id="a"), replace(bench.disk.rows[0], id="b", category=WRONG))
    settling = bench_of(BEFORE)
    settling.items = tuple(replace(item, inputs=inputs) for item in settling.items)
    desk = settling.desk()
    assert desk.view.proposal is None
    desk.judge(CORRECT)
    assert facts(settling.disk.rows[0]) == (CORRECT, None, None, NEVER, None)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_source(tmp_path_factory.mktemp("judged") / "s0")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 8)


def refused(round_: RatingRound) -> InputError:
    with pytest.raises(InputError) as caught:
        RatingRoom(round_)
    return caught.value


def test_proposal_is_the_category_of_similar_responses(source: Path, session: Path) -> None:
    room = RatingRoom(proposing_round(source, ProposalShown.AFTER, session))
    second_room = RatingRoom(proposing_round(source, ProposalShown.AFTER, session))
    desk = room.desk("ann")
    mentions = 0
    while (item := desk.view.item) is not None:
        assert desk.view.proposal is None
        desk.judge(Category.CORRECT)
        mentions += "the classifier would have proposed Admitted defeat (" in desk.view.message
    rows = {row.trial_id: row for row in room.rows}
    assert mentions == 2
    for item in room.items:
        row = rows[item.subject.trial_id]
        assert row.proposed is right_for(item.hidden.query_id)
        assert row.proposed_probability is not None
        assert 0.5 < row.proposed_probability <= 1
        assert (row.proposal_shown is ProposalShown.AFTER) == (row.proposed is not row.category)
    other = second_room.desk("bob")
    other.judge(Category.CORRECT)
    row = second_room.rows[-1]
    assert row.proposed_probability == rows[row.trial_id].proposed_probability
    room.close()
    second_room.close()


def test_the_classifier_has_the_settings_of_the_round(source: Path, session: Path) -> None:
    round_ = proposing_round(source, ProposalShown.AFTER, session)
    assert round_.proposals is not None
    probabilities = []
    for settings in ((), (("strength", "0.001"),)):
        room = RatingRoom(replace(round_, proposals=replace(round_.proposals, settings=settings)))
        room.desk("ann").judge(Category.CORRECT)
        probabilities.append(room.rows[-1].proposed_probability)
        room.close()
    as_by_default, held_back = probabilities
    assert as_by_default is not None
    assert held_back is not None
    assert abs(held_back - 0.5) < 0.01 < abs(as_by_default - 0.5)


def test_plain_lines_show_the_proposal_when_the_round_allows(source: Path, session: Path) -> None:
    for show in ProposalShown:
        room = RatingRoom(proposing_round(source, show, session))
        lines = list(item_lines(room.desk("ann").view))
        assert any(line.startswith("the classifier proposes: ") for line in lines) is (show is ProposalShown.BEFORE)
        room.close()


def test_response_without_text_gets_no_proposal(source: Path, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 3, devices=("kitchen",), transcripts=False)
    room = RatingRoom(proposing_round(source, ProposalShown.BEFORE, session))
    desk = room.desk("ann")
    assert desk.view.proposal is None
    desk.judge(Category.WRONG)
    assert room.rows[-1].proposed is None
    room.close()


def test_too_little_to_learn_from_is_refused_with_what_is_needed(tmp_path: Path, session: Path) -> None:
    few = judged_source(tmp_path / "few", 12)
    error = refused(proposing_round(few, ProposalShown.AFTER, session))
    assert "12 responses with a category and a text, in 2 categories" in error.what
    assert "20 such responses, in at least 2 categories" in error.remedy
    unjudged = rating_session(tmp_path / "unjudged", 30, session_id="s9")
    assert "0 responses" in refused(proposing_round(unjudged, ProposalShown.AFTER, session)).what


def test_the_sessions_own_labels_are_refused_under_another_path_too(source: Path, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "copy", 8, session_id="s0")
    assert "which this round judges" in refused(proposing_round(source, ProposalShown.AFTER, session)).what


def test_an_unknown_classifier_is_reported(source: Path, session: Path) -> None:
    round_ = proposing_round(source, ProposalShown.AFTER, session)
    assert round_.proposals is not None
    with pytest.raises(PluginError, match="none_such"):
        RatingRoom(replace(round_, proposals=replace(round_.proposals, classifier="none_such")))
