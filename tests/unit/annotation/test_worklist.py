"""Utterances that are brought back: shown as they stand, changed or kept, and undone for this sitting alone."""

from __future__ import annotations

import pytest

from harness.annotation.ledger import UtteranceAssignment, UtteranceState
from harness.annotation.view import AnnotationPhase
from harness.annotation.worklist import FoundUtterance, find, has_words, may_label_again
from harness.model.annotation import Accepted, Adjudicated, AnnotationRow, Labelled
from tests.unit.annotation.sittings import Bench, imported, proposed, utterances
from tests.unit.annotation.test_desk import item, label


def by(annotator: str, utterance: str, *intents: str, shown: bool = False) -> Labelled:
    row = f"{annotator} {utterance} {'#'.join(intents)}"
    return Labelled(row, annotator, utterance, intents, proposal_shown=shown, comment=f"{annotator}'s")


def test_accepted_utterance_returns_with_labels_to_change_and_undo() -> None:
    bench = Bench(count=3)
    page = Accepted("page", "ann", "batch", "1", ("play",), ("u1", "u2", "u3"))
    bench.rows += [proposed({"u1": "play", "u2": "play", "u3": "play"}), page]
    desk = bench.desk(again=("u3", "u1"))
    assert desk.view.phase is AnnotationPhase.LABELLING
    assert (item(desk).utterance, item(desk).chosen, item(desk).proposal) == ("u3", ("play",), ("play",))
    assert not desk.undo(), "what other sittings gave is not of this one"
    desk.toggle("thank")
    assert desk.save()
    assert item(desk).utterance == "u1"
    assert bench.ledger.status_of("u3", 1).intents == ("play", "thank")
    (row,) = bench.commits[-1]
    assert isinstance(row, Labelled)
    assert row.proposal_shown
    assert desk.undo()
    assert bench.ledger.status_of("u3", 1).intents == ("play",), "as it was before"
    assert (item(desk).utterance, item(desk).chosen) == ("u3", ("play", "thank"))
    assert desk.save()
    assert item(desk).utterance == "u1"


def test_keeping_or_skipping_an_utterance_writes_nothing() -> None:
    bench = Bench(count=2, rows=[by("ann", "u1", "play"), by("ann", "u2", "stop")])
    desk = bench.desk(again=("u1", "u2"))
    assert (item(desk).saved, item(desk).comment) == (True, "ann's")
    assert desk.save()
    assert desk.view.said == "kept as play"
    assert (desk.view.count.done, desk.view.count.left) == (1, 1)
    assert desk.skip()
    assert bench.commits == []
    assert desk.view.phase is AnnotationPhase.FINISHED


def test_undo_keeps_labels_chosen_before_this_sitting() -> None:
    bench = Bench(count=1, rows=[by("ann", "u1", "play")])
    desk = bench.desk(again=("u1",))
    desk.toggle("thank")
    desk.save()
    assert desk.undo()
    assert bench.ledger.choices("u1")["ann"].intents == ("play",)
    assert not desk.undo()


def test_label_rules_apply_to_reopened_utterances() -> None:
    bench = Bench(count=1, rows=[by("ann", "u1", "play")])
    desk = bench.desk(again=("u1",))
    desk.toggle("stop")
    assert not desk.save()
    assert desk.view.said == "play and stop are mutually exclusive"
    assert bench.commits == []


def test_agreement_counts_labels_chosen_before_the_proposal_was_seen() -> None:
    bench = Bench(count=1, rows=[by("ann", "u1", "play"), proposed({"u1": "thank"})])
    desk = bench.desk(again=("u1",))
    assert item(desk).proposal == ("thank",)
    desk.toggle("thank")
    desk.save()
    assert bench.ledger.choices("u1")["ann"].intents == ("play", "thank")
    assert bench.ledger.independent_choices("u1")["ann"].intents == ("play",)


