"""No shown text says whose response it is."""

from __future__ import annotations

from dataclasses import replace

from harness.rating.blinding import blinded
from tests.unit.rating.sittings import SEEN, item


def shown(
    note: str, said: str = "", devices: tuple[str, ...] = ("kitchen", "kitchen-2", "Echo. Dot")
) -> tuple[str, str]:
    before = replace(item(1), note=note, said="kitchen here", effect=replace(SEEN, said=said))
    after = blinded(before, devices, ("ann", "bo.b"))
    assert after.effect is not None
    assert (after.query, after.said, after.effect.check) == (before.query, "kitchen here", SEEN.check)
    return after.note, after.effect.said


def test_names_of_devices_are_replaced_in_notes_and_evidence() -> None:
    assert shown("KITCHEN-2 mumbles; the kitchen does not", "told kitchen: “on”") == (
        "the device mumbles; the device does not",
        "told the device: “on”",
    )


def test_names_are_whole_words_and_no_patterns() -> None:
    assert shown("kitchens, Echoes Dot, echo. dot!") == ("kitchens, Echoes Dot, the device!", "")


def test_who_looked_is_somebody() -> None:
    assert shown("", "bo.b looked: wrong; ann could not tell; annual") == (
        "",
        "somebody looked: wrong; somebody could not tell; annual",
    )


def test_without_names_nothing_changes() -> None:
    plain = replace(item(1), note="as it was")
    assert blinded(plain, ("",), ()) == plain
