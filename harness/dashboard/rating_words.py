"""What a rater's keys, effects and judgments are called on screen."""

from __future__ import annotations

from harness.base.foreign import plain_text
from harness.model.effect import EffectEvidence
from harness.model.judgment import Judgment, JudgmentStatus, RaterAction
from harness.rating.guide import LABELS, SUB_FLAG_TEXTS, effect_text
from harness.rating.standing import Given

ACTIONS: dict[RaterAction, str] = {
    RaterAction.PLAY: "play",
    RaterAction.PLAY_QUERY: "query",
    RaterAction.PLAY_SLOWER: "slower",
    RaterAction.STOP: "stop",
    RaterAction.TRANSCRIPT: "text",
    RaterAction.UNDO: "undo",
    RaterAction.EARLIER: "earlier",
    RaterAction.LATER: "later",
    RaterAction.FIND: "find",
    RaterAction.SKIP: "skip",
    RaterAction.HOLD: "hold",
    RaterAction.FLAG: "flag",
    RaterAction.COMMENT: "comment",
    RaterAction.CONFIDENCE: "sure",
    RaterAction.SUB_FLAG: "sub-flag",
    RaterAction.AID: "aid",
    RaterAction.GUIDE: "guide",
    RaterAction.RELEASE_HELD: "judge held",
    RaterAction.QUIT: "quit",
}

SURE: dict[int, str] = {1: "unsure", 2: "fairly sure", 3: "sure"}


def effect_words(found: EffectEvidence) -> tuple[str, str]:
    """(what was wanted, what became of it), harmless."""
    return plain_text(found.check.wanted, 200) or "an effect", effect_text(found)


def found_words(found: Given) -> str:
    """An item that may be opened again, in a line; harmless."""
    given = "agreed" if found.row is None else given_words(found.row)
    return f"{plain_text(found.item.query, 120)}: {given}"


def given_words(row: Judgment) -> str:
    """A row of a rater's in a line: category, sub-flags, confidence, comment, path of the aid; harmless."""
    if row.category is None:
        return {
            JudgmentStatus.SKIPPED: "left for the end",
            JudgmentStatus.HELD: "held until it is known what the device did",
            JudgmentStatus.FLAGGED: "put aside",
        }.get(row.status, row.status.value)
    parts = [LABELS[row.category]]
    known = {flag.value: words for flag, words in SUB_FLAG_TEXTS.items()}
    if row.sub_flags:
        parts[0] += f" ({', '.join(known.get(name, plain_text(name, 40)) for name in row.sub_flags)})"
    if row.confidence is not None:
        parts.append(SURE[row.confidence])
    if row.comment:
        parts.append(f"“{plain_text(row.comment, 300)}”")
    if row.aid_path:
        parts.append(f"aid: {plain_text(', '.join(row.aid_path), 300)}")
    return " · ".join(parts)
