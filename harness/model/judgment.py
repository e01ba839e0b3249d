"""What a rater says of a first response (source: response-assessment guide; spec of ratings)."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from types import MappingProxyType

from harness.model.effect import EffectOutcome
from harness.model.frozen import frozen


class Category(StrEnum):
    """The eleven categories of the response-assessment guide, in its order."""

    CORRECT = "correct"
    PARTIALLY_CORRECT = "partially_correct"
    CLARIFICATION = "clarification"
    SLOT_REQUEST = "slot_request"
    CORRECT_REJECTION = "correct_rejection"
    INFERRABLE = "inferrable"
    FINDABLE = "findable"
    ADMITTED_DEFEAT = "admitted_defeat"
    WRONG = "wrong"
    MISSED_DISAMBIGUATION_RECOVERABLE = "missed_disambiguation_recoverable"
    MISSED_DISAMBIGUATION_NOT_RECOVERABLE = "missed_disambiguation_not_recoverable"


class SubFlag(StrEnum):
    """What may be said beside a category, where it goes with it (`SUB_FLAGS_OF`).

    TOO_LITTLE, TOO_MUCH: of partially correct. RECOVERABLE, UNRECOVERABLE: of wrong; whether the user can notice it.
    WORLD_KNOWLEDGE_GAP: a fact is off and was set aside. CORE_CAPABILITY_MISSING: it lacks what every device must have.
    """

    TOO_LITTLE = "too_little"
    TOO_MUCH = "too_much"
    RECOVERABLE = "recoverable"
    UNRECOVERABLE = "unrecoverable"
    WORLD_KNOWLEDGE_GAP = "world_knowledge_gap"
    CORE_CAPABILITY_MISSING = "core_capability_missing"


SUB_FLAGS_OF: dict[Category, tuple[SubFlag, ...]] = {
    Category.CORRECT: (SubFlag.WORLD_KNOWLEDGE_GAP,),
    Category.PARTIALLY_CORRECT: (SubFlag.TOO_LITTLE, SubFlag.TOO_MUCH, SubFlag.WORLD_KNOWLEDGE_GAP),
    Category.INFERRABLE: (SubFlag.WORLD_KNOWLEDGE_GAP,),
    Category.FINDABLE: (SubFlag.WORLD_KNOWLEDGE_GAP,),
    Category.ADMITTED_DEFEAT: (SubFlag.CORE_CAPABILITY_MISSING,),
    Category.WRONG: (SubFlag.RECOVERABLE, SubFlag.UNRECOVERABLE, SubFlag.CORE_CAPABILITY_MISSING),
}
"""Which sub-flags a category may carry; none where it is not named."""


class Flag(StrEnum):
    """Why an item is put aside."""

    AUDIO_BAD = "audio_bad"
    RECOGNITION_DOUBTED = "recognition_doubted"
    CUT_RESPONSE = "cut_response"
    PRIVACY = "privacy"


class JudgmentStatus(StrEnum):
    """SKIPPED: left for the end. FLAGGED: put aside, with reasons. HELD: waits for the effect to be known."""

    SUBMITTED = "submitted"
    SKIPPED = "skipped"
    FLAGGED = "flagged"
    HELD = "held"
    WITHDRAWN = "withdrawn"


class ProposalShown(StrEnum):
    """When a classifier's proposal is, or was, shown: after the rater's choice, before it, or never."""

    AFTER = "after"
    BEFORE = "before"
    NEVER = "never"


@frozen
class Judgment:
    """One judgment row; rows are only ever added, and a change or an undo names the row that it replaces.

    - id: a UUID made by the client, so that a repeated send is seen. category is None unless status is SUBMITTED.
    - rater: a pseudonym.
    - clip_sha256: what was judged.
    - time_to_answer_s: from the response being shown to the key.
    - sub_flags: values of SubFlag.
    - flags: of Flag.
    - confidence: 1 unsure to 3 sure.
    - item_id, round, position: where in whose queue it was met (position from 1).
    - plays, heard_ms: of the response.
    - span_s: start and end of the response on the host's clock.
    - aid_path: answers given in the decision aid, "question=answer".
    - effect_claimed: whether the response says that something was done.
    - effect: what was known of it.
    - shown_wall_s, given_wall_s: Unix times.
    - adjudicates: ids of the judgments that this one settles.
    - imported_from: the file it came from, if elsewhere.
    - proposed, proposed_probability: what a classifier says of the response, shown or not.
    - proposal_shown: before or after this choice.
    - unaided: what the rater had chosen before they saw it; agreement is computed from that.
    - program: a program judged, whose name and version are the rater.
    - program_confidence: its confidence, 0–1; its reason is the comment.

    Of an imported judgment, plays and transcript_shown may be unknown (None), and guideline_version too ("").
    """

    id: str
    trial_id: str
    attempt: int
    rater: str
    status: JudgmentStatus
    category: Category | None
    clip_sha256: str
    replaces: str | None = None
    confidence: int | None = None
    comment: str = ""
    flags: tuple[str, ...] = ()
    plays: int | None = 0
    time_to_answer_s: float | None = None
    transcript_shown: bool | None = True
    guideline_version: str = "2020-09-20"
    tool_version: str = ""
    session_id: str = ""
    take: int = 1
    item_id: str = ""
    round: str = ""
    position: int | None = None
    sub_flags: tuple[str, ...] = ()
    aid_path: tuple[str, ...] = ()
    heard_ms: int | None = None
    span_s: tuple[float, float] | None = None
    effect_claimed: bool | None = None
    effect: EffectOutcome | None = None
    shown_wall_s: float | None = None
    given_wall_s: float | None = None
    adjudicates: tuple[str, ...] = ()
    imported_from: str = ""
    proposed: Category | None = None
    proposed_probability: float | None = None
    proposal_shown: ProposalShown = ProposalShown.NEVER
    unaided: Category | None = None
    program: bool = False
    program_confidence: float | None = None

    @property
    def independent(self) -> Category | None:
        """The category that they gave without having been told what a classifier says, where there is one."""
        return self.unaided or self.category

    def __post_init__(self) -> None:
        if (self.category is not None) != (self.status is JudgmentStatus.SUBMITTED):
            raise ValueError("a submitted judgment has a category, and no other has one")
        if self.confidence is not None and self.confidence not in (1, 2, 3):
            raise ValueError(f"confidence is 1, 2 or 3, not {self.confidence}")
        if self.program_confidence is not None and not (self.program and 0 <= self.program_confidence <= 1):
            raise ValueError("a program's confidence is from 0 to 1, and only a program has one")
        allowed = SUB_FLAGS_OF.get(self.category, ()) if self.category is not None else ()
        if not set(self.sub_flags) <= set(allowed):
            raise ValueError(f"{self.category} does not carry the sub-flags {self.sub_flags}")


def in_force(judgments: list[Judgment]) -> tuple[Judgment, ...]:
    """The rows that no other row replaces, less withdrawals; what a withdrawal replaces does not come back."""
    replaced = {judgment.replaces for judgment in judgments}
    return tuple(
        judgment
        for judgment in judgments
        if judgment.id not in replaced and judgment.status is not JudgmentStatus.WITHDRAWN
    )


EXERCISE = "exercise:"
"""Begins the trial id of an exercise's rows."""


