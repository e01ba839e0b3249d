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
    """A detail that a rater may add to a category; `SUB_FLAGS_OF` says to which.

    TOO_LITTLE, TOO_MUCH: why a response is only partially correct.
    RECOVERABLE, UNRECOVERABLE: whether the user can notice that a response is wrong.
    WORLD_KNOWLEDGE_GAP: a fact is wrong, and the rater disregarded that.
    CORE_CAPABILITY_MISSING: the device lacks a capability that every device must have.
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
"""The sub-flags that a category may have; other categories have none."""


class Flag(StrEnum):
    """Why a rater puts an item aside instead of judging it."""

    AUDIO_BAD = "audio_bad"
    RECOGNITION_DOUBTED = "recognition_doubted"
    CUT_RESPONSE = "cut_response"
    PRIVACY = "privacy"


class JudgmentStatus(StrEnum):
    """What a rater did with an item.

    SUBMITTED: gave it a category. SKIPPED: left it for the end. FLAGGED: put it aside, with reasons.
    HELD: waits until the effect of the query is known. WITHDRAWN: took an earlier row back.
    """

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

    If a judgment was imported, plays and transcript_shown may be unknown (None), and guideline_version too ("").
    """

    id: str
    """A UUID made by the client, so that a row that is sent twice is recognised."""
    trial_id: str
    attempt: int
    rater: str
    """A pseudonym; if `program`, the name and version of the program that judged."""
    status: JudgmentStatus
    category: Category | None
    """None unless status is SUBMITTED."""
    clip_sha256: str
    replaces: str | None = None
    """Id of the row that this one changes or withdraws; None if it is a new judgment."""
    confidence: int | None = None
    """1 (unsure) to 3 (sure); None if the rater did not say."""
    comment: str = ""
    flags: tuple[str, ...] = ()
    """Values of Flag."""
    plays: int | None = 0
    time_to_answer_s: float | None = None
    """Time from when the response was shown until the rater pressed the key."""
    transcript_shown: bool | None = True
    guideline_version: str = "2020-09-20"
    tool_version: str = ""
    session_id: str = ""
    take: int = 1
    item_id: str = ""
    round: str = ""
    position: int | None = None
    """The item's blind id, the rating round, and the place in the rater's queue, from 1."""
    sub_flags: tuple[str, ...] = ()
    """Values of SubFlag."""
    aid_path: tuple[str, ...] = ()
    """Answers given in the decision aid, as "question=answer"."""
    heard_ms: int | None = None
    """For how long the response was played in all."""
    span_s: tuple[float, float] | None = None
    """Start and end of the response on the host's clock."""
    effect_claimed: bool | None = None
    """Whether the response says that something was done."""
    effect: EffectOutcome | None = None
    """What was known of the query's effect at that time; None if the trial checks none."""
    shown_wall_s: float | None = None
    given_wall_s: float | None = None
    """When the response was shown and when it was judged, in Unix time."""
    adjudicates: tuple[str, ...] = ()
    """Ids of the judgments that this one settles."""
    imported_from: str = ""
    """Name of the file that it was imported from; "" if it was given in the harness."""
    proposed: Category | None = None
    proposed_probability: float | None = None
    """The category that a classifier proposes, even if it was not shown."""
    proposal_shown: ProposalShown = ProposalShown.NEVER
    """When the rater saw that proposal."""
    unaided: Category | None = None
    """What the rater had chosen before they saw the proposal; agreement is computed from that."""
    program: bool = False
    program_confidence: float | None = None
    """The program's confidence, 0–1; its reason is the comment."""

    @property
    def independent(self) -> Category | None:
        """The category that the rater gave without knowing the classifier's proposal; None if there is none."""
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
    """The rows that no other row replaces, without withdrawals. A row that was withdrawn stays replaced.

    Of a rater's judgments of a response, the last one: a rater in two windows may give two without a replacement.
    """
    replaced = {judgment.replaces for judgment in judgments}
    last = {
        (row.session_id, row.trial_id, row.clip_sha256, row.rater, bool(row.adjudicates)): row.id
        for row in judgments
        if row.id not in replaced and row.status is not JudgmentStatus.WITHDRAWN
    }
    ids = set(last.values())
    return tuple(judgment for judgment in judgments if judgment.id in ids)


EXERCISE = "exercise:"
"""The start of the trial id in rows about an exercise."""


class TranscriptPolicy(StrEnum):
    """When a rater sees the transcript: at once, on pressing a key (which is stored), or never."""

    SHOWN = "shown"
    ON_REQUEST = "on_request"
    NEVER = "never"


