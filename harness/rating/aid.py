"""The decision aid: short questions that lead from a first response to its category. It knows no screen.

A path ends in exactly one `Ending`. That is a category, except after four answers which say that there is nothing to
judge: not recognised, cut or not the first, sound too bad (the item is put aside with a flag), effect not yet known
(the item is held). Those are no categories and never enter a table of them. So every path that passes the first two
questions, and of which the effect is known or given up, ends in exactly one category, after at most `MOST` questions;
what the harness fills in counts as a question.
"""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass

from harness.model.effect import EffectEvidence, EffectSource, EffectWord
from harness.model.judgment import SUB_FLAGS_OF, Category, Flag, JudgmentStatus, SubFlag
from harness.model.trial import Recognition
from harness.rating.guide import FLAG_TEXTS, KEYS, LABELS, SUB_FLAG_TEXTS


@dataclass(frozen=True, slots=True)
class AidEnding:
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

    def noting(self, sub_flags: tuple[SubFlag, ...]) -> AidEnding:
        """With what was noted on the way, as far as the category carries it."""
        noted = (*self.sub_flags, *(one for one in sub_flags if one in self._allowed))
        return AidEnding(self.category, tuple(dict.fromkeys(noted)), self.flag)


@dataclass(frozen=True, slots=True)
class AidAnswer:
    """key: one character. leads: id of the next question, or where the path ends. notes: sub-flags for the ending.

    leads_if_core: where it leads instead when the scenario marks the query as a core capability.
    """

    id: str
    key: str
    text: str
    leads: str | AidEnding
    leads_if_core: str | AidEnding | None = None
    notes: tuple[SubFlag, ...] = ()

    def to(self, *, core_capability: bool) -> str | AidEnding:
        """Where it leads for such a query."""
        if core_capability and self.leads_if_core is not None:
            return self.leads_if_core
        return self.leads


@dataclass(frozen=True, slots=True)
class AidQuestion:
    """topic: what it is about, in a word or three, for summaries."""

    id: str
    topic: str
    text: str
    answers: tuple[AidAnswer, ...]

    def answer(self, answer_id: str) -> AidAnswer | None:
        return next((one for one in self.answers if one.id == answer_id), None)

    def answer_of(self, key: str) -> AidAnswer | None:
        """The answer that a key stands for; None for any other key."""
        return next((one for one in self.answers if one.key == key), None)


def _ends(category: Category, *sub_flags: SubFlag) -> AidEnding:
    return AidEnding(category, sub_flags)


