"""Rating in lines: what stands in them, and what a typed line means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, TypeVar

from harness.base.foreign import plain_text
from harness.model.frozen import frozen
from harness.model.judgment import Category, Flag, RaterAction, RaterKeys, SubFlag
from harness.model.numbers import counted, fixed, seconds
from harness.model.trial import Recognition
from harness.rating.guide import CUT_OFF, GUIDE, LABELS, OTHER_WORDS, RULES
from harness.rating.items import Item
from harness.rating.rater_queue import QueueCounts, RaterQueue, ReopenableItem
from harness.rating.view import (
    ExerciseResult,
    SittingView,
    effect_in_words,
    judgment_in_words,
    reopenable_in_words,
    repetition_text,
    visible_latency_s,
)

if TYPE_CHECKING:
    from harness.rating.rating_room import RatingRoom

MAX_TEXT_CHARS = 1000
MAX_FOUND_ITEMS = 50
MAX_QUOTED_CHARS = 60

Member = TypeVar("Member", bound=StrEnum)


def item_lines(view: SittingView, *, names: bool = False) -> Iterator[str]:
    """The current item, or the reason why there is none."""
    item, count = view.item, view.count
    verb = "settle" if view.adjudicating else "judge"
    if item is None and view.stopped:
        yield "you get no more responses in this round: too many of your answers differ from the known ones"
        return
    if item is None:
        yield f"nothing is left to {verb}: {count.done} of {count.total} done, {count.held} held"
        if count.held:
            yield "held responses wait for evidence of the effect; `held` lets you judge them anyway"
        return
    if item.exercise is not None:
        done_count, exercise_count = view.exercises
        yield f"exercise {done_count + 1} of {exercise_count} {repetition_text(view)}".rstrip()
    else:
        total = f"{count.total}{' so far' if view.growing else ''}{' again' if view.is_reopened else ''}"
        yield f"response {view.position} of {total}, {progress_text(view)}"
    yield f"query: {plain_text(item.query, MAX_TEXT_CHARS)}"
    if item.exercise is None:
        yield f"attempts: {item.attempts}{_waits_text(item)}"
        yield f"response: {_response_text(item)}"
        if item.recognition is Recognition.NO:
            yield f"recognised: no, {OTHER_WORDS}"
    if item.effect is not None:
        expected, state = effect_in_words(item.effect)
        yield f"wanted effect: {expected}"
        yield f"effect: {state}"
    if item.note:
        title = "note" if item.exercise is None else "context"
        yield f"{title}: {plain_text(item.note, MAX_TEXT_CHARS)}"
    if item.core_capability:
        yield "core capability: every device of this kind must support it"
    yield from text_lines(view)
    if view.proposal is not None:
        yield f"the classifier proposes: {view.proposal.words}"
    for number, row in enumerate(item.inputs, 1):
        attribution = f" of {plain_text(row.rater, 60)}" if names else ""
        yield f"judgment {number}{attribution}: {judgment_in_words(row)}"
    if view.own_row is not None:
        yield f"your judgment so far: {judgment_in_words(view.own_row)}"
    if view.break_due:
        yield "you have judged for a long time: take a break"


def found_lines(responses: Sequence[ReopenableItem]) -> Iterator[str]:
    """The first MAX_FOUND_ITEMS of the responses that can be opened again, and how many more there are."""
    for response in responses[:MAX_FOUND_ITEMS]:
        yield f"{response.item.id}: {reopenable_in_words(response)}"
    if len(responses) > MAX_FOUND_ITEMS:
        yield f"and {len(responses) - MAX_FOUND_ITEMS} more; `find` with more words shows fewer"
    if not responses:
        yield "none of your judged responses contains these words"


def text_lines(view: SittingView) -> Iterator[str]:
    """The transcript, or how to show it. Nothing if the round hides it from the rater."""
    item = view.item
    if item is None:
        return
    if not view.draft.transcript_shown:
        if not view.hides_text:
            yield "transcript: hidden; `text` shows it"
        return
    words = "none" if item.transcript is None else plain_text(item.transcript, MAX_TEXT_CHARS)
    yield f"transcript: {words}"


def progress_text(view: SittingView) -> str:
    """How much is left, and the time for it at the rater's pace."""
    count = view.count
    counts = [f"{count.left} left"]
    if count.held:
        counts.append(f"{count.held} held")
    if time_left := _time_left_text(view):
        counts.append(f"{time_left} at your pace")
    return ", ".join(counts)


