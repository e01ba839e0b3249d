"""Whatever two annotators and an adjudicator press, in any order: nothing is lost, rules hold, undo restores."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.annotation.desk import AnnotationDesk
from harness.annotation.view import AnnotationPhase
from harness.model.annotation import Accepted, Adjudicated, AnnotationRow, Labelled, Proposed, SecondWork, Withdrawn
from tests.unit.annotation.sittings import LABELS, Bench, proposed, utterances

NAMES = ("ann", "ben", "cem")
SETS = ["play", "thank", "play#thank", "well", "well#play", "stop", None]


def recount(rows: list[AnnotationRow], annotator: str) -> dict[str, tuple[str, ...]]:
    """What an annotator chose, worked out from the rows alone: first what is taken back, then row by row."""
    gone = {id_ for row in rows if isinstance(row, Withdrawn) for id_ in row.rows}
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if row.id in gone or isinstance(row, Proposed) or row.annotator != annotator:
            continue
        if isinstance(row, Accepted):
            found.update(dict.fromkeys(row.utterances, row.intents))
        elif isinstance(row, Labelled):
            found[row.utterance] = row.intents
    return found


class Sittings(RuleBasedStateMachine):
    @initialize(
        count=st.integers(1, 8),
        double=st.sampled_from([0.0, 0.5, 1.0]),
        second=st.sampled_from(list(SecondWork)),
        named=st.booleans(),
        data=st.data(),
    )
    def begin(self, count: int, double: float, second: SecondWork, named: bool, data: st.DataObject) -> None:
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
        given = {one.id: data.draw(st.sampled_from(SETS)) for one in utterances(self.bench.count)}
        self.batches += 1
        self.bench.rows.append(proposed(given, f"batch {self.batches}"))

    @rule(name=st.sampled_from(NAMES))
    def refresh(self, name: str) -> None:
        self.desks[name].refresh(self.bench.rows)

    @rule(name=st.sampled_from(NAMES), number=st.integers(0, 4), step=st.integers(-2, 2))
    def strike(self, name: str, number: int, step: int) -> None:
        self.desks[name].move(step)
        self.desks[name].strike_number(number)

    @rule(name=st.sampled_from(NAMES))
    def accept(self, name: str) -> None:
        desk, before = self.desks[name], len(self.bench.commits)
        page = desk.view.page
        assert desk.accept_page() is bool(page)
        assert len(self.bench.commits) == before + bool(page), "one commit for a page"
        if page:
            given = Counter(one for row in self.bench.commits[-1] for one in row.utterances)  # type: ignore[union-attr]
            assert given == Counter(line.utterance for line in page), "each of the page, once"

    @rule(name=st.sampled_from(NAMES), labels=st.lists(st.sampled_from([*LABELS.ids, "nonsense"]), max_size=4))
    def label(self, name: str, labels: list[str]) -> None:
        desk = self.desks[name]
        for one in labels:
            desk.toggle(one)
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
            mine = {one.id: one for one in before if not isinstance(one, Proposed) and one.annotator == name}
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
                one.id: row.intents
                for one in utterances(self.bench.count)
                if (row := ledger.choices(one.id).get(name)) is not None
            } == chosen

    @invariant()
    def what_is_done_and_left_is_all(self) -> None:
        for desk in self.desks.values():
            view, count = desk.view, desk.view.count
            assert count.done + count.left == count.total
            assert count.to_review + count.to_label == count.left
            assert (view.phase is AnnotationPhase.FINISHED) <= (count.left == 0)
            assert (view.item is not None) + bool(view.page) + (view.phase is AnnotationPhase.FINISHED) == 1


# Nothing is made smaller: a shorter sitting that fails may take minutes to find, more than a test has.
Sittings.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
TestSittings = Sittings.TestCase
