"""No shown text says whose response it is."""

from __future__ import annotations

from dataclasses import replace

from harness.rating.rating_items import blinded
from tests.unit.rating.sittings import item

DEVICES = ("kitchen", "kitchen-2", "Echo. Dot")


def shown(note: str) -> str:
    before = replace(item(1), note=note, transcript="kitchen here")
    after = blinded(before, DEVICES)
    assert (after.query, after.transcript) == (before.query, "kitchen here")
    return after.note


def test_names_of_devices_are_replaced_in_notes() -> None:
    assert shown("KITCHEN-2 mumbles; the kitchen does not") == "the device mumbles; the device does not"


def test_names_are_whole_words_and_no_patterns() -> None:
    assert shown("kitchens, Echoes Dot, echo. dot!") == "kitchens, Echoes Dot, the device!"


def test_without_names_nothing_changes() -> None:
    plain = replace(item(1), note="as it was")
    assert blinded(plain, ("",)) == plain