@frozen
class ItemFilter:
    """Which first responses a round contains. An empty field selects all.

    - conditions: (axis, label). A response must match one of the labels given for each axis.
    - limit: at most this many responses, drawn at random with the round's seed; None: all.
    """

    devices: tuple[str, ...] = ()
    query_classes: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    limit: int | None = None


@frozen
class GoldItem:
    """A response whose category is known, to check raters with.

    - session, trial: ids of the session and of the trial that it is from.
    - accept: further categories that count as right.
    """

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
    """An item of the training round: query and response are spoken by voices, and the answer is explained at once.

    - accept: further categories that count as right.
    - why: the explanation.
    """

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

    - sessions: absolute paths of the session folders to learn from, none of them the round's own.
    - classifier: name of a plug-in.
    - settings: (name, value) of its settings that differ from their defaults.
    """

    sessions: tuple[str, ...]
    classifier: str = "tfidf"
    show: ProposalShown = ProposalShown.AFTER
    settings: tuple[tuple[str, str], ...] = ()


@frozen
class StopRule:
    """A rater who has judged `after` gold items, and got a share of less than `below` (0–1) right, is stopped."""

    after: int
    below: float

    def stops(self, right: int, answered: int) -> bool:
        """Whether a rater who got `right` of `answered` gold items right gets no more responses."""
        return answered >= self.after and right < self.below * answered


@frozen
class RatingRound:
    """How a round is run; `harness rate SESSION…` without a round file uses the defaults."""

    id: str = "open"
    title: str = ""
    path: str = ""
    sessions: tuple[str, ...] = ()
    """Absolute paths of session folders."""
    seed: int = 0
    """Seed of the order, which differs for each rater, and of what is drawn at random."""
    items: ItemFilter = field(default_factory=ItemFilter)
    """Which of their first responses are judged."""
    transcript: TranscriptPolicy = TranscriptPolicy.ON_REQUEST
    raters: tuple[str, ...] = ()
    """Who may take part; () means anyone."""
    raters_per_item: int | None = None
    """With `raters`, each response is given to this many of them; None: everybody judges all."""
    exercises: tuple[Exercise, ...] = ()
    """Items of a training round before the first item; () for none."""
    pass_share: float = 0.8
    """Share of the exercises that a rater must get right."""
    gold: tuple[GoldItem, ...] = ()
    """Responses with a known category, which look to raters like all others."""
    stop: StopRule | None = None
    """When a rater who gets gold items wrong is stopped; None: nobody is stopped."""
    must_hear: bool = False
    """A rater can give a category only after hearing the response to its end."""
    break_after_min: float = 25.0
    """A break is suggested after this many minutes; 0: never."""
    proposals: ProposalRule | None = None
    """How a classifier proposes categories; None: it does not."""


class RaterAction(StrEnum):
    """What a rater can do besides labelling.

    PLAY: plays the response; while it plays, starts it again. EARLIER, LATER: go to the item that was judged before or
    after this one, to look at it or change it. FIND: go to any judged item, from a list.
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
"""Letters that give a category on a terminal as the digits do, which need Shift on some keyboards.

No action uses one of these letters.
"""
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
"""Actions added later. Key files from before may assign their keys to something else, and stay valid."""


@frozen
class RaterKeys:
    """The keys of the rating screen. Raises ValueError if two things have the same key.

    A key is one printable character, or one of space, enter, tab, backspace, left, right, up, down, f1 … f12.
    """

    categories: MappingProxyType[Category, str] = field(default_factory=lambda: MappingProxyType(dict(_CATEGORY_KEYS)))
    actions: MappingProxyType[RaterAction, str] = field(default_factory=lambda: MappingProxyType(dict(_ACTION_KEYS)))

    def __post_init__(self) -> None:
        keys = [*self.categories.values(), *self.actions.values()]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"the key {twice[0]!r} has two meanings")

    def category(self, key: str) -> Category | None:
        """The category that a key gives; None if it gives none."""
        return next((category for category, own_key in self.categories.items() if own_key == key), None)

    @property
    def letters(self) -> dict[Category, str]:
        """The letters of categories whose keys are the usual digits, without letters that a key file uses otherwise."""
        used_keys = {*self.categories.values(), *self.actions.values()}
        usual = [category for category, key in self.categories.items() if key in _CATEGORY_KEYS.values()]
        return {
            category: CATEGORY_LETTERS[category] for category in usual if CATEGORY_LETTERS[category] not in used_keys
        }

    def by_letter(self, key: str) -> Category | None:
        """The category that a letter gives; None if it gives none."""
        return next((category for category, letter in self.letters.items() if letter == key), None)

    def action(self, key: str) -> RaterAction | None:
        """The action of a key; None if it has none."""
        return next((action for action, own_key in self.actions.items() if own_key == key), None)
