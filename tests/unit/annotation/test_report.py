"""What became of proposals, counted from rows."""

from __future__ import annotations

from harness.annotation.report import annotation_report
from harness.model.annotation import Accepted, AnnotationRow, Labelled, LabelProposal, Proposed, Withdrawn
from harness.model.understanding import Utterance


def test_what_was_accepted_and_labelled_otherwise_later_was_a_wrong_proposal() -> None:
    utterances = [Utterance(id_) for id_ in ("u1", "u2", "u3")]
    rows: list[AnnotationRow] = [
        Proposed("b", "test", tuple(LabelProposal(one.id, ("play",)) for one in utterances)),
        Accepted("a", "ann", "b", "page", ("play",), ("u1", "u2", "u3")),
        Labelled("l1", "ann", "u1", ("stop",)),
        Labelled("l2", "ben", "u2", ("stop",)),
        Labelled("l3", "ann", "u3", ("play",)),
    ]
    final = {"u1": ("stop",)}
    report = annotation_report(utterances, rows, final)
    assert (report.accepted, report.overridden, report.unreviewed) == (2, 1, 0)
    assert (report.struck_share.count, report.struck_share.total) == (1, 3)
    back = annotation_report(utterances, [*rows, Withdrawn("w", "ann", ("l1",))], final)
    assert (back.accepted, back.overridden) == (3, 0)