# Keys are letters, so that a digit, which labels, is never pressed for an answer.
QUESTIONS: tuple[AidQuestion, ...] = (
    AidQuestion("recognised", "query heard",
        "Did the device hear the query in the right words, as far as you can tell?", (
        AidAnswer("yes", "a", "Yes, or nothing speaks against it", "whole"),
        AidAnswer("no", "b", "No, it heard other words", AidEnding(flag=Flag.RECOGNITION_DOUBTED)),
    )),
    AidQuestion("whole", "first response, whole",
        "Is this the first response to the query, whole and clear enough to judge?", (
        AidAnswer("yes", "a", "Yes", "asks_back"),
        AidAnswer("cut", "b", "No, a part is missing, or it is not the first", AidEnding(flag=Flag.CUT_RESPONSE)),
        AidAnswer("unclear", "c", "No, the sound is too bad", AidEnding(flag=Flag.AUDIO_BAD)),
    )),
    AidQuestion("asks_back", "a question back", "Does it ask the user something first, before it answers or acts?", (
        AidAnswer("no", "a", "No; an offer of more, or “please say that again”, does not count", "cannot"),
        AidAnswer("detail", "b", "Yes, for a detail that the query left out", _ends(Category.SLOT_REQUEST)),
        AidAnswer("meaning", "c", "Yes, which meaning was intended, or whether it understood it right",
            _ends(Category.CLARIFICATION)),
        AidAnswer("needless", "d", "Yes, but for what was said already, or beside the point", "noticed", "lacking"),
    )),
    AidQuestion("cannot", "cannot, does not know",
        "Does it only say that it cannot, does not know, or did not understand?", (
        AidAnswer("no", "a", "No, or it answers or acts all the same", "which"),
        AidAnswer("nobody", "b", "Yes, and nobody in its place could know or do it",
            _ends(Category.CORRECT_REJECTION)),
        AidAnswer("could", "c", "Yes, though such a device could be expected to know or do it",
            _ends(Category.ADMITTED_DEFEAT), _ends(Category.ADMITTED_DEFEAT, SubFlag.CORE_CAPABILITY_MISSING)),
    )),
    AidQuestion("which", "should have asked",
        "Does the query fit several things, so that the device should have asked which?", (
        AidAnswer("clear", "a", "No, what was meant is clear enough, or it took none of them", "effect"),
        AidAnswer("told", "b", "Yes, and the response lets the user hear which one it took",
            _ends(Category.MISSED_DISAMBIGUATION_RECOVERABLE)),
        AidAnswer("untold", "c", "Yes, and nothing in the response tells which one it took",
            _ends(Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE)),
    )),
    AidQuestion("effect", "what was done",
        "Was something to be done? If so, was it really done, whatever the device said?", (
        AidAnswer("none", "a", "No, the user only wanted to hear something", "answers"),
        AidAnswer("right", "b", "Yes, and just that was done", _ends(Category.CORRECT)),
        AidAnswer("part", "c", "Yes, but only a part of it was done, or more than was asked", "amount"),
        AidAnswer("wrong", "d", "Yes, but something else was done, or nothing", "noticed", "lacking"),
        AidAnswer("not_yet", "e", "Yes, but it is not known yet; one can still find out", AidEnding()),
        AidAnswer("unknown", "f", "Yes, but nobody can find out any more", "claim"),
    )),
    AidQuestion("answers", "answers what was asked",
        "Leave aside whether its facts are right. Does it answer what was asked?", (
        AidAnswer("yes", "a", "Yes", "form"),
        AidAnswer("gap", "b", "Yes, but I know that a fact is wrong or missing", "form",
            notes=(SubFlag.WORLD_KNOWLEDGE_GAP,)),
        AidAnswer("other", "c", "No, it speaks of another thing, place or time", "noticed", "lacking"),
        AidAnswer("amuses", "d", "No, it is a joke, a quote, a kind word or a dodge", "noticed", "lacking"),
    )),
    AidQuestion("form", "form of the answer", "How does the response give the answer?", (
        AidAnswer("complete", "a", "In full, and nothing beyond it", _ends(Category.CORRECT)),
        AidAnswer("little", "b", "Only a part of it", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_LITTLE)),
        AidAnswer("much", "c", "With more than was asked for", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_MUCH)),
        AidAnswer("inferred", "d", "Not outright, but the user can easily work it out from what it says",
            _ends(Category.INFERRABLE)),
        AidAnswer("several", "e", "Among several things, of which the user must find the right one",
            _ends(Category.FINDABLE)),
        AidAnswer("none", "f", "Not at all, when one looks closely", _ends(Category.WRONG)),
    )),
    AidQuestion("claim", "what it says it did", "Only its words are left to go by. What does it say that it did?", (
        AidAnswer("all", "a", "Just what was asked, even if only by “OK”", _ends(Category.CORRECT)),
        AidAnswer("part", "b", "A part of it, or more than was asked", "amount"),
        AidAnswer("other", "c", "Something else, or nothing that one can make out", "noticed", "lacking"),
    )),
    AidQuestion("amount", "less or more", "Was it less than was asked, or more?", (
        AidAnswer("less", "a", "Less", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_LITTLE)),
        AidAnswer("more", "b", "More", _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_MUCH)),
        AidAnswer("both", "c", "Both: one thing is missing, another was not asked for",
            _ends(Category.PARTIALLY_CORRECT, SubFlag.TOO_LITTLE, SubFlag.TOO_MUCH)),
    )),
    AidQuestion("noticed", "would one notice", "So it is wrong. Would the user notice?", (
        AidAnswer("shows", "a", "Yes, one can tell from the response", _ends(Category.WRONG, SubFlag.RECOVERABLE)),
        AidAnswer("hidden", "b", "No, it sounds right", _ends(Category.WRONG, SubFlag.UNRECOVERABLE)),
        AidAnswer("unsure", "c", "I cannot say", _ends(Category.WRONG)),
    )),
    AidQuestion("lacking", "lacks it, or would one notice",
        "So it is wrong, and this is a basic task for such a device. Which fits best?", (
        AidAnswer("lacks", "a", "It seems unable to do this at all, and does not say so",
            _ends(Category.WRONG, SubFlag.CORE_CAPABILITY_MISSING)),
        AidAnswer("shows", "b", "It can do this but failed here, and the user would notice",
            _ends(Category.WRONG, SubFlag.RECOVERABLE)),
        AidAnswer("hidden", "c", "It can do this but failed here, and the user would not notice",
            _ends(Category.WRONG, SubFlag.UNRECOVERABLE)),
        AidAnswer("unsure", "d", "I cannot say", _ends(Category.WRONG)),
    )),
)  # fmt: skip
"""In the order of asking, side questions last; the first opens the aid."""


