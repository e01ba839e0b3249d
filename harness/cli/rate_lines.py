"""Rating in lines: what stands in them, and what a typed line means."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from enum import Enum

from harness.base.foreign import plain_text
from harness.model.frozen import frozen
from harness.model.judgment import Category, Flag, RaterAction, RaterKeys, SubFlag
from harness.model.numbers import seconds
from harness.model.trial import Recognition
from harness.rating.desk import ExerciseResult, SittingView, effect_words, found_words, given_words
from harness.rating.exercises import repeated
from harness.rating.guide import GUIDE, LABELS, RULES
from harness.rating.items import Item
from harness.rating.rater_queue import QueueCounts, ReopenableItem
from harness.statistics.text import measured

MAX_TEXT_CHARS = 1000
MAX_FOUND = 50


def item_lines(view: SittingView, *, names: bool = False) -> Iterator[str]:
    """The current item, or the reason why there is none."""
    item, count = view.item, view.count
    if item is None and view.stopped:
        yield "you get no more responses in this round: too many of your answers differ from the known ones"
        return
    if item is None:
        yield f"nothing is left to judge: {count.done} of {count.total} done, {count.held} held"
        if count.held:
            yield "held responses wait for evidence of the effect; `held` lets you judge them anyway"
        return
    if item.exercise is not None:
        yield f"exercise {view.exercises[0] + 1} of {view.exercises[1]} {repeated(view)}".rstrip()
    else:
        total = f"{count.total}{' so far' if view.growing else ''}{' again' if view.again else ''}"
        yield f"response {view.position} of {total}, {progress(view)}"
    yield f"query: {plain_text(item.query, MAX_TEXT_CHARS)}"
    if item.exercise is None:
        yield f"attempts: {item.attempts}{_waits_text(item)}"
        yield f"response: {_response(item)}"
        if item.recognition is Recognition.NO:
            yield "recognised: no, the device heard other words"
    if item.effect is not None:
        expected, state = effect_words(item.effect)
        yield f"wanted effect: {expected}"
        yield f"effect: {state}"
    if item.note:
        yield f"{'context' if item.exercise is not None else 'note'}: {plain_text(item.note, MAX_TEXT_CHARS)}"
    if item.core_capability:
        yield "core capability: every device of this kind must support it"
    yield from text_lines(view)
    if view.proposal is not None:
        yield f"the classifier proposes: {view.proposal.words}"
    for number, row in enumerate(item.inputs, 1):
        attribution = f" of {plain_text(row.rater, 60)}" if names else ""
        yield f"judgment {number}{attribution}: {given_words(row)}"
    if view.own is not None:
        yield f"yours so far: {given_words(view.own)}"
    if view.break_due:
        yield "you have judged for a long time: take a break"


def found_lines(responses: Sequence[ReopenableItem]) -> Iterator[str]:
    """Responses that can be opened again."""
    for response in responses[:MAX_FOUND]:
        yield f"{response.item.id}: {found_words(response)}"
    if len(responses) > MAX_FOUND:
        yield f"and {len(responses) - MAX_FOUND} more; `find` with more words shows fewer"
    if not responses:
        yield "none of your judged responses contains these words"


def text_lines(view: SittingView) -> Iterator[str]:
    """The transcript, where the rater may see it."""
    item = view.item
    if item is None:
        return
    if not view.draft.transcript_shown:
        if not view.hides_text:
            yield "transcript: hidden; `text` shows it"
        return
    words = "none" if item.transcript is None else plain_text(item.transcript, MAX_TEXT_CHARS)
    yield f"transcript: {words}"


def progress(view: SittingView) -> str:
    """How much is left, and the time for it at the rater's pace."""
    count = view.count
    parts = [f"{count.left} left"]
    if count.held:
        parts.append(f"{count.held} held")
    if time_left := _time_left(view):
        parts.append(f"{time_left} at your pace")
    return ", ".join(parts)


