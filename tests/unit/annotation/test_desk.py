"""Labelling by hand and settling; and whatever is pressed in any order, nothing is lost and rules hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import UtteranceState
from harness.annotation.report import annotation_report
from harness.annotation.view import AnnotationPhase, LabellingItem
from harness.model.annotation import (
    Accepted,
    Adjudicated,
    AnnotationRow,
    Labelled,
    LabelProposal,
    LabelProposalShown,
    Proposed,
    SecondAnnotatorMode,
    Struck,
    Withdrawn,
)
from harness.model.errors import LogFull
from harness.model.understanding import Slot
from tests.unit.annotation.sittings import LABELS, Bench, imported, proposed, utterances


def item(desk: AnnotationDesk) -> LabellingItem:
    task = desk.view.item
    assert task is not None
    return task


def label(desk: AnnotationDesk, *labels: str) -> str:
    """Labels what is in sight, and says which utterance that was."""
    utterance = item(desk).utterance
    for name in labels:
        assert desk.toggle(name)
    assert desk.save(), desk.view.said
    return utterance


@pytest.mark.parametrize(
    ("labels", "refusal"),
    [
        ((), "an utterance needs at least one label"),
        (("well", "thank"), "well must be the only label"),
        (("play", "stop"), "play and stop are mutually exclusive"),
    ],
)
def test_label_rules_are_shown_at_once_and_block_saving(labels: tuple[str, ...], refusal: str) -> None:
    bench = Bench()
    desk = bench.desk()
    for name in labels:
        desk.toggle(name)
    assert item(desk).refusal == refusal
    assert not desk.save()
    assert desk.view.said == refusal
    assert bench.commits == []


def test_an_unknown_label_is_refused() -> None:
    desk = Bench().desk()
    assert not desk.toggle("pley")
    assert desk.view.said == "there is no label 'pley'"


def test_labels_are_saved_sorted_and_shown_in_the_order_of_the_set() -> None:
    bench = Bench()
    desk = bench.desk()
    desk.toggle("thank")
    desk.toggle("stop")
    assert item(desk).chosen == ("stop", "thank")
    desk.comment(" Jo\u0308rg mumbled ")
    bench.wait(desk, 4)
    desk.save()
    (row,) = bench.rows
    assert isinstance(row, Labelled)
    assert (row.intents, row.comment, row.time_s, row.proposal_shown) == (
        ("stop", "thank"),
        " Jörg mumbled ",
        4.0,
        False,
    )


def test_a_skipped_utterance_comes_last() -> None:
    desk = Bench(count=3).desk()
    first = item(desk).utterance
    desk.skip()
    assert desk.view.count.skipped == 1
    ids = [label(desk, "play"), label(desk, "play"), label(desk, "play")]
    assert ids[-1] == first
    assert desk.view.phase is AnnotationPhase.FINISHED
    assert desk.view.count.left == 0


def test_undo_brings_labels_and_comment_back() -> None:
    bench = Bench()
    desk = bench.desk()
    desk.comment("odd")
    utterance = label(desk, "play", "thank")
    desk.undo()
    assert (item(desk).utterance, item(desk).chosen, item(desk).comment) == (utterance, ("play", "thank"), "odd")
    assert desk.view.count.done == 0
    assert bench.ledger.status_of(utterance, 1).state is UtteranceState.OPEN


def test_orders_of_two_annotators_differ_and_stay() -> None:
    def order(name: str) -> list[str]:
        desk = Bench(count=12).desk(name)
        return [label(desk, "play") for _ in range(12)]

    assert order("ann") == order("ann")
    assert order("ann") != order("ben")


def doubled(
    bench: Bench,
    second: SecondAnnotatorMode = SecondAnnotatorMode.HAND,
    proposal: LabelProposalShown = LabelProposalShown.AFTER,
) -> AnnotationDesk:
    """ann has accepted all that is proposed; the second annotator is at the desk."""
    first = bench.desk("ann", per_utterance=2, second=second, proposal=proposal)
    while first.view.phase is AnnotationPhase.REVIEWING:
        first.accept_page()
    return bench.desk("ben")


def test_the_second_annotator_sees_a_proposal_only_after_choosing() -> None:
    bench = Bench(count=1, rows=[proposed({"u1": "play"})])
    ben = doubled(bench)
    assert item(ben).proposal is None
    ben.toggle("stop")
    assert ben.save()
    assert item(ben).saved
    assert item(ben).proposal == ("play",)
    assert bench.ledger.choices("u1")["ben"].intents == ("stop",), "on the disk before it is shown"
    ben.toggle("stop")
    ben.toggle("play")
    ben.save()
    assert ben.view.phase is AnnotationPhase.FINISHED
    ledger = bench.ledger
    assert ledger.status_of("u1", 2).state is UtteranceState.AGREED
    assert ledger.independent_choices("u1")["ben"].intents == ("stop",), "agreement counts the choice from before"
    ben.undo()
    assert item(ben).proposal == ("play",), "what was seen cannot be unseen"
    assert "ben" not in bench.ledger.choices("u1"), "both of its rows are taken back"


def test_labels_equal_to_the_proposal_need_no_confirmation() -> None:
    ben = doubled(Bench(count=1, rows=[proposed({"u1": "play"})]))
    ben.toggle("play")
    ben.save()
    assert ben.view.phase is AnnotationPhase.FINISHED


def test_saving_again_keeps_the_choice_without_a_row() -> None:
    bench = Bench(count=1, rows=[proposed({"u1": "play"})])
    ben = doubled(bench)
    ben.toggle("stop")
    ben.save()
    rows = len(bench.rows)
    ben.save()
    assert len(bench.rows) == rows
    assert ben.view.phase is AnnotationPhase.FINISHED


def test_a_project_can_show_proposals_before_the_annotator_labels() -> None:
    ben = doubled(Bench(count=1, rows=[proposed({"u1": "play"})]), proposal=LabelProposalShown.BEFORE)
    assert item(ben).proposal == ("play",)


def test_a_project_may_let_the_second_review_by_groups() -> None:
    ben = doubled(Bench(count=1, rows=[proposed({"u1": "play"})]), SecondAnnotatorMode.GROUPS)
    assert ben.view.phase is AnnotationPhase.REVIEWING


def test_struck_lines_of_one_annotator_do_not_affect_another() -> None:
    bench = Bench(count=2, rows=[proposed({"u1": "play", "u2": "play"})])
    ann = bench.desk("ann", per_utterance=2, second=SecondAnnotatorMode.GROUPS)
    ann.strike_number(1)
    ann.accept_page()
    ben = bench.desk("ben")
    assert [(line.utterance, line.struck) for line in ben.view.page] == [("u1", False), ("u2", False)]
    assert item(ann).struck


def disputed(bench: Bench) -> AnnotationDesk:
    for name, labels in (("ann", ("play",)), ("ben", ("stop", "thank"))):
        desk = bench.desk(name, per_utterance=2)
        desk.comment(f"{len(labels)} labels")
        label(desk, *labels)
    return bench.desk("cem", adjudicating=True)


def test_adjudicator_sees_both_choices_without_names() -> None:
    bench = Bench(count=1)
    cem = disputed(bench)
    assert bench.ledger.status_of("u1", 2).state is UtteranceState.DISPUTED
    assert [labelling.intents for labelling in item(cem).inputs] == [("play",), ("stop", "thank")]
    assert not {"'ann'", "'ben'"} & set(repr(cem.view).replace("=", " ").replace(",", " ").split())
    label(cem, "thank")
    standing = bench.ledger.status_of("u1", 2)
    assert (standing.state, standing.intents) == (UtteranceState.ADJUDICATED, ("thank",))
    row = bench.rows[-1]
    assert isinstance(row, Adjudicated)
    assert set(row.inputs) == {row.id for row in bench.rows[:2]}
    assert cem.view.phase is AnnotationPhase.FINISHED
    cem.undo()
    assert bench.ledger.status_of("u1", 2).state is UtteranceState.DISPUTED


def test_adjudicator_begins_with_the_labels_that_all_gave() -> None:
    bench = Bench(count=1)
    for name, labels in (("ann", ("play", "thank")), ("ben", ("play",))):
        label(bench.desk(name, per_utterance=2), *labels)
    cem = bench.desk("cem", adjudicating=True)
    assert item(cem).chosen == ("play",)
    assert cem.save()
    assert bench.ledger.status_of("u1", 2).intents == ("play",)


def test_settling_leaves_own_labels_alone() -> None:
    bench = Bench(count=1)
    disputed(bench)
    ann = bench.desk("ann", adjudicating=True)
    label(ann, "thank")
    assert bench.ledger.choices("u1")["ann"].intents == ("play",)
    sitting = bench.desk("ann")
    assert sitting.undo(), "the label, not the settling"
    assert bench.ledger.adjudication("u1") is not None


def test_imported_labels_count_as_one_annotator() -> None:
    bench = Bench(count=2, rows=[imported("u1", "play")])
    assert bench.desk().view.count.total == 1
    desk = bench.desk(per_utterance=2)
    assert desk.view.count.total == 2
    while desk.view.item is not None:
        label(desk, "play")
    assert bench.ledger.status_of("u1", 2).state is UtteranceState.AGREED
    assert bench.ledger.status_of("u2", 2).state is UtteranceState.WAITING


def test_strikes_are_hidden_from_other_annotators() -> None:
    bench = Bench(count=1, rows=[proposed({"u1": "play"})])
    ann = bench.desk("ann", per_utterance=2)
    ann.strike_number(1)
    ann.accept_page()
    label(ann, "stop")
    ben = bench.desk("ben")
    assert (item(ben).struck, item(ben).proposal) == (False, None)


SIX = {"u1": "stop", "u2": "play", "u3": "play", "u4": None, "u5": "play", "u6": "play"}


@pytest.fixture
def bench() -> Bench:
    return Bench(rows=[proposed(SIX)])


@pytest.fixture
def desk(bench: Bench) -> AnnotationDesk:
    return bench.desk()


def on_page(desk: AnnotationDesk) -> list[str]:
    return [line.utterance for line in desk.view.page]


def test_the_largest_group_comes_first_and_page_by_page(desk: AnnotationDesk) -> None:
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


def test_time_counts_once_for_an_utterance_saved_before_and_after_its_proposal() -> None:
    bench = Bench(count=1, rows=[proposed({"u1": "play"})])
    desk = bench.desk(second=SecondAnnotatorMode.HAND, per_utterance=2, double_share=1.0)
    desk.accept_page()
    ben = bench.desk("ben")
    bench.wait(ben, 10)
    ben.toggle("thank")
    ben.save()
    bench.wait(ben, 5)
    ben.toggle("thank")
    ben.toggle("play")
    ben.save()
    assert [row.time_s for row in bench.rows if isinstance(row, Labelled)] == [10.0, 15.0]
    assert ben.view.pace_s == 15.0
    assert annotation_report(utterances(1), bench.rows, {}).hand_time_s == 15.0


def test_a_page_commits_accepted_and_struck_lines_together(bench: Bench, desk: AnnotationDesk) -> None:
    desk.strike_number(2)
    bench.wait(desk, 6)
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


def test_a_line_is_struck_by_its_number_and_taken_back(desk: AnnotationDesk) -> None:
    assert desk.strike_number(3)
    assert [line.struck for line in desk.view.page] == [False, False, True]
    desk.strike_number(3)
    assert not any(line.struck for line in desk.view.page)
    assert not desk.strike_number(4)
    assert "1 to 3" in desk.view.said


def test_undo_takes_a_page_back_as_a_whole(desk: AnnotationDesk) -> None:
    before = desk.view
    desk.strike_number(1)
    desk.accept_page()
    assert desk.undo()
    assert [line.struck for line in desk.view.page] == [True, False, False]
    assert on_page(desk) == [line.utterance for line in before.page]
    assert desk.view.count == before.count
    assert not desk.undo()
    assert desk.view.said == "nothing is left to undo"


def test_undo_reaches_a_page_of_an_earlier_sitting(bench: Bench, desk: AnnotationDesk) -> None:
    desk.strike_number(3)
    desk.accept_page()
    reopened = bench.desk()
    assert reopened.undo()
    assert [line.struck for line in reopened.view.page] == [False, False, True]


def test_a_page_that_cannot_be_saved_stays_with_its_strikes(bench: Bench, desk: AnnotationDesk) -> None:
    desk.strike_number(2)
    bench.full = True
    with pytest.raises(LogFull):
        desk.accept_page()
    assert [line.struck for line in desk.view.page] == [False, True, False]
    assert desk.view.count.done == 0
    bench.full = False
    desk.accept_page()
    assert desk.view.count.done == 2


def test_a_group_may_be_left_for_later(bench: Bench, desk: AnnotationDesk) -> None:
    desk.skip()
    assert on_page(desk) == ["u1"]
    desk.skip()
    assert on_page(desk) == ["u2", "u3", "u5"], "the one that was left first"
    assert bench.commits == []


def test_labelling_by_hand_may_interrupt_a_review(desk: AnnotationDesk) -> None:
    assert desk.go_to(AnnotationPhase.LABELLING)
    assert desk.view.item is not None
    assert desk.go_to(AnnotationPhase.REVIEWING)
    assert desk.view.phase is AnnotationPhase.REVIEWING


def test_proposals_against_the_rules_are_labelled_by_hand() -> None:
    bench = Bench(count=2, rows=[proposed({"u1": "well#play", "u2": "nothing"})])
    desk = bench.desk()
    assert desk.view.phase is AnnotationPhase.LABELLING
    assert desk.view.count.to_label == 2


def test_later_batch_replaces_earlier_proposals(bench: Bench, desk: AnnotationDesk) -> None:
    desk.strike_number(1)
    desk.accept_page()
    bench.rows.append(proposed({"u2": "thank", "u6": None}, "second"))
    assert desk.refresh(bench.rows)
    assert desk.view.count.to_review == 2, "u1 as before, u2 with other labels than those that were struck"
    desk.accept_page()
    desk.accept_page()
    assert {row.batch for row in bench.rows if isinstance(row, Accepted)} == {"batch", "second"}


def test_rows_of_another_annotator_remove_utterances_from_the_page(bench: Bench) -> None:
    ann, ben = bench.desk("ann"), bench.desk("ben")
    ann.strike_number(3)
    ben.strike_number(3)
    ben.accept_page()
    ann.refresh(bench.rows)
    assert on_page(ann) == ["u5"], "ben struck it, so nobody has chosen labels for it"
    assert ann.view.page[0].struck


NAMES = ("ann", "ben", "cem")
SETS = ["play", "thank", "play#thank", "well", "well#play", "stop", None]


def recount(rows: list[AnnotationRow], annotator: str) -> dict[str, tuple[str, ...]]:
    """What an annotator chose, worked out from the rows alone: first what is taken back, then row by row."""
    gone = {id_ for row in rows if isinstance(row, Withdrawn) for id_ in row.rows}
    choices: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if row.id in gone or isinstance(row, Proposed) or row.annotator != annotator:
            continue
        if isinstance(row, Accepted):
            choices.update(dict.fromkeys(row.utterances, row.intents))
        elif isinstance(row, Labelled):
            choices[row.utterance] = row.intents
    return choices


class Sittings(RuleBasedStateMachine):
    @initialize(
        count=st.integers(1, 8),
        double=st.sampled_from([0.0, 0.5, 1.0]),
        second=st.sampled_from(list(SecondAnnotatorMode)),
        named=st.booleans(),
        data=st.data(),
    )
    def begin(self, count: int, double: float, second: SecondAnnotatorMode, named: bool, data: st.DataObject) -> None:
        self.bench = Bench(count=count)
        self.batches = 0
        self.propose(data)
        settled: dict[str, Any] = {
            "per_utterance": 2 if double else 1,
            "double_share": double,
            "second": second,
            "annotators": NAMES[:2] if named else (),
        }
        self.desks: dict[str, AnnotationDesk] = {
            name: self.bench.desk(name, adjudicating=name == "cem", **settled) for name in NAMES
        }

    @rule(data=st.data())
    def propose(self, data: st.DataObject) -> None:
        labels = {utterance.id: data.draw(st.sampled_from(SETS)) for utterance in utterances(self.bench.count)}
        self.batches += 1
        self.bench.rows.append(proposed(labels, f"batch {self.batches}"))

    @rule(name=st.sampled_from(NAMES))
    def refresh(self, name: str) -> None:
        self.desks[name].refresh(self.bench.rows)

    @rule(name=st.sampled_from(NAMES), number=st.integers(0, 4))
    def strike(self, name: str, number: int) -> None:
        self.desks[name].strike_number(number)

    @rule(name=st.sampled_from(NAMES))
    def accept(self, name: str) -> None:
        desk, before = self.desks[name], len(self.bench.commits)
        page = desk.view.page
        assert desk.accept_page() is bool(page)
        assert len(self.bench.commits) == before + bool(page), "one commit for a page"
        if page:
            counts = Counter(utterance for row in self.bench.commits[-1] for utterance in row.utterances)  # type: ignore[union-attr]
            assert counts == Counter(line.utterance for line in page), "each of the page, once"

    @rule(name=st.sampled_from(NAMES), labels=st.lists(st.sampled_from([*LABELS.ids, "nonsense"]), max_size=4))
    def label(self, name: str, labels: list[str]) -> None:
        desk = self.desks[name]
        for label in labels:
            desk.toggle(label)
        desk.save()

    @rule(name=st.sampled_from(NAMES))
    def skip(self, name: str) -> None:
        self.desks[name].skip()

    @rule(name=st.sampled_from(NAMES), phase=st.sampled_from(list(AnnotationPhase)))
    def go_to(self, name: str, phase: AnnotationPhase) -> None:
        self.desks[name].go_to(phase)

    @precondition(lambda self: any(desk.view.can_undo for desk in self.desks.values()))
    @rule(name=st.sampled_from(NAMES))
    def undo(self, name: str) -> None:
        desk, before = self.desks[name], list(self.bench.rows)
        could = desk.view.can_undo
        assert desk.undo() is could
        if could:
            (row,) = self.bench.rows[len(before) :]
            assert isinstance(row, Withdrawn)
            mine = {row.id: row for row in before if not isinstance(row, Proposed) and row.annotator == name}
            assert set(row.rows) <= set(mine), "nobody takes back what others gave"

    @rule(name=st.sampled_from(NAMES))
    def accept_and_undo(self, name: str) -> None:
        """Together they change nothing of what stands."""
        desk = self.desks[name]
        desk.refresh(self.bench.rows)
        before, stood = desk.view, recount(self.bench.rows, name)
        if desk.accept_page():
            desk.undo()
            assert recount(self.bench.rows, name) == stood
            assert (desk.view.page, desk.view.count) == (before.page, before.count)

    @rule(name=st.sampled_from(NAMES))
    def sit_down_again(self, name: str) -> None:
        """A new desk over the same rows stands where the old one stood."""
        old = self.desks[name]
        old.refresh(self.bench.rows)
        new = self.bench.desk(name, adjudicating=name == "cem")
        assert new._work.queue == old._work.queue, "what was worked out row by row is what all rows say"
        self.desks[name] = new

    @invariant()
    def rules_hold(self) -> None:
        for row in self.bench.rows:
            if isinstance(row, Accepted | Labelled | Adjudicated):
                assert LABELS.refusal(row.intents) == ""

    @invariant()
    def rows_say_the_same_when_counted_by_others(self) -> None:
        ledger = self.bench.ledger
        for name in NAMES[:2]:
            chosen = recount(self.bench.rows, name)
            assert {
                utterance.id: row.intents
                for utterance in utterances(self.bench.count)
                if (row := ledger.choices(utterance.id).get(name)) is not None
            } == chosen

    @invariant()
    def what_is_done_and_left_is_all(self) -> None:
        for desk in self.desks.values():
            view, count = desk.view, desk.view.count
            assert count.done + count.left == count.total
            assert count.to_review + count.to_label == count.left
            assert (view.phase is AnnotationPhase.FINISHED) <= (count.left == 0)
            finished = view.phase is AnnotationPhase.FINISHED
            assert [view.item is not None, bool(view.page), finished].count(True) == 1


# Nothing is made smaller: a shorter sitting that fails may take minutes to find, more than a test has.
Sittings.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
TestSittings = Sittings.TestCase


def test_adjudicator_begins_with_slots_that_only_one_annotated() -> None:
    city = (Slot("city", None, 0, 1),)
    rows: list[AnnotationRow] = [imported("u1", "stop"), Labelled("b", "ben", "u1", ("thank",), slots=city)]
    item = Bench(count=1, rows=rows).desk("cem", adjudicating=True).view.item
    assert item is not None
    assert item.slots == city


def test_accepted_slots_are_those_of_their_own_batch() -> None:
    bench = Bench(3)
    city = (Slot("city", None, 0, 1),)
    for id_, slots in (("no slots", None), ("none found", ()), ("found", city)):
        proposals = tuple(LabelProposal(utterance.id, ("play",), slots=slots) for utterance in utterances(3))
        bench.rows.append(Proposed(id_, "test", proposals))
        desk = bench.desk(page_size=1)
        (line,) = desk.view.page
        assert desk.accept_page()
        assert bench.ledger.status_of(line.utterance, 1).slots == slots
        assert ("[say: city]" in line.text) is (slots == city)
