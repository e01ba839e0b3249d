"""The columns of a file of judgments, and what stands in them."""

from __future__ import annotations

from enum import StrEnum


class Content(StrEnum):
    """What a column holds. LIST: texts; in CSV with ; between them, or as a JSON list where one holds a ;."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    YES_NO = "true or false"
    LIST = "list"


COLUMNS: dict[str, Content] = {
    "session": Content.TEXT,
    "trial": Content.TEXT,
    "take": Content.WHOLE,
    "attempt": Content.WHOLE,
    "clip_sha256": Content.TEXT,
    "item_id": Content.TEXT,
    "id": Content.TEXT,
    "replaces": Content.TEXT,
    "rater": Content.TEXT,
    "status": Content.TEXT,
    "category": Content.TEXT,
    "sub_flags": Content.LIST,
    "flags": Content.LIST,
    "confidence": Content.WHOLE,
    "comment": Content.TEXT,
    "effect_claimed": Content.YES_NO,
    "effect": Content.TEXT,
    "aid_path": Content.LIST,
    "plays": Content.WHOLE,
    "heard_ms": Content.WHOLE,
    "time_to_answer_s": Content.NUMBER,
    "transcript_shown": Content.YES_NO,
    "round": Content.TEXT,
    "position": Content.WHOLE,
    "span_start_s": Content.NUMBER,
    "span_end_s": Content.NUMBER,
    "shown_wall_s": Content.NUMBER,
    "given_wall_s": Content.NUMBER,
    "adjudicates": Content.LIST,
    "guideline_version": Content.TEXT,
    "tool_version": Content.TEXT,
    "imported_from": Content.TEXT,
    "proposed": Content.TEXT,
    "proposed_probability": Content.NUMBER,
    "proposal_shown": Content.TEXT,
    "unaided": Content.TEXT,
}
"""What a judgment is: read and written."""

CONTEXT: dict[str, Content] = {
    "in_force": Content.YES_NO,
    "final": Content.TEXT,
    "final_by": Content.TEXT,
    "device": Content.TEXT,
    "query": Content.TEXT,
    "query_class": Content.TEXT,
    "reference": Content.TEXT,
    "outcome": Content.TEXT,
    "response": Content.TEXT,
}
"""What is known of its response: written, and not read back."""

CONDITION = "condition."
"""What a column of a condition is called before the name of its axis; of the context, too."""

TELLING = ("trial", "device")
"""Columns that a blind file goes without, besides conditions: they say whose response it is."""
