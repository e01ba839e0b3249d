"""The decision aid's questions: a graph of plain data that leads every first response to one ending.

Source: Dahl & Doran, Response Assessment for Voice Assistant Test (2020-09-20), in our own words; spec of ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.judgment import SUB_FLAGS_OF, Category, Flag, JudgmentStatus, SubFlag


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a path ends: in a category, or aside: for the reason in `flag`, or, without one, held for the effect."""

    category: Category | None = None
    sub_flags: tuple[SubFlag, ...] = ()
    flag: Flag | None = None

    def __post_init__(self) -> None:
        if self.category is not None and self.flag is not None:
            raise ValueError("an ending is a category or a reason to put the item aside, not both")
        if not set(self.sub_flags) <= set(self._allowed):
            raise ValueError(f"{self.category} does not carry the sub-flags {self.sub_flags}")

    @property
    def status(self) -> JudgmentStatus:
        """Of the judgment that comes of it."""
        if self.category is not None:
            return JudgmentStatus.SUBMITTED
        return JudgmentStatus.HELD if self.flag is None else JudgmentStatus.FLAGGED

    @property
    def _allowed(self) -> tuple[SubFlag, ...]:
        return () if self.category is None else SUB_FLAGS_OF.get(self.category, ())

    def noting(self, sub_flags: tuple[SubFlag, ...]) -> Ending:
        """With what was noted on the way, as far as the category carries it."""
        noted = (*self.sub_flags, *(one for one in sub_flags if one in self._allowed))
        return Ending(self.category, tuple(dict.fromkeys(noted)), self.flag)


@dataclass(frozen=True, slots=True)
class Answer:
    """key: one character. leads: id of the next question, or where the path ends. notes: sub-flags for the ending.

    leads_if_core: where it leads instead when the scenario marks the query as a core capability.
    """

    id: str
    key: str
    text: str
    leads: str | Ending
    leads_if_core: str | Ending | None = None
    notes: tuple[SubFlag, ...] = ()

    def to(self, *, core_capability: bool) -> str | Ending:
        """Where it leads for such a query."""
        if core_capability and self.leads_if_core is not None:
            return self.leads_if_core
        return self.leads


@dataclass(frozen=True, slots=True)
class Question:
    """topic: what it is about, in a word or three, for summaries."""

    id: str
    topic: str
    text: str
    answers: tuple[Answer, ...]

    def answer(self, answer_id: str) -> Answer | None:
        return next((one for one in self.answers if one.id == answer_id), None)

    def answer_of(self, key: str) -> Answer | None:
        """The answer that a key stands for; None for any other key."""
        return next((one for one in self.answers if one.key == key), None)


def _ends(category: Category, *sub_flags: SubFlag) -> Ending:
    return Ending(category, sub_flags)


