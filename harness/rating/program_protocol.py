"""The protocol of programs that rate (docs/reference/rating-programs.md): the lines, without a process."""

from __future__ import annotations

import json

from harness.base.plain_json import plain
from harness.base.program_lines import ProtocolFault, demand_protocol, name_of, number_of, object_of, short
from harness.base.written import LONGEST_WRITTEN, written
from harness.model.errors import InputError, did_you_mean
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.rating.desk import SittingView
from harness.rating.guide import GUIDE, GUIDELINE_VERSION, LABELS, RULES

PROTOCOL = 1


@frozen
class ProgramAnswer:
    """A program's judgment. confidence: 0 to 1."""

    category: Category
    confidence: float
    reason: str


class Declined(ValueError):
    """The program answered that it cannot judge this item, and why."""


def item_line(view: SittingView, clip: str) -> bytes:
    """The line for the current item of a sitting: only what a person in that sitting may see.

    Times are rounded to 0.1 s, as on the screens. clip: path of a mono WAV file (16 kHz, 16 bits).
    """
    item = view.item
    assert item is not None
    found = item.effect
    evidence = {
        "attempts": item.attempts,
        "waits_s": [one if one is None else round(one, 1) for one in item.waits_s],
        "recognised": item.recognition,
        "length_s": None if item.length is None else round(item.length.value_s, 1),
        "latency_s": None if item.latency is None else round(item.latency.value_s, 1),
        "truncated": item.truncated,
        "effect_wanted": "" if found is None else found.check.wanted,
        "effect": None if found is None or found.is_open else found.word,
        "note": item.note,
        "core_capability": item.core_capability,
    }
    categories = [{"name": one, "label": LABELS[one], **plain(text)} for one, text in GUIDE.items()]
    sent = {
        "protocol": PROTOCOL,
        "item": item.id,
        "query": item.query,
        "transcript": item.transcript if view.draft.transcript_shown else None,
        "evidence": evidence,
        "clip": clip,
        "guide": {"version": GUIDELINE_VERSION, "categories": categories, "rules": RULES},
    }
    return json.dumps(plain(sent), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def rater_of(text: str) -> str:
    """The name of the rater that the program is, from its first line; ProtocolFault."""
    said = object_of(text)
    demand_protocol(said, text, PROTOCOL)
    rater = f"{name_of(said, 'name').strip()} {name_of(said, 'version').strip()}"
    if len(rater) > LONGEST_RATER or not rater.isprintable():
        raise ProtocolFault(f"sent a hello whose name and version exceed {LONGEST_RATER} printable characters")
    return rater


LONGEST_RATER = 64


def answer_of(text: str) -> ProgramAnswer:
    """The answer to an item; ProtocolFault, Declined."""
    said = object_of(text)
    if "error" in said:
        raise Declined(str(said["error"])[:LONGEST_WRITTEN])
    word = said.get("category")
    names = [one.value for one in Category]
    if not isinstance(word, str) or word not in names:
        hint = did_you_mean(word, names) if isinstance(word, str) else ""
        raise ProtocolFault(f"sent no category of the guide: {short(json.dumps(word))}. {hint}".rstrip(". "))
    reason = said.get("reason")
    if not isinstance(reason, str):
        raise ProtocolFault("sent a reason that is not a text")
    try:
        reason = written(reason, "the reason")
    except InputError as error:
        raise ProtocolFault(f"sent a reason that cannot be kept: {error.what}") from error
    return ProgramAnswer(Category(word), number_of(said, "confidence", 0, 1), reason)
