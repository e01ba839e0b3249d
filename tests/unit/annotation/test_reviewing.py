"""Review by groups: pages, strikes, accepting, and taking a page back."""

from __future__ import annotations

import pytest

from harness.annotation.desk import AnnotationDesk
from harness.annotation.view import AnnotationPhase
from harness.model.annotation import Accepted, Struck
from harness.model.errors import LogFull
from tests.unit.annotation.sittings import Bench, proposed

SIX = {"u1": "stop", "u2": "play", "u3": "play", "u4": None, "u5": "play", "u6": "play"}


@pytest.fixture
def bench() -> Bench:
    return Bench(rows=[proposed(SIX)])


def on_page(desk: AnnotationDesk) -> list[str]:
    return [line.utterance for line in desk.view.page]


def test_the_largest_group_comes_first_and_page_by_page(bench: Bench) -> None:
    desk = bench.desk()
    view = desk.view
    assert view.phase is AnnotationPhase.REVIEWING
    assert view.group is not None
    assert (view.group.intents, view.group.number, view.group.groups) == (("play",), 1, 2)
    assert (view.group.left, view.group.total) == (4, 4)
    assert on_page(desk) == ["u2", "u3", "u5"]
    assert desk.accept_page()
    assert on_page(desk) == ["u6"]
    assert desk.accept_page()
    assert on_page(desk) == ["u1"], "the smaller group"
    assert desk.accept_page()
    assert desk.view.phase is AnnotationPhase.LABELLING
    assert desk.view.item is not None
    assert desk.view.item.utterance == "u4", "without consensus"


def test_a_page_is_one_commit_of_what_is_accepted_and_what_is_struck(bench: Bench) -> None:
    desk = bench.desk()
    desk.strike_number(2)
    bench.clock_s += 6
    desk.accept_page()
    (rows,) = bench.commits
    accepted, struck = rows
    assert isinstance(accepted, Accepted)
    assert isinstance(struck, Struck)
    assert (accepted.utterances, struck.utterances) == (("u2", "u5"), ("u3",))
    assert accepted.page == struck.page
    assert (accepted.intents, accepted.batch, accepted.time_s) == (("play",), "batch", 6.0)
    assert desk.view.pace_s == 2.0, "six seconds for three"
    assert desk.view.count.struck == 1
    assert desk.view.count.to_label == 2


def test_the_cursor_stops_at_the_ends_and_strikes_where_it_is(bench: Bench) -> None:
    desk = bench.desk()
    assert not desk.move(-1)
    assert desk.move(5)
    assert desk.view.cursor == 2
    assert desk.strike()
    assert [line.struck for line in desk.view.page] == [False, False, True]
    desk.strike()
    assert not any(line.struck for line in desk.view.page)
    assert not desk.strike_number(4)
    assert "1 to 3" in desk.view.said


def test_undo_takes_a_page_back_as_a_whole(bench: Bench) -> None:
    desk = bench.desk()
    before = desk.view
    desk.strike_number(1)
    desk.accept_page()
    assert desk.undo()
    assert [line.struck for line in desk.view.page] == [True, False, False]
    assert on_page(desk) == [line.utterance for line in before.page]
    assert desk.view.count == before.count
    assert not desk.undo()
    assert desk.view.said == "nothing is left to undo"


def test_undo_reaches_a_page_of_an_earlier_sitting(bench: Bench) -> None:
    desk = bench.desk()
    desk.strike_number(3)
    desk.accept_page()
    again = bench.desk()
    assert again.undo()
    assert [line.struck for line in again.view.page] == [False, False, True]


def test_a_page_that_cannot_be_saved_stays_with_its_strikes(bench: Bench) -> None:
    desk = bench.desk()
    desk.strike_number(2)
    bench.full = True
    with pytest.raises(LogFull):
        desk.accept_page()
    assert [line.struck for line in desk.view.page] == [False, True, False]
    assert desk.view.count.done == 0
    bench.full = False
    desk.accept_page()
    assert desk.view.count.done == 2


def test_a_group_may_be_left_for_later(bench: Bench) -> None:
    desk = bench.desk()
    desk.skip()
    assert on_page(desk) == ["u1"]
    desk.skip()
    assert on_page(desk) == ["u2", "u3", "u5"], "the one that was left first"
    assert bench.commits == []


def test_labelling_may_come_between(bench: Bench) -> None:
    desk = bench.desk()
    assert desk.go_to(AnnotationPhase.LABELLING)
    assert desk.view.item is not None
    assert desk.go_to(AnnotationPhase.REVIEWING)
    assert desk.view.phase is AnnotationPhase.REVIEWING


def test_proposals_against_the_rules_are_labelled_by_hand() -> None:
    bench = Bench(count=2, rows=[proposed({"u1": "well#play", "u2": "nothing"})])
    desk = bench.desk()
    assert desk.view.phase is AnnotationPhase.LABELLING
    assert desk.view.count.to_label == 2


def test_what_a_later_batch_proposes_counts(bench: Bench) -> None:
    desk = bench.desk()
    desk.strike_number(1)
    desk.accept_page()
    bench.rows.append(proposed({"u2": "thank", "u6": None}, "second"))
    assert desk.refresh(bench.rows)
    assert desk.view.count.to_review == 2, "u1 as before, u2 with other labels than those that were struck"
    desk.accept_page()
    desk.accept_page()
    assert {row.batch for row in bench.rows if isinstance(row, Accepted)} == {"batch", "second"}


def test_rows_of_others_take_utterances_off_the_page(bench: Bench) -> None:
    ann, ben = bench.desk("ann"), bench.desk("ben")
    ann.strike_number(3)
    ben.strike_number(3)
    ben.accept_page()
    ann.refresh(bench.rows)
    assert on_page(ann) == ["u5"], "ben struck it, so nobody has chosen labels for it"
    assert ann.view.page[0].struck