# Keys are letters, so that a digit, which labels, is never pressed for an answer.
QUESTIONS: tuple[Question, ...] = (
    Question(
        "recognised",
        "query heard",
        "Did the device hear the query in the right words, as far as you can tell?",
        (
            Answer("yes", "a", "Yes, or nothing speaks against it", "whole"),
            Answer("no", "b", "No, it heard other words", Ending(flag=Flag.RECOGNITION_DOUBTED)),
        ),
    ),
    Question(
        "whole",
        "first response, whole",
        "Is this the first response to the query, whole and clear enough to judge?",
        (
            Answer("yes", "a", "Yes", "asks_back"),
            Answer("cut", "b", "No, a part is missing, or it is not the first", Ending(flag=Flag.CUT_RESPONSE)),
            Answer("unclear", "c", "No, the sound is too bad", Ending(flag=Flag.AUDIO_BAD)),
        ),
    ),
    Question(
        "asks_back",
        "a question back",
        "Does it ask the user something first, before it answers or acts?",
        (
            Answer("no", "a", "No; an offer of more, or “please say that again”, does not count", "cannot"),
            Answer("detail", "b", "Yes, for a detail that the query left out", _ends(Category.SLOT_REQUEST)),
            Answer(
                "meaning",
                "c",
                "Yes, which meaning was intended, or whether it understood it right",
                _ends(Category.CLARIFICATION),
            ),
            Answer("needless", "d", "Yes, but for what was said already, or beside the point", "noticed", "lacking"),
        ),
    ),
    Question(
        "cannot",
        "cannot, does not know",
        "Does it only say that it cannot, does not know, or did not understand?",
        (
            Answer("no", "a", "No, or it answers or acts all the same", "which"),
            Answer(
                "nobody", "b", "Yes, and nobody in its place could know or do it", _ends(Category.CORRECT_REJECTION)
            ),
            Answer(
                "could",
                "c",
                "Yes, though such a device could be expected to know or do it",
                _ends(Category.ADMITTED_DEFEAT),
                _ends(Category.ADMITTED_DEFEAT, SubFlag.CORE_CAPABILITY_MISSING),
            ),
        ),
    ),
    Question(
        "which",
        "should have asked",
        "Does the query fit several things, so that the device should have asked which?",
        (
            Answer("clear", "a", "No, what was meant is clear enough, or it took none of them", "effect"),
            Answer(
                "told",
                "b",
                "Yes, and the response lets the user hear which one it took",
                _ends(Category.MISSED_DISAMBIGUATION_RECOVERABLE),
            ),
            Answer(
                "untold",
                "c",
                "Yes, and nothing in the response tells which one it took",
                _ends(Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE),
            ),
        ),
    ),
    Question(
        "effect",
        "what was done",
        "Was something to be done? If so, was it really done, whatever the device said?",
        (
            Answer("none", "a", "No, the user only wanted to hear something", "answers"),
            Answer("right", "b", "Yes, and just that was done", _ends(Category.CORRECT)),
            Answer("part", "c", "Yes, but only a part of it was done, or more than was asked", "amount"),
            Answer("wrong", "d", "Yes, but something else was done, or nothing", "noticed", "lacking"),
            Answer("not_yet", "e", "Yes, but it is not known yet; one can still find out", Ending()),
            Answer("unknown", "f", "Yes, but nobody can find out any more", "claim"),
        ),
    ),
    Question(
        "answers",
        "answers what was asked",
        "Leave aside whether its facts are right. Does it answer what was asked?",
        (
            Answer("yes", "a", "Yes", "form"),
            Answer(
                "gap",
                "b",
                "Yes, but I know that a fact is wrong or missing",
                "form",
                notes=(SubFlag.WORLD_KNOWLEDGE_GAP,),
            ),
            Answer("other", "c", "No, it speaks of another thing, place or time", "noticed", "lacking"),
            Answer("amuses", "d", "No, it is a joke, a quote, a kind word or a dodge", "noticed", "lacking"),
        ),
    ),
    Question(
        "form",
        "form of the answer",
        "How does the response give the answer?",
        (
            Answer("complete", "a", "In full, and nothing beyond it", _ends(Category.CORRECT)),
            Answer(
                "little",
                "b",
                "Only a part of it",
                _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_LITTLE),
            ),
            Answer("much", "c", "With more than was asked for", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_MUCH)),
            Answer(
                "inferred",
                "d",
                "Not outright, but the user can easily work it out from what it says",
                _ends(Category.INFERRABLE),
            ),
            Answer(
                "several",
                "e",
                "Among several things, of which the user must find the right one",
                _ends(Category.FINDABLE),
            ),
            Answer("none", "f", "Not at all, when one looks closely", _ends(Category.WRONG)),
        ),
    ),
    Question(
        "claim",
        "what it says it did",
        "Only its words are left to go by. What does it say that it did?",
        (
            Answer("all", "a", "Just what was asked, even if only by “OK”", _ends(Category.CORRECT)),
            Answer("part", "b", "A part of it, or more than was asked", "amount"),
            Answer("other", "c", "Something else, or nothing that one can make out", "noticed", "lacking"),
        ),
    ),
    Question(
        "amount",
        "less or more",
        "Was it less than was asked, or more?",
        (
            Answer("less", "a", "Less", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_LITTLE)),
            Answer("more", "b", "More", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_MUCH)),
            Answer(
                "both",
                "c",
                "Both: one thing is missing, another was not asked for",
                _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_LITTLE, SubFlag.TOO_MUCH),
            ),
        ),
    ),
    Question(
        "noticed",
        "would one notice",
        "So it is wrong. Would the user notice?",
        (
            Answer("shows", "a", "Yes, one can tell from the response", _ends(Category.WRONG, SubFlag.RECOVERABLE)),
            Answer("hidden", "b", "No, it sounds right", _ends(Category.WRONG, SubFlag.UNRECOVERABLE)),
            Answer("unsure", "c", "I cannot say", _ends(Category.WRONG)),
        ),
    ),
    Question(
        "lacking",
        "lacks it, or would one notice",
        "So it is wrong, and this is a basic task for such a device. Which fits best?",
        (
            Answer(
                "lacks",
                "a",
                "It seems unable to do this at all, and does not say so",
                _ends(Category.WRONG, SubFlag.CORE_CAPABILITY_MISSING),
            ),
            Answer(
                "shows",
                "b",
                "It can do this but failed here, and the user would notice",
                _ends(Category.WRONG, SubFlag.RECOVERABLE),
            ),
            Answer(
                "hidden",
                "c",
                "It can do this but failed here, and the user would not notice",
                _ends(Category.WRONG, SubFlag.UNRECOVERABLE),
            ),
            Answer("unsure", "d", "I cannot say", _ends(Category.WRONG)),
        ),
    ),
)
"""In the order of asking, side questions last; the first opens the aid."""