def _time_left_text(view: SittingView) -> str:
    """`about 3 min`; "" if it is unknown, or if nothing is left."""
    if view.left_s is None or not view.count.left:
        return ""
    return f"about {max(1, round(view.left_s / 60))} min"


def ending_line(view: SittingView, *, saved: bool) -> str:
    """The last line of a sitting. saved: whether the last judgment was saved, too."""
    note = "everything is saved" if saved else "the last judgment was not saved; all others were"
    return f"ended: {view.count.done} of {view.count.total} done, {progress_text(view)}; {note}"


def counts_in_words(count: QueueCounts) -> str:
    """What is done and left. Zero counts of the rarer states are left out."""
    rarer_counts = ((count.skipped, "of them left for later"), (count.held, "held"), (count.flagged, "put aside"))
    rarer_texts = (f"{number} {words}" for number, words in rarer_counts if number)
    return ", ".join([f"{count.done} done", f"{count.left} left", *rarer_texts])


def list_lines(
    room: RatingRoom, raters: Iterable[RaterQueue | SittingView], *, adjudicating: bool = False
) -> Iterator[str]:
    """How many responses there are in total, and how many each rater has left."""
    responses = f"{counted(len(room.items), 'response')} of {counted(len(room.round.sessions), 'session')}"
    yield f"round {plain_text(room.round.id)}: {responses}"
    settled_text = f"; {room.settled_count} settled" if room.settled_count else ""
    yield f"raters disagree on {counted(len(room.disputed), 'response')}{settled_text}"
    task = "to settle" if adjudicating else "to judge"
    for summary in raters:
        exercises = ""
        if room.round.exercises and not adjudicating:
            done_count, exercise_count = summary.exercises
            exercises = f"; exercises: {done_count} of {exercise_count} done"
        counts = f"{summary.count.total} {task}, {counts_in_words(summary.count)}"
        stopped = "; stopped, and gets no more responses" if summary.stopped else ""
        yield f"{plain_text(summary.rater)}: {counts}{exercises}{stopped}"


def status_lines(view: SittingView) -> Iterator[str]:
    """The rater's progress."""
    count = view.count
    yield f"rater: {plain_text(view.rater)}"
    done_count, exercise_count = view.exercises
    if exercise_count:
        yield f"exercises: {done_count} of {exercise_count} done"
    yield f"responses: {count.total}, {counts_in_words(count)}"
    pace = "n/a, nothing has been judged yet" if view.pace_s is None else f"{seconds(view.pace_s)} per response"
    if time_left := _time_left_text(view):
        pace = f"{pace}, {time_left} left"
    yield f"pace: {pace}"
    draft = view.draft
    notes = [f"sure {draft.confidence}"] if draft.confidence else []
    notes += [flag.value for flag in draft.sub_flags]
    if draft.comment:
        notes.append(f"comment {plain_text(draft.comment, 200)}")
    if notes:
        yield f"kept for the next judgment: {', '.join(notes)}"


def exercise_result_lines(result: ExerciseResult) -> Iterator[str]:
    """The right answer to an exercise, the rater's, and why."""
    exercise = result.exercise
    other_answers = "".join(f" or {LABELS[category]}" for category in exercise.accept)
    verdict = "right" if result.right else "not quite"
    yield f"{verdict}: the answer is {LABELS[exercise.category]}{other_answers}; you chose {LABELS[result.category]}"
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
    waits = ", ".join("unknown" if wait_s is None else seconds(wait_s) for wait_s in item.waits_s)
    return f"; waited {waits}"


def _response_text(item: Item) -> str:
    facts = ["length unknown" if item.length is None else f"{seconds(item.length.value_s)} long"]
    latency_s = visible_latency_s(item)
    if latency_s is not None:
        facts.append(f"{fixed(latency_s, 1, 's')} after the query")
    if item.truncated:
        facts.append(CUT_OFF)
    return ", ".join(facts)