class TranscriptPolicy(StrEnum):
    """When a rater sees what was said in writing: at once, on a key (which is stored), or not at all."""

    SHOWN = "shown"
    ON_REQUEST = "on_request"
    NEVER = "never"


@frozen
class ItemFilter:
    """Which first responses are drawn; an empty part takes all. conditions: (axis, label), one of each axis's must fit.

    limit: at most this many, drawn by the round's seed; None: all.
    """

    devices: tuple[str, ...] = ()
    query_classes: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    limit: int | None = None


@frozen
class GoldItem:
    """A response whose category is known. session: its id. accept: further categories that count as right."""

    session: str
    trial: str
    category: Category
    accept: tuple[Category, ...] = ()
    why: str = ""

    def is_right(self, category: Category | None) -> bool:
        """Whether a rater who gives that category is right."""
        return category in (self.category, *self.accept)


@frozen
class Exercise:
    """An item of the training round: spoken by voices, judged, and explained at once."""

    id: str
    query: str
    response: str
    category: Category
    why: str
    accept: tuple[Category, ...] = ()
    effect: str = ""
    core_capability: bool = False

    @property
    def trial_id(self) -> str:
        """The trial id of its rows."""
        return f"{EXERCISE}{self.id}"

    def is_right(self, category: Category | None) -> bool:
        """Whether a rater who gives that category is right."""
        return category in (self.category, *self.accept)


@frozen
class ProposalRule:
    """Whose judgments a classifier learns from to propose categories, and when raters see what it proposes.

    sessions: absolute paths of session folders, none of them the round's own. classifier: a plug-in's name; settings:
    (name, value) of it, the others as they are by default.
    """

    sessions: tuple[str, ...]
    classifier: str = "tfidf"
    show: ProposalShown = ProposalShown.AFTER
    settings: tuple[tuple[str, str], ...] = ()


@frozen
class StopRule:
    """A rater who has answered `after` known answers, and fewer than `below` (0 to 1) of them right, is stopped."""

    after: int
    below: float

    def stops(self, right: int, answered: int) -> bool:
        """Whether a rater with `right` correct answers of `answered` gets no more responses."""
        return answered >= self.after and right < self.below * answered


