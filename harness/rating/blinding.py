"""Shown texts without the names of devices and people, which notes and evidence of effects may hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from harness.rating.items import Item

DEVICE, PERSON = "the device", "somebody"


def blinded(item: Item, devices: Iterable[str], people: Iterable[str]) -> Item:
    """The item with `the device` in place of every name of a device in its note and in the evidence of its effect.

    devices: ids and names of all devices of the session, since another one's name tells whose response it is not.
    people: who looked what the device did. Names count as whole words, in capitals or not. What was said to the device
    and by it stays as it was: that is what is judged. Nor is what was wanted changed: it is the same for all devices.
    """
    of_devices, of_people = _pattern(tuple(sorted(set(devices)))), _pattern(tuple(sorted(set(people))))

    def plain(text: str) -> str:
        if of_devices is not None:
            text = of_devices.sub(DEVICE, text)
        return text if of_people is None else of_people.sub(PERSON, text)

    effect = item.effect
    return replace(item, note=plain(item.note), effect=effect and replace(effect, said=plain(effect.said)))


@lru_cache(maxsize=64)
def _pattern(names: Sequence[str]) -> re.Pattern[str] | None:
    """Any of the names as a whole word with an article before it, the longest first; None of no names."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    if not longest:
        return None
    return re.compile(rf"(?<!\w)(?:the\s+)?(?:{'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE)