def _time_left(view: SittingView) -> str:
    """`about 3 min`; "" if it is unknown, or if nothing is left."""
    return f"about {max(1, round(view.left_s / 60))} min" if view.left_s is not None and view.count.left else ""


def ending_line(view: SittingView, *, saved: bool) -> str:
    """The last line of a sitting. saved: also the last judgment."""
    note = "everything is saved" if saved else "the last judgment was not saved; all others were"
    return f"ended: {view.count.done} of {view.count.total} done, {progress(view)}; {note}"


def counts_in_words(count: QueueCounts) -> str:
    """What is done and left. Zero counts of the rarer states are left out."""
    rarer = ((count.skipped, "of them left for later"), (count.held, "held"), (count.flagged, "put aside"))
    parts = [f"{count.done} done", f"{count.left} left", *(f"{number} {words}" for number, words in rarer if number)]
    return ", ".join(parts)


def status_lines(view: SittingView) -> Iterator[str]:
    """The rater's progress."""
    count = view.count
    yield f"rater: {plain_text(view.rater)}"
    if view.exercises[1]:
        yield f"exercises: {view.exercises[0]} of {view.exercises[1]} done"
    yield f"responses: {count.total}, {counts_in_words(count)}"
    pace = "n/a, nothing has been judged yet" if view.pace_s is None else f"{seconds(view.pace_s)} per response"
    time_left = _time_left(view)
    yield f"pace: {pace}" + (f", {time_left} left" if time_left else "")
    draft = view.draft
    notes = [f"sure {draft.confidence}"] if draft.confidence else []
    notes += [flag.value for flag in draft.sub_flags]
    notes += [f"comment {plain_text(draft.comment, 200)}"] if draft.comment else []
    if notes:
        yield f"kept for the next judgment: {', '.join(notes)}"


def explained_lines(explained: ExerciseResult) -> Iterator[str]:
    """The answer to an exercise."""
    exercise = explained.exercise
    other_answers = "".join(f" or {LABELS[category]}" for category in exercise.accept)
    verdict = "right" if explained.right else "not quite"
    yield f"{verdict}: it is {LABELS[exercise.category]}{other_answers}; you said {LABELS[explained.given]}"
    yield f"why: {plain_text(exercise.why, MAX_TEXT_CHARS)}"


def guide_lines(keys: RaterKeys) -> Iterator[str]:
    """Categories with their keys, and the rules."""
    for category, text in GUIDE.items():
        yield f"{keys.categories[category]} {LABELS[category]}: {text.short}. {text.test}"
    for rule in RULES:
        yield f"rule: {rule}"


def _waits_text(item: Item) -> str:
    if not item.waits_s:
        return ""
    waited = ", ".join("unknown" if wait_s is None else seconds(wait_s) for wait_s in item.waits_s)
    return f"; waited {waited}"


def _response(item: Item) -> str:
    parts = ["length unknown" if item.length is None else f"{seconds(item.length.value_s)} long"]
    if item.latency is not None:
        parts.append(f"{measured(item.latency)} after the query")
    if item.truncated:
        parts.append("cut off at the time limit")
    return ", ".join(parts)


MAX_QUOTED_CHARS = 60