class RateWord(Enum):
    """The commands of plain rating.

    - help: what it does.
    - action: the one that a rater's key may also start, or None.
    """

    PLAY = "play", "play the response, from the start", RaterAction.PLAY
    QUERY = "query", "play the query", RaterAction.PLAY_QUERY
    SLOW = "slow", "play the response slower", RaterAction.PLAY_SLOWER
    STOP = "stop", "stop the sound", RaterAction.STOP
    WAIT = "wait", "wait until the sound has ended", None
    TEXT = "text", "show the transcript of the response", RaterAction.TRANSCRIPT
    UNDO = "undo", "take back the last judgment; repeat to take back more", RaterAction.UNDO
    EARLIER = "earlier", "open the response that you judged before this one", RaterAction.EARLIER
    LATER = "later", "open the next response, up to the one still to be judged", RaterAction.LATER
    FIND = "find", "find WORDS: list your judged responses with these words, latest first", RaterAction.FIND
    OPEN = "open", "open ID: open the response with this id", None
    SKIP = "skip", "leave the response for later; a reopened response does not change", RaterAction.SKIP
    HOLD = "hold", "postpone the response until the effect is known", RaterAction.HOLD
    HELD = "held", "judge held responses without evidence", RaterAction.RELEASE_HELD
    FLAG = "flag", f"set the response aside: flag {' or '.join(flag.value for flag in Flag)}", RaterAction.FLAG
    COMMENT = "comment", "comment TEXT: saved with the next judgment", RaterAction.COMMENT
    SURE = "sure", "sure 1 (unsure) to sure 3 (sure): how sure you are of the next judgment", RaterAction.CONFIDENCE
    SUB = (
        "sub",
        f"sub FLAG: set or clear a sub-flag: {', '.join(sub_flag.value for sub_flag in SubFlag)}",
        RaterAction.SUB_FLAG,
    )
    CLAIMS = "claims", "claims yes or claims no: whether the response claims to have done something", None
    AID = "aid", "open the decision aid: short questions that lead to a category", RaterAction.AID
    GUIDE = "guide", "print the categories and the rules", RaterAction.GUIDE
    STATUS = "status", "print your progress", None
    ITEM = "item", "print the response again", None
    HELP = "help", "print this list", None
    QUIT = "quit", "leave; everything is saved", RaterAction.QUIT

    def __init__(self, word: str, help_: str, action: RaterAction | None) -> None:
        self.word, self.help, self.action = word, help_, action


_BY_WORD = {rate_word.word: rate_word for rate_word in RateWord}
_BY_ACTION = {rate_word.action: rate_word for rate_word in RateWord if rate_word.action is not None}


@frozen
class TypedCommand:
    """A command with its argument, the rest of the line."""

    word: RateWord
    argument: str = ""


@frozen
class InvalidCommand:
    """Why a line is wrong, with the nearest valid one."""

    problem: str


def parse(line: str, keys: RaterKeys) -> Category | TypedCommand | InvalidCommand:
    """What a line means. A category is written as its whole key, name or label."""
    line = line.strip()
    first_word, _, argument = line.partition(" ")
    argument = argument.strip()
    if (category_of_key := keys.category(line)) is not None:
        return category_of_key
    if (action := keys.action(first_word)) is not None:
        return TypedCommand(_BY_ACTION[action], argument)
    name = _normalise(line)
    for category in Category:
        if name in (category.value, _normalise(LABELS[category])):
            return category
    if first_word.lower() in _BY_WORD:
        return TypedCommand(_BY_WORD[first_word.lower()], argument)
    quoted_line = plain_text(line, MAX_QUOTED_CHARS)
    return InvalidCommand(f"'{quoted_line}' is not a command. {_nearest_hint(line, first_word)}")


def parse_member(text: str, kind: type[Member]) -> Member | InvalidCommand:
    """The member of an enumeration that a text names, in any case and with any separators."""
    name = _normalise(text)
    names = [member.value for member in kind]
    if name in names:
        return kind(name)
    similar = difflib.get_close_matches(name[:MAX_QUOTED_CHARS], names, n=1, cutoff=0.4)
    hint = f"Did you mean {similar[0]!r}? " if similar else ""
    return InvalidCommand(f"{hint}Enter one of: {', '.join(names)}")


def _nearest_hint(line: str, first_word: str) -> str:
    """The command or category that is most similar to the line, otherwise to its first word."""
    names = [*_BY_WORD, *(category.value for category in Category)]
    for text in (line, first_word):
        similar = difflib.get_close_matches(_normalise(text)[:MAX_QUOTED_CHARS], names, n=1)
        if similar:
            return f"Did you mean {similar[0]!r}?"
    return "help lists the commands"


def _normalise(text: str) -> str:
    """The words of a text in lower case, joined by `_`."""
    for separator in ".,-":
        text = text.replace(separator, " ")
    return "_".join(text.lower().split())
