"""The protocol of programs that rate (docs/reference/rating-programs.md): the lines, without a process."""

from __future__ import annotations

import json

from harness.base.plain_json import to_plain
from harness.base.program_lines import ProtocolFault, demand_name, demand_number, demand_protocol, parse_object, short
from harness.base.user_text import MAX_TEXT_CHARS, checked_text
from harness.model.errors import InputError, did_you_mean
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.rating.guide import GUIDE, GUIDELINE_VERSION, LABELS, RULES
from harness.rating.view import SittingView, visible_latency_s

PROTOCOL = 1


@frozen
class ProgramAnswer:
    """A program's judgment. confidence: 0 to 1."""

    category: Category
    confidence: float
    reason: str


class RatingDeclined(ValueError):
    """The program answered that it cannot judge this item. The message has its reason."""


def item_line(view: SittingView, clip: str) -> bytes:
    """The line for the current item of a sitting: only what a person in that sitting may see.

    Times are rounded to 0.1 s, as on the screens. clip: path of a mono WAV file (16 kHz, 16 bits).
    """
    item = view.item
    assert item is not None
    effect = item.effect
    evidence = {
        "attempts": item.attempts,
        "waits_s": [wait_s if wait_s is None else round(wait_s, 1) for wait_s in item.waits_s],
        "recognised": item.recognition,
        "length_s": None if item.length is None else round(item.length.value_s, 1),
        "latency_s": visible_latency_s(item),
        "truncated": item.truncated,
        "effect_wanted": "" if effect is None else effect.check.wanted,
        "effect": None if effect is None or effect.is_open else effect.word,
        "note": item.note,
        "core_capability": item.core_capability,
    }
    categories = [{"name": category, "label": LABELS[category], **to_plain(text)} for category, text in GUIDE.items()]
    message = {
        "protocol": PROTOCOL,
        "item": item.id,
        "query": item.query,
        "transcript": item.transcript if view.draft.transcript_shown else None,
        "evidence": evidence,
        "clip": clip,
        "guide": {"version": GUIDELINE_VERSION, "categories": categories, "rules": RULES},
    }
    return json.dumps(to_plain(message), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


MAX_RATER_CHARS = 64


def parse_hello(text: str) -> str:
    """The name under which the program rates, from its first line. Raises ProtocolFault if that is not valid."""
    hello = parse_object(text)
    demand_protocol(hello, text, PROTOCOL)
    rater = f"{demand_name(hello, 'name').strip()} {demand_name(hello, 'version').strip()}"
    if len(rater) > MAX_RATER_CHARS or not rater.isprintable():
        raise ProtocolFault(f"sent a hello whose name and version exceed {MAX_RATER_CHARS} printable characters")
    return rater


def parse_answer(text: str) -> ProgramAnswer:
    """The answer to an item. Raises RatingDeclined if the program declines, and ProtocolFault if it is not valid."""
    answer = parse_object(text)
    if answer.get("error") is not None:
        raise RatingDeclined(str(answer["error"])[:MAX_TEXT_CHARS])
    name = answer.get("category")
    known_names = [category.value for category in Category]
    if not isinstance(name, str) or name not in known_names:
        hint = did_you_mean(name, known_names) if isinstance(name, str) else ""
        raise ProtocolFault(
            f"sent a category that the guide does not have: {short(json.dumps(name))}. {hint}".rstrip(". ")
        )
    reason = answer.get("reason")
    if not isinstance(reason, str):
        raise ProtocolFault("sent a reason that is not text")
    try:
        reason = checked_text(reason, "the reason")
    except InputError as error:
        raise ProtocolFault(f"sent a reason that cannot be stored: {error.what}") from error
    return ProgramAnswer(Category(name), demand_number(answer, "confidence", 0, 1), reason)
