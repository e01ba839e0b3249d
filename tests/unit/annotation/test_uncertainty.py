"""Labelling by hand in the order of a classifier's doubts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import Ledger
from harness.annotation.queue import Queues
from harness.annotation.uncertainty import Guess, estimated_error, guess_labels
from harness.annotation.worklist import Worklist
from harness.model.annotation import AnnotationProject, AnnotationRow, Label, Labelled, LabellingOrder, LabelSet
from harness.model.understanding import Utterance

LABELS = LabelSet("t", "T", (Label("play"), Label("stop")))
TEXTS = ["play jazz", "play a song", "play rock", "stop it", "stop now", "stop that", "blue sky", "play stop"]
UTTERANCES = tuple(Utterance(f"u{number}", tuple(text.split())) for number, text in enumerate(TEXTS))


def labelled(number: int, annotator: str = "ann") -> Labelled:
    return Labelled(f"{annotator}{number}", annotator, f"u{number}", (TEXTS[number].split()[0],))


def asked(rows: Sequence[AnnotationRow], annotator: str = "ann", **project: object) -> tuple[str, ...]:
    annotation = AnnotationProject("p", len(TEXTS), order=LabellingOrder.DOUBT, batch=2, **project)  # type: ignore[arg-type]
    return Queues(annotation, LABELS, UTTERANCES).queue_of(annotator, Ledger(LABELS, rows)).by_hand


def test_the_most_doubtful_utterances_come_first_after_each_batch() -> None:
    rows = [labelled(0), labelled(3), labelled(1), labelled(4)]
    order = asked(rows)
    assert set(order[:2]) == {"u6", "u7"}  # words of both, and of neither
    assert set(order) == {"u2", "u5", "u6", "u7"}
    # Within a batch nothing is learnt, so that the order stays.
    assert [id_ for id_ in asked([*rows, labelled(2)]) if id_ != "u2"] == [id_ for id_ in order if id_ != "u2"]


def test_the_order_is_drawn_until_a_batch_with_two_label_sets_is_labelled() -> None:
    random_order = AnnotationProject("p", len(TEXTS))
    drawn = Queues(random_order, LABELS, UTTERANCES).queue_of("ann", Ledger(LABELS, [])).by_hand
    assert asked([]) == drawn
    assert asked([labelled(0)]) == tuple(id_ for id_ in drawn if id_ != "u0")
    assert asked([labelled(0), labelled(1)]) == tuple(id_ for id_ in drawn if id_ not in ("u0", "u1"))


def test_the_order_of_one_annotator_does_not_depend_on_another() -> None:
    own_rows = [labelled(0), labelled(3)]
    options = {"per_utterance": 2, "double_share": 1.0}
    assert asked([*own_rows, labelled(1, "ben"), labelled(6, "ben")], **options) == asked(own_rows, **options)


def test_skipped_utterances_stay_last_and_undo_returns_to_them() -> None:
    rows: list[AnnotationRow] = [labelled(0), labelled(3)]
    queues = Queues(AnnotationProject("p", 8, order=LabellingOrder.DOUBT, batch=2), LABELS, UTTERANCES)
    ledger = Ledger(LABELS, rows)
    before = queues.queue_of("ann", ledger).by_hand
    ledger.add_all([labelled(1), labelled(4)])
    queues.queue_of("ann", ledger)
    assert queues.queue_of("ann", Ledger(LABELS, rows)).by_hand == before


def test_guesses_are_reproducible_and_no_guesses_have_no_error() -> None:
    learned = [(UTTERANCES[number], labelled(number).intents) for number in (0, 1, 3, 4)]
    answers = guess_labels(learned, UTTERANCES[5:], LABELS, 1)
    assert answers == guess_labels(learned, UTTERANCES[5:], LABELS, 1)
    assert answers["u5"].intents == ("stop",)
    assert guess_labels(learned[:2], UTTERANCES[5:], LABELS, 1) == guess_labels(learned, [], LABELS, 1) == {}
    assert estimated_error({}) is None
    assert estimated_error({"a": Guess((), 0.75), "b": Guess((), 1.0)}) == pytest.approx(0.125)


@pytest.mark.parametrize(("target", "words"), [(0.9, ": the target is reached"), (0.01, ", target 1.0 %")])
def test_the_annotator_sees_the_estimated_error_after_a_batch(target: float, words: str) -> None:
    project = AnnotationProject("p", len(TEXTS), order=LabellingOrder.DOUBT, batch=2, target_error=target)
    estimates = []
    for rows in ([labelled(0)], [labelled(0), labelled(3)]):
        estimates.append(AnnotationDesk(Worklist("ann", project, LABELS, UTTERANCES, rows, list)).view.estimate)
    assert estimates[0] == ""
    assert re.fullmatch(
        rf"estimated label error in the remaining utterances: \d+\.\d %{re.escape(words)}", estimates[1]
    )