def test_unlabelled_utterances_keep_their_proposal_hidden() -> None:
    bench = Bench(count=1, rows=[proposed({"u1": "thank"})])
    desk = bench.desk(again=("u1",))
    assert (item(desk).proposal, item(desk).chosen, item(desk).saved) == (None, (), False)
    assert label(desk, "play") == "u1"
    assert (item(desk).utterance, item(desk).proposal) == ("u1", ("thank",)), "shown when the choice is saved"
    desk.save()
    assert desk.view.phase is AnnotationPhase.FINISHED


@pytest.mark.parametrize("settled", [False, True])
def test_adjudicator_changes_final_labels(settled: bool) -> None:
    rows: list[AnnotationRow] = [imported("u1", "play")]
    if settled:
        rows.append(Adjudicated("earlier", "dan", "u1", ("stop",), ("imported u1",)))
    bench = Bench(count=1, rows=rows)
    desk = bench.desk("cem", adjudicating=True, again=("u1",))
    assert item(desk).chosen == (("stop",) if settled else ("play",))
    desk.toggle(item(desk).chosen[0])
    desk.toggle("thank")
    assert desk.save()
    standing = bench.ledger.status_of("u1", 1)
    assert (standing.state, standing.intents) == (UtteranceState.ADJUDICATED, ("thank",))
    assert desk.undo()
    assert bench.ledger.status_of("u1", 1).intents == (("stop",) if settled else ("play",))


def test_disputed_utterances_return_without_preselected_labels() -> None:
    bench = Bench(count=1, rows=[by("ann", "u1", "play"), by("ben", "u1", "stop")])
    desk = bench.desk("cem", adjudicating=True, again=("u1",))
    assert (item(desk).chosen, item(desk).saved) == ((), False)
    assert len(item(desk).inputs) == 2


def test_annotators_relabel_only_their_own_utterances() -> None:
    bench = Bench(count=2, rows=[by("ann", "u1", "play")])
    assignment = UtteranceAssignment(bench.project, utterances(2))
    allowed = [
        may_label_again(bench.ledger, assignment, name, utterance, adjudicating=settles)
        for name, utterance, settles in [
            ("ann", "u1", False),
            ("ben", "u1", False),
            ("ben", "u2", False),
            ("ben", "u1", True),
            ("ben", "u2", True),
        ]
    ]
    assert allowed == [True, False, True, True, False]


def found(bench: Bench, words: str, annotator: str = "ann", *, settles: bool = False) -> tuple[FoundUtterance, ...]:
    assignment = UtteranceAssignment(bench.project, utterances(bench.count))
    return find(utterances(bench.count), words, bench.ledger, assignment, annotator, adjudicating=settles)


def test_search_matches_part_of_the_text_in_any_case() -> None:
    assert has_words("Grüße aus der Straße", "STRASSE")
    assert has_words("yes please", "s p")
    assert not has_words("yes please", "please yes")


def test_search_finds_own_utterances_in_data_order() -> None:
    rows = [Labelled("a", "ann", "u3", ("play",)), Labelled("b", "ben", "u2", ("stop",))]
    bench = Bench(count=12, rows=[*rows])
    assert [hit.utterance for hit in found(bench, "SAY 0")] == ["u1", "u3", "u4", "u5", "u6", "u7", "u8", "u9"]
    assert [hit.utterance for hit in found(bench, "u1")] == ["u1"], "an id is meant as a whole"
    assert found(bench, "u2") == (), "ben has labelled it"
    assert found(bench, "03") == (FoundUtterance("u3", "say 03", ("play",)),)
    assert found(bench, "u1")[0].intents is None
    assert found(bench, "nothing") == ()


def test_adjudicator_search_finds_every_utterance_with_final_labels() -> None:
    bench = Bench(count=4, rows=[imported("u1", "play"), imported("u2", "stop"), imported("u4", "play")])
    bench.rows += [Labelled("b", "ben", "u4", ("stop",)), Adjudicated("c", "cem", "u2", ("thank",), ("imported u2",))]
    assert {hit.utterance: hit.intents for hit in found(bench, "say", "dan", settles=True)} == {
        "u1": ("play",),
        "u2": ("thank",),
        "u4": None,
    }
