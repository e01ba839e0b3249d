"""The lines that a file's outcome makes, where the log's own tests do not ask."""

from __future__ import annotations

from harness.model.offline import Counting, ListKind
from harness.offline.figures.counts import judged
from harness.offline.reports.log import happenings
from harness.wake.reports.wake_log import line_of
from tests.unit.offline.figures.outcomes import outcome, said


def test_a_reference_of_punctuation_alone_names_no_command_and_the_line_says_so() -> None:
    found = outcome(ListKind.REFERENCED, said=said("a b"), reference=".")
    counting = Counting(normalise=True)
    lines = [line_of(one) for one in happenings(found, judged(found, counting), "f")]
    assert lines == ['REJECT "f" unreadable reference x-detail="it has no words"']
