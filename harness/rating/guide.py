"""What a rater reads beside an item, in our own words.

Source: Dahl & Doran, Response Assessment for Voice Assistant Test, version of 2020-09-20.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.effect import EffectEvidence, EffectWord
from harness.model.judgment import Category, Flag, SubFlag

GUIDELINE_VERSION = "2020-09-20"

KEYS: tuple[tuple[str, Category], ...] = tuple(zip("1234567890-", Category, strict=True))
"""Key → category; the keys lie in one row of the keyboard."""

LABELS: dict[Category, str] = {
    Category.CORRECT: "Correct",
    Category.PARTIALLY_CORRECT: "Partially correct",
    Category.CLARIFICATION: "Clarification",
    Category.SLOT_REQUEST: "Slot request",
    Category.CORRECT_REJECTION: "Correct rejection",
    Category.INFERRABLE: "Inferrable",
    Category.FINDABLE: "Findable",
    Category.ADMITTED_DEFEAT: "Admitted defeat",
    Category.WRONG: "Wrong",
    Category.MISSED_DISAMBIGUATION_RECOVERABLE: "Missed disamb., recoverable",
    Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE: "Missed disamb., unrecoverable",
}


@dataclass(frozen=True, slots=True)
class GuideExample:
    """A query, what the device said, and, where it matters, what was seen to happen."""

    query: str
    response: str
    seen: str = ""


@dataclass(frozen=True, slots=True)
class GuideText:
    """`short` fits beside key and name, 80 columns wide; `test` is the question to ask oneself when in doubt."""

    short: str
    test: str
    examples: tuple[GuideExample, ...]


GUIDE: dict[Category, GuideText] = {
    Category.CORRECT: GuideText(
        "the whole answer, or the right thing done",
        "Would you need nothing more, and was nothing said beyond it? What was done outweighs how it was worded.",
        (
            GuideExample("How many legs does a spider have?", "A spider has eight legs."),
            GuideExample("Stop the music.", "Music is stopping stopped.", "The music stopped."),
        ),
    ),
    Category.PARTIALLY_CORRECT: GuideText(
        "too little of what was asked, or too much",
        "Is it an answer, yet a part of what was asked is missing, or more was said than asked for?",
        (
            GuideExample("Who wrote Good Omens?", "Terry Pratchett."),
            GuideExample("Which month comes after May?", "The months are January, February, March, April, May, June …"),
        ),
    ),
    Category.CLARIFICATION: GuideText(
        "asks which meaning was intended",
        "Could the query be taken in several ways, and does it ask which of them?",
        (GuideExample("How long is Dune?", "The book or the film?"),),
    ),
    Category.SLOT_REQUEST: GuideText(
        "asks for a detail that it needs",
        "Is the query clear but lacks a detail, and does it ask for just that?",
        (GuideExample("Wake me tomorrow.", "At what time?"),),
    ),
    Category.CORRECT_REJECTION: GuideText(
        "declines what nobody in its place could know",
        "Is there no way that it could know or do this, and does it say so?",
        (GuideExample("Did I lock the car?", "I can't tell whether your car is locked."),),
    ),
    Category.INFERRABLE: GuideText(
        "unsaid, but one step of thought gives it",
        "Does the answer follow at once from what was said, without looking anything up?",
        (GuideExample("Is tomorrow a workday?", "Tomorrow is Sunday."),),
    ),
    Category.FINDABLE: GuideText(
        "several things, the answer among them",
        "Would you have to pick or open something to get the answer?",
        (GuideExample("How do I prune a rose?", "Here are five pages on roses that I found."),),
    ),
    Category.ADMITTED_DEFEAT: GuideText(
        "says it cannot, though one could expect it",
        "Does it own up to failing at something that such a device could do or know?",
        (GuideExample("What is seven times eight?", "Sorry, I don't know that one."),),
    ),
    Category.WRONG: GuideText(
        "beside the point, or not done as asked",
        "Does it answer something else, amuse instead of answering, or say that it did what it did not do?",
        (
            GuideExample("How warm is it in here?", "Warm enough to melt my circuits!"),
            GuideExample("Turn off the fan.", "Okay, the fan is off.", "The fan went on turning."),
        ),
    ),
    Category.MISSED_DISAMBIGUATION_RECOVERABLE: GuideText(
        "asked nothing; one can tell what it took",
        "It chose a meaning by itself. Does the answer let you notice which one?",
        (GuideExample("How far is Birmingham?", "Birmingham, Alabama, is four hundred miles away."),),
    ),
    Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE: GuideText(
        "asked nothing; one cannot tell what it took",
        "It chose a meaning by itself. Would a user be unable to tell which one?",
        (GuideExample("How far is Birmingham?", "It is four hundred miles away."),),
    ),
}

RULES: tuple[str, ...] = (
    "Judge the first response only, even if the dialogue ended well or badly later.",
    "Judge the literal answer, not what a polite person might say instead.",
    "For actions, the effect decides: right effect and odd words is correct; fine words and no effect is wrong.",
    "A fact missing from its world (a new shop, say) is not an error of understanding: set the fact aside.",
    "A witty reply that does not answer is wrong.",
    "Too much is not correct either: more than was asked for is partially correct.",
    "A basic ability that is missing is wrong; where the device says so itself, it is an admitted defeat.",
    "Misheard, cut or spoilt sound is no category: put the response aside.",
    "The written text may be off. What you hear counts.",
)

SUB_FLAG_TEXTS: dict[SubFlag, str] = {
    SubFlag.TOO_LITTLE: "too little",
    SubFlag.TOO_MUCH: "too much",
    SubFlag.RECOVERABLE: "the user would notice",
    SubFlag.UNRECOVERABLE: "the user would not notice",
    SubFlag.WORLD_KNOWLEDGE_GAP: "a fact is wrong or missing",
    SubFlag.CORE_CAPABILITY_MISSING: "a basic ability is missing",
}
"""What may be noted beside a category."""

FLAG_TEXTS: dict[Flag, str] = {
    Flag.AUDIO_BAD: "the sound is bad",
    Flag.RECOGNITION_DOUBTED: "the query may not have been recognised",
    Flag.CUT_RESPONSE: "the response is cut or not the first",
    Flag.PRIVACY: "it tells something private",
}
"""Why a response is put aside."""

_EFFECTS = {
    EffectWord.RIGHT: "it was done",
    EffectWord.PARTIAL: "it was done in part",
    EffectWord.WRONG: "it was not done, or something else was",
    EffectWord.UNKNOWN: "it cannot be told",
}


def effect_text(found: EffectEvidence) -> str:
    """What became of a wanted effect, in the same words whoever saw it."""
    return "not known yet" if found.is_open else _EFFECTS[found.word]
