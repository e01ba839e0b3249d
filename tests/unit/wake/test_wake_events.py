"""Every unmatched event is accounted for, in one group."""

from __future__ import annotations

from itertools import product

from harness.model.record import ReviewWord
from harness.model.time import Stamp
from harness.wake.wake_device import UnmatchedEvents
from harness.wake.wake_progress import WakeEvent


def test_the_groups_add_up_to_all_events() -> None:
    events = UnmatchedEvents()
    cases = list(product((False, True), (False, True), (None, ReviewWord.SELF_WAKE), (False, True)))
    for seq, (in_vocabulary, exposed, rule, pending) in enumerate(cases):
        at = Stamp(float(seq))
        events.put(
            WakeEvent(seq, "d", at, 0.0, "a", None, None, in_vocabulary=in_vocabulary, exposed=exposed, rule=rule),
            pending,
        )
    found = events.counts("d")
    by_rule = 1  # exposed, in ambient sound, and its own voice
    groups = (found.before, by_rule, found.in_vocabulary, found.outside, found.uncounted, found.pending)
    assert groups == (1, 1, 2, 2, 2, 8)
    assert sum(found.words.values()) == sum(groups)
    for seq in range(len(cases)):
        events.drop(seq)
    assert (found.uncounted, found.pending, found.outside, found.in_vocabulary) == (0, 0, 0, 0)
