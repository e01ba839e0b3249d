"""Items without what would tell raters whose response they judge: names in texts, and where evidence comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from harness.model.effect import EffectCheck, EffectEvidence, EffectSource
from harness.rating.items import Item

DEVICE = "the device"


def blinded(item: Item, devices: Iterable[str]) -> Item:
    """The item with `the device` in place of every name of a device in its note, and with neutral evidence.

    devices: ids and names of all devices of the session, since another one's name tells whose response it is not.
    Names count as whole words, in capitals or not. What was said to the device and by it stays as it was: that is
    what is judged. Of an effect stays what was wanted, and what became of it: one device tells of its state in its own
    words, at another one somebody looks.
    """
    of_devices = _pattern(tuple(sorted(set(devices))))
    note = item.note if of_devices is None else of_devices.sub(DEVICE, item.note)
    return replace(item, note=note, effect=item.effect and _neutral(item.effect))


def _neutral(found: EffectEvidence) -> EffectEvidence:
    source = EffectSource.NONE if found.is_open else EffectSource.OPERATOR
    return EffectEvidence(EffectCheck(found.check.wanted), found.word, source)


@lru_cache(maxsize=64)
def _pattern(names: Sequence[str]) -> re.Pattern[str] | None:
    """Any of the names as a whole word with an article before it, the longest first; None of no names."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    if not longest:
        return None
    return re.compile(rf"(?<!\w)(?:the\s+)?(?:{'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE)