MOST = 8
FILLED = "@harness"
"""Ends the words of a path that the harness filled in: "recognised=yes@harness"."""


_EFFECT_ANSWERS = {
    None: None,
    EffectWord.RIGHT: "right",
    EffectWord.PARTIAL: "part",
    EffectWord.WRONG: "wrong",
    EffectWord.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What the harness knows of a response before anybody is asked; what it knows it fills in.

    truncated: the response was cut at the time limit; None: not known. effect: what was seen of it, UNKNOWN when
    somebody looked and could not tell; None when there is no evidence, and with `awaited` it is still to come.
    core_capability: the scenario says that every such device must be able to do this.
    """

    recognised: Recognition = Recognition.NOT_ASSESSED
    truncated: bool | None = None
    effect: EffectWord | None = None
    core_capability: bool = False
    awaited: bool = False

    def __post_init__(self) -> None:
        if self.awaited and self.effect is not None:
            raise ValueError(f"the effect is {self.effect}, and cannot be awaited")

    @classmethod
    def of(
        cls,
        recognised: Recognition | None,
        truncated: bool | None,
        evidence: EffectEvidence | None,
        core_capability: bool,
    ) -> Known:
        """From a trial's evidence; None where there is none. While nobody has looked yet, the effect is awaited."""
        unknown = evidence is not None and evidence.word is EffectWord.UNKNOWN
        awaited = unknown and evidence is not None and evidence.source is EffectSource.NONE
        return cls(
            recognised=recognised or Recognition.NOT_ASSESSED,
            truncated=truncated,
            effect=None if evidence is None or awaited else evidence.word,
            core_capability=core_capability,
            awaited=awaited,
        )

    def answer_to(self, question_id: str) -> str | None:
        """Id of the answer that follows from what is known; None when a person must be asked."""
        match question_id:
            case "recognised":
                return {Recognition.YES: "yes", Recognition.NO: "no"}.get(self.recognised)
            case "whole":
                return None if self.truncated is None else ("cut" if self.truncated else "yes")
            case "cannot":
                # It acted, whatever it said of itself: odd words must not hide a right effect.
                return "no" if self.effect in (EffectWord.RIGHT, EffectWord.PARTIAL) else None
            case "effect":
                return "not_yet" if self.awaited else _EFFECT_ANSWERS[self.effect]
            case _:
                return None


@dataclass(frozen=True, slots=True)
class AidStep:
    """A question that is answered. filled: by the harness."""

    question: AidQuestion
    answer: AidAnswer
    filled: bool = False

    @property
    def word(self) -> str:
        """As it is stored in a judgment's aid_path."""
        return f"{self.question.id}={self.answer.id}{FILLED if self.filled else ''}"


@dataclass(frozen=True, slots=True)
class AidState:
    """How far a rater is in the aid; every answer gives a new state. Either `question` or `ending` is None."""

    aid: Aid
    known: Known
    steps: tuple[AidStep, ...] = ()

    @property
    def question(self) -> AidQuestion | None:
        """To be asked now."""
        leads = self._leads
        return self.aid.question(leads) if isinstance(leads, str) else None

    @property
    def ending(self) -> AidEnding | None:
        """Where the path ended, with the sub-flags noted on the way."""
        leads = self._leads
        if isinstance(leads, str):
            return None
        return leads.noting(tuple(note for step in self.steps for note in step.answer.notes))

    @property
    def path(self) -> tuple[str, ...]:
        """The answers so far, as they are stored."""
        return tuple(step.word for step in self.steps)

    @property
    def number(self) -> int:
        """Of the question that is asked, from 1; at the end, how many were answered."""
        return len(self.steps) + (self.question is not None)

    @property
    def most(self) -> int:
        """How many questions this path has at most, those answered and the present one among them."""
        return len(self.steps) + (self._longest(self.question, asked=True) if self.question else 0)

    @property
    def filled(self) -> tuple[AidStep, ...]:
        """What the harness filled in so far."""
        return tuple(step for step in self.steps if step.filled)

    @property
    def suggested(self) -> AidAnswer | None:
        """What the harness would answer to the present question: a rater went back to it and may overrule."""
        wanted = self.known.answer_to(self.question.id) if self.question else None
        return self.question.answer(wanted) if self.question and wanted else None

    @property
    def can_go_back(self) -> bool:
        return bool(self.steps)

    def answer(self, answer_id: str) -> AidState:
        """After an answer of the rater's, and after what the harness can fill in from there.

        Raises ValueError at the end, and for an answer that the question does not have.
        """
        if self.question is None:
            raise ValueError("the aid has come to its end")
        answer = self.question.answer(answer_id)
        if answer is None:
            known = ", ".join(one.id for one in self.question.answers)
            raise ValueError(f"“{self.question.id}” has no answer “{answer_id}” ({known})")
        return self._with(AidStep(self.question, answer)).filled_in()

    def press(self, key: str) -> AidState | None:
        """After the answer that a key stands for; None when it stands for none."""
        answer = self.question.answer_of(key) if self.question else None
        return self.answer(answer.id) if answer else None

    def back(self) -> AidState:
        """Before the last answer, whoever gave it: what was filled in can be overruled. At the start, the same."""
        return AidState(self.aid, self.known, self.steps[:-1])

    def filled_in(self) -> AidState:
        """With all answers that the harness can give from here on."""
        state = self
        while state.question is not None and (answer := state.suggested) is not None:
            state = state._with(AidStep(state.question, answer, filled=True))
        return state

    def _with(self, step: AidStep) -> AidState:
        return AidState(self.aid, self.known, (*self.steps, step))

    @property
    def _leads(self) -> str | AidEnding:
        if not self.steps:
            return self.aid.questions[0].id
        return self.steps[-1].answer.to(core_capability=self.known.core_capability)

    def _longest(self, question: AidQuestion, asked: bool = False) -> int:
        """Questions from this one to the farthest end; one that the harness will answer has one way on."""
        wanted = None if asked else self.known.answer_to(question.id)
        ways = [one for one in question.answers if wanted in (None, one.id)]
        ends = [one.to(core_capability=self.known.core_capability) for one in ways]
        return 1 + max(self._longest(self.aid.question(one)) if isinstance(one, str) else 0 for one in ends)


@dataclass(frozen=True, slots=True)
class Aid:
    """The questions, and the way in. Another language is another graph with the same ids.

    Raises ValueError for a graph with a doubled id or key, a way to nowhere or in a circle, a question that no way
    leads to, or more than `MOST` questions on a path.
    """

    questions: tuple[AidQuestion, ...] = QUESTIONS

    def __post_init__(self) -> None:
        ids = [one.id for one in self.questions]
        if len(set(ids)) < len(ids) or not ids:
            raise ValueError(f"each question needs an id of its own: {ids}")
        for question in self.questions:
            # A doubled key would make an answer that nobody can give.
            keys = [one.key for one in question.answers]
            words = {one.id for one in question.answers}
            if not keys or len(set(keys)) < len(keys) or len(words) < len(keys) or any(len(key) != 1 for key in keys):
                raise ValueError(f"“{question.id}” needs answers with ids and one-letter keys of their own")
        met: set[str] = set()
        self._check_ways(self.questions[0].id, (), met)
        if unmet := set(ids) - met:
            raise ValueError(f"no way leads to {sorted(unmet)}")

    def _check_ways(self, question_id: str, way: tuple[str, ...], met: set[str]) -> None:
        way = (*way, question_id)
        if len(way) > MOST:
            raise ValueError(f"more than {MOST} questions, or a circle: {' → '.join(way)}")
        met.add(question_id)
        for answer in self.question(question_id).answers:
            for leads in (answer.leads, answer.leads_if_core):
                if isinstance(leads, str):
                    self._check_ways(leads, way, met)

    def question(self, question_id: str) -> AidQuestion:
        """Raises ValueError when there is no such question."""
        found = next((one for one in self.questions if one.id == question_id), None)
        if found is None:
            raise ValueError(f"the aid has no question “{question_id}”")
        return found

    def begin(self, known: Known) -> AidState:
        """The first question that a person must answer; at its end already when the harness knows enough."""
        return AidState(self, known).filled_in()


AID = Aid()


def ending_text(ending: AidEnding) -> str:
    """An ending in words: the category and what is noted beside it, or why the item is put aside."""
    match ending.status:
        case JudgmentStatus.HELD:
            return "held: it is not known yet what was done"
        case JudgmentStatus.FLAGGED if ending.flag is not None:
            return f"put aside: {FLAG_TEXTS[ending.flag]}"
        case _ if ending.category is not None:
            noted = ", ".join(SUB_FLAG_TEXTS[one] for one in ending.sub_flags)
            return LABELS[ending.category] + (f" ({noted})" if noted else "")
        case _:
            raise AssertionError(f"an ending without a meaning: {ending}")


def aid_lines(state: AidState, width: int = 76) -> list[str]:
    """What a rater is to read now, in lines of at most `width` columns: what was filled in, then question or ending."""
    wrapped = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    text: list[str] = []
    just_filled = list(itertools.takewhile(lambda step: step.filled, reversed(state.steps)))
    for step in reversed(just_filled):
        text += wrapped.wrap(f"Known already: {step.question.topic}. {step.answer.text}.")
    if state.question is not None:
        text.append(f"Question {state.number} of at most {state.most}.")
        text += wrapped.wrap(state.question.text)
        hanging = textwrap.TextWrapper(width, subsequent_indent="   ", break_on_hyphens=False)
        for answer in state.question.answers:
            known = " (known so far)" if answer == state.suggested else ""
            text += hanging.wrap(f"{answer.key}: {answer.text}{known}")
        return text
    ending = state.ending
    if ending is not None:
        keys = {category: key for key, category in KEYS}
        if ending.category is None:
            text += wrapped.wrap(ending_text(ending).capitalize() + ".")
        else:
            text += wrapped.wrap(f"{LABELS[ending.category]}. Key {keys[ending.category]}.")
            text += [f"Noted: {SUB_FLAG_TEXTS[one]}." for one in ending.sub_flags]
    return text