@frozen
class RatingRound:
    """How a round is run; `harness rate SESSION…` without a round file uses the defaults.

    - sessions: absolute paths of session folders.
    - seed: of the order, which differs for each rater, and of what is drawn.
    - raters_per_item: with `raters`, each response is given to this many of them; None: everybody judges all.
    - exercises: before the first item; () for none.
    - pass_share: of exercises.
    - gold: known answers, mixed in unseen.
    - stop: who fails them gets no more; None: nobody is stopped.
    - must_hear: no response gets a category before it was heard to its end.
    - break_after_min: a break is suggested after this many minutes; 0 never.
    - proposals: None when no classifier proposes.
    """

    id: str = "open"
    title: str = ""
    path: str = ""
    sessions: tuple[str, ...] = ()
    seed: int = 0
    items: ItemFilter = field(default_factory=ItemFilter)
    transcript: TranscriptPolicy = TranscriptPolicy.ON_REQUEST
    raters: tuple[str, ...] = ()
    raters_per_item: int | None = None
    exercises: tuple[Exercise, ...] = ()
    pass_share: float = 0.8
    gold: tuple[GoldItem, ...] = ()
    stop: StopRule | None = None
    must_hear: bool = False
    break_after_min: float = 25.0
    proposals: ProposalRule | None = None


class RaterAction(StrEnum):
    """What a rater can do besides labelling. PLAY again stops and starts from the beginning.

    EARLIER, LATER: to what was judged before and after it, to look at it and change it. FIND: any of them, from a list.
    """

    PLAY = "play"
    PLAY_QUERY = "play_query"
    PLAY_SLOWER = "play_slower"
    STOP = "stop"
    TRANSCRIPT = "transcript"
    UNDO = "undo"
    EARLIER = "earlier"
    LATER = "later"
    FIND = "find"
    SKIP = "skip"
    HOLD = "hold"
    FLAG = "flag"
    COMMENT = "comment"
    CONFIDENCE = "confidence"
    SUB_FLAG = "sub_flag"
    AID = "aid"
    GUIDE = "guide"
    RELEASE_HELD = "release_held"
    QUIT = "quit"


_CATEGORY_KEYS = dict(zip(Category, "1234567890-", strict=True))
CATEGORY_LETTERS = dict(zip(Category, "ylrojidvnmz", strict=True))
"""Letters that label as well on a terminal: the digits need Shift on some keyboards. No action has one of them."""
_ACTION_KEYS = {
    RaterAction.PLAY: "space",
    RaterAction.PLAY_QUERY: "a",
    RaterAction.PLAY_SLOWER: "s",
    RaterAction.STOP: ".",
    RaterAction.TRANSCRIPT: "t",
    RaterAction.UNDO: "u",
    RaterAction.EARLIER: "left",
    RaterAction.LATER: "right",
    RaterAction.FIND: "e",
    RaterAction.SKIP: "x",
    RaterAction.HOLD: "h",
    RaterAction.FLAG: "f",
    RaterAction.COMMENT: "c",
    RaterAction.CONFIDENCE: "k",
    RaterAction.SUB_FLAG: "b",
    RaterAction.AID: "?",
    RaterAction.GUIDE: "g",
    RaterAction.RELEASE_HELD: "w",
    RaterAction.QUIT: "q",
}


NEWER = (RaterAction.EARLIER, RaterAction.LATER, RaterAction.FIND)
"""Files of keys that were written before these actions were there may give their keys to other things."""


@frozen
class RaterKeys:
    """A key is one printable character, or one of space, enter, tab, backspace, left, right, up, down, f1 … f12.

    ValueError when a key stands for two things.
    """

    categories: MappingProxyType[Category, str] = field(default_factory=lambda: MappingProxyType(dict(_CATEGORY_KEYS)))
    actions: MappingProxyType[RaterAction, str] = field(default_factory=lambda: MappingProxyType(dict(_ACTION_KEYS)))

    def __post_init__(self) -> None:
        keys = [*self.categories.values(), *self.actions.values()]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"the key {twice[0]!r} has two meanings")

    def category(self, key: str) -> Category | None:
        """The category that a key labels with."""
        return next((category for category, its in self.categories.items() if its == key), None)

    @property
    def letters(self) -> dict[Category, str]:
        """Letters of the categories that have their place in the digit row, unless a file uses them otherwise."""
        used_keys = {*self.categories.values(), *self.actions.values()}
        in_row = [category for category, key in self.categories.items() if key in _CATEGORY_KEYS.values()]
        return {category: key for category in in_row if (key := CATEGORY_LETTERS[category]) not in used_keys}

    def by_letter(self, key: str) -> Category | None:
        """The category that a letter labels with."""
        return next((category for category, letter in self.letters.items() if letter == key), None)

    def action(self, key: str) -> RaterAction | None:
        """What else a key does."""
        return next((action for action, its in self.actions.items() if its == key), None)
