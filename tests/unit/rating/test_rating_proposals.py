"""Proposals are learnt from what was judged elsewhere, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.rate_plain import item_lines
from harness.model.errors import InputError, PluginError
from harness.model.judgment import Category, ProposalShown, RatingRound, TranscriptPolicy
from harness.rating.rating_room import RatingRoom
from tests.proposal_rounds import judged_source, proposing_round, right_for
from tests.rating_sessions import rating_session


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_source(tmp_path_factory.mktemp("judged") / "s0")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 8)


def refused(round_: RatingRound) -> InputError:
    with pytest.raises(InputError) as found:
        RatingRoom(round_)
    return found.value


def test_each_response_gets_the_category_that_its_like_were_given(source: Path, session: Path) -> None:
    room = RatingRoom(proposing_round(source, ProposalShown.AFTER, session))
    again = RatingRoom(proposing_round(source, ProposalShown.AFTER, session))
    desk = room.desk("ann")
    told = 0
    while (item := desk.view.item) is not None:
        assert desk.view.proposal is None
        desk.judge(Category.CORRECT)
        told += "the classifier would have said Admitted defeat (" in desk.view.said
    rows = {row.trial_id: row for row in room.rows}
    assert told == 2
    for item in room.items:
        row = rows[item.subject.trial_id]
        assert row.proposed is right_for(item.hidden.query_id)
        assert row.proposed_probability is not None
        assert 0.5 < row.proposed_probability <= 1
        assert (row.proposal_shown is ProposalShown.AFTER) == (row.proposed is not row.category)
    other = again.desk("bob")
    other.judge(Category.CORRECT)
    row = again.rows[-1]
    assert row.proposed_probability == rows[row.trial_id].proposed_probability
    room.close()
    again.close()


def test_the_classifier_has_the_settings_of_the_round(source: Path, session: Path) -> None:
    round_ = proposing_round(source, ProposalShown.AFTER, session)
    assert round_.proposals is not None
    given = []
    for settings in ((), (("strength", "0.001"),)):
        room = RatingRoom(replace(round_, proposals=replace(round_.proposals, settings=settings)))
        room.desk("ann").judge(Category.CORRECT)
        given.append(room.rows[-1].proposed_probability)
        room.close()
    as_by_default, held_back = given
    assert as_by_default is not None
    assert held_back is not None
    assert abs(held_back - 0.5) < 0.01 < abs(as_by_default - 0.5)


def test_plain_lines_show_it_with_the_response_where_the_round_says_so(source: Path, session: Path) -> None:
    for show in ProposalShown:
        room = RatingRoom(proposing_round(source, show, session))
        lines = list(item_lines(room.desk("ann").view, TranscriptPolicy.NEVER))
        assert any(line.startswith("the classifier says: ") for line in lines) is (show is ProposalShown.BEFORE)
        room.close()


def test_a_response_without_text_gets_none(source: Path, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 3, devices=("kitchen",), transcripts=False)
    room = RatingRoom(proposing_round(source, ProposalShown.BEFORE, session))
    desk = room.desk("ann")
    assert desk.view.proposal is None
    desk.judge(Category.WRONG)
    assert room.rows[-1].proposed is None
    room.close()


def test_too_little_to_learn_from_is_refused_with_what_is_needed(tmp_path: Path, session: Path) -> None:
    few = judged_source(tmp_path / "few", 12)
    found = refused(proposing_round(few, ProposalShown.AFTER, session))
    assert "12 responses with a category and a text, of 2 kinds" in found.what
    assert "20 of them, of 2 kinds" in found.remedy
    unjudged = rating_session(tmp_path / "unjudged", 30, session_id="s9")
    assert "0 responses" in refused(proposing_round(unjudged, ProposalShown.AFTER, session)).what


def test_the_sessions_own_labels_are_refused_under_another_path_too(source: Path, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "copy", 8, session_id="s0")
    assert "which this round judges" in refused(proposing_round(source, ProposalShown.AFTER, session)).what


def test_an_unknown_classifier_is_told(source: Path, session: Path) -> None:
    round_ = proposing_round(source, ProposalShown.AFTER, session)
    assert round_.proposals is not None
    with pytest.raises(PluginError, match="none_such"):
        RatingRoom(replace(round_, proposals=replace(round_.proposals, classifier="none_such")))