class RateWord(Enum):
    """The commands of plain rating. help: what it does; action: a rater's key for it."""

    PLAY = "play", "play the response, from the start", RaterAction.PLAY
    QUERY = "query", "play the query", RaterAction.PLAY_QUERY
    SLOW = "slow", "play the response slower", RaterAction.PLAY_SLOWER
    STOP = "stop", "stop the sound", RaterAction.STOP
    WAIT = "wait", "wait until the sound has ended", None
    TEXT = "text", "show the transcript of the response", RaterAction.TRANSCRIPT
    UNDO = "undo", "take back the last judgment; repeat to take back more", RaterAction.UNDO
    EARLIER = "earlier", "open the response that you judged before this one", RaterAction.EARLIER
    LATER = "later", "open the next one, up to the response still to be judged", RaterAction.LATER
    FIND = "find", "find WORDS: list your judged responses with these words, latest first", RaterAction.FIND
    OPEN = "open", "open ID: open one of them", None
    SKIP = "skip", "leave the response for later; a reopened one stays as it is", RaterAction.SKIP
    HOLD = "hold", "postpone it until the effect is known", RaterAction.HOLD
    HELD = "held", "judge held responses without evidence", RaterAction.RELEASE_HELD
    FLAG = "flag", f"set it aside: flag {' or '.join(flag.value for flag in Flag)}", RaterAction.FLAG
    COMMENT = "comment", "comment TEXT: saved with the next judgment", RaterAction.COMMENT
    SURE = "sure", "sure 1 (unsure) to 3 (sure)", RaterAction.CONFIDENCE
    SUB = (
        "sub",
        f"sub FLAG: set or clear a sub-flag: {', '.join(sub_flag.value for sub_flag in SubFlag)}",
        RaterAction.SUB_FLAG,
    )
    CLAIMS = "claims", "claims yes or claims no: whether the response claims to have done something", None
    AID = "aid", "the decision aid: short questions that lead to a category", RaterAction.AID
    GUIDE = "guide", "the categories and the rules", RaterAction.GUIDE
    STATUS = "status", "your progress", None
    ITEM = "item", "print the response again", None
    HELP = "help", "print this", None
    QUIT = "quit", "leave; everything is saved", RaterAction.QUIT

    def __init__(self, word: str, help_: str, action: RaterAction | None) -> None:
        self.word, self.help, self.action = word, help_, action


_BY_WORD = {rate_word.word: rate_word for rate_word in RateWord}
_BY_ACTION = {rate_word.action: rate_word for rate_word in RateWord if rate_word.action is not None}


@frozen
class TypedCommand:
    """A command with its arguments."""

    word: RateWord
    rest: str = ""


@frozen
class InvalidCommand:
    """Why a line is wrong, with the nearest valid one."""

    what: str


def parse(line: str, keys: RaterKeys) -> Category | TypedCommand | InvalidCommand:
    """What a line means. A category is written as its whole key, name or label."""
    line = line.strip()
    first, _, rest = line.partition(" ")
    rest = rest.strip()
    if (by_key := keys.category(line)) is not None:
        return by_key
    if (action := keys.action(first)) is not None:
        return TypedCommand(_BY_ACTION[action], rest)
    word = _normal(line)
    for category in Category:
        if word in (category.value, _normal(LABELS[category])):
            return category
    if first.lower() in _BY_WORD:
        return TypedCommand(_BY_WORD[first.lower()], rest)
    return InvalidCommand(f"'{plain_text(line, MAX_QUOTED_CHARS)}' is not a command. {_nearest_hint(line, first)}")


def flag_of(rest: str) -> Flag | InvalidCommand:
    return next((flag for flag in Flag if flag.value == _normal(rest)), _no_word(rest, [flag.value for flag in Flag]))


def sub_flag_of(rest: str) -> SubFlag | InvalidCommand:
    names = [sub_flag.value for sub_flag in SubFlag]
    return next((sub_flag for sub_flag in SubFlag if sub_flag.value == _normal(rest)), _no_word(rest, names))


def _no_word(rest: str, names: list[str]) -> InvalidCommand:
    near = difflib.get_close_matches(_normal(rest)[:MAX_QUOTED_CHARS], names, n=1, cutoff=0.4)
    return InvalidCommand((f"Did you mean {near[0]!r}? " if near else "") + f"Write one of: {', '.join(names)}")


def _nearest_hint(line: str, first: str) -> str:
    words = [*_BY_WORD, *(category.value for category in Category)]
    near = difflib.get_close_matches(_normal(line)[:MAX_QUOTED_CHARS], words, n=1) or difflib.get_close_matches(
        _normal(first)[:MAX_QUOTED_CHARS], words, n=1
    )
    return f"Did you mean {near[0]!r}?" if near else "help lists the commands"


def _normal(text: str) -> str:
    for sign in ".,-":
        text = text.replace(sign, " ")
    return "_".join(text.lower().split())
