"""What a rater reads beside an item, in our own words.

Source: Dahl & Doran, Response Assessment for Voice Assistant Test, version of 2020-09-20.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.judgment import Category


@dataclass(frozen=True, slots=True)
class GuideText:
    """`short` fits on a line beside the key; `test` is the question to ask oneself when in doubt."""

    short: str
    test: str


GUIDE: dict[Category, GuideText] = {
    Category.CORRECT: GuideText(
        "true and whole, or the right thing done",
        "Would you need nothing more, and was nothing superfluous said? What was done outweighs how it was worded.",
    ),
    Category.PARTIALLY_CORRECT: GuideText(
        "true, but too little or too much",
        "Is all of it true, yet part of what was asked is missing, or more was said than asked for?",
    ),
    Category.CLARIFICATION: GuideText(
        "asks which meaning was intended",
        "Could the question be taken in several ways, and does it ask which of them?",
    ),
    Category.SLOT_REQUEST: GuideText(
        "asks for a detail that it needs",
        "Is the request clear but lacks a detail, and does it ask for just that?",
    ),
    Category.CORRECT_REJECTION: GuideText(
        "declines what nobody in its place could know",
        "Is there no way that it could know, and does it say so?",
    ),
    Category.INFERRABLE: GuideText(
        "unsaid, but one step of thought gives it",
        "Does the answer follow at once from what was said, without looking anything up?",
    ),
    Category.FINDABLE: GuideText(
        "several things, the answer among them",
        "Would you have to pick or open something to get the answer?",
    ),
    Category.ADMITTED_DEFEAT: GuideText(
        "says it cannot, though one could expect it",
        "Does it own up to failing at something that such a device could do or know?",
    ),
    Category.WRONG: GuideText(
        "untrue, beside the point, or not done",
        "Does it answer something else, amuse instead of answering, or say that it did what it did not do?",
    ),
    Category.MISSED_DISAMBIGUATION_RECOVERABLE: GuideText(
        "asked nothing; one can tell what it took",
        "It chose a meaning by itself. Does the answer let you notice which one?",
    ),
    Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE: GuideText(
        "asked nothing; one cannot tell what it took",
        "It chose a meaning by itself. Would a user be unable to tell which one?",
    ),
}

RULES: tuple[str, ...] = (
    "Judge the first response only, even if the dialogue ended well or badly later.",
    "Judge the literal answer, not what a polite person might say instead.",
    "For actions, the effect decides: right effect and odd words is correct; fine words and no effect is wrong.",
    "A fact missing from its world (a new shop, say) is not an error of understanding: set the fact aside.",
    "A witty reply that does not answer is wrong.",
    "The written text is made by our own recogniser and may be off. What you hear counts.",
)
