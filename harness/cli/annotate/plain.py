"""Annotating in lines: prints a page or an utterance, reads a command per line, and reports what was saved."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TextIO

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.annotation.view import AnnotationPhase, AnnotationView, labels_text, marked_text
from harness.base.foreign import plain_text
from harness.cli.typed_lines import NOT_SAVED, TypedSitting
from harness.model.annotation import Example, Intents, Label, LabelSet
from harness.model.numbers import counted, seconds
from harness.model.understanding import JOINT, joined

LONGEST_TOLD = 60


class PlainWord(StrEnum):
    """The commands of plain annotation. help: what it does."""

    ACCEPT = "accept", "accept every line of the page that is not struck; short: a"
    STRIKE = "strike", "strike wrong lines by number, or unstrike them: strike 2 5; short: 2 5"
    NONE = "none", "save the utterance without a label (if the label set allows it)"
    KEEP = "keep", "keep the saved labels after seeing the proposal"
    SKIP = "skip", "postpone the utterance, or the group of proposals"
    UNDO = "undo", "undo the last page or utterance; repeatable"
    SLOT = "slot", "slot CONCEPT 4-5: mark these words, or remove that mark; saved with the labels"
    CLEAR = "clear", "clear 4-5: remove the slots of these words"
    TAKE = "take", "mark the slots that are proposed"
    COMMENT = "comment", "comment TEXT: saved with the next labels"
    REVIEW = "review", "go to the proposals"
    LABEL = "label", "go to labelling by hand"
    GUIDE = "guide", "print the guide to all labels; guide LABEL: to one"
    STATUS = "status", "print your progress"
    AGAIN = "again", "print the page or the utterance again"
    HELP = "help", "print this"
    QUIT = "quit", "leave; everything is saved"

    help: str

    def __new__(cls, word: str, help_: str = "") -> Self:
        made = str.__new__(cls, word)
        made._value_, made.help = word, help_
        return made


@dataclass(frozen=True, slots=True)
class Instruction:
    """A command and its argument."""

    word: PlainWord
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """All labels for the current utterance."""

    intents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """An error in a line, with the nearest command or label."""

    what: str


def parse(line: str, labels: LabelSet, *, reviewing: bool) -> Instruction | Labels | Unknown:
    """Parses a line. Commands are whole words; labels are ids, keys or titles, separated by blanks or #."""
    line = line.strip()
    first, _, rest = line.partition(" ")
    if reviewing:
        if first.lower() == "a" and not rest:
            return Instruction(PlainWord.ACCEPT)
        if all(part.isdecimal() for part in line.replace(",", " ").split()):
            return Instruction(PlainWord.STRIKE, line)
    else:
        found = labels_of(line, labels)
        if isinstance(found, Labels):
            return found
        if first.lower() not in list(PlainWord):
            return found
    if first.lower() in list(PlainWord):
        return Instruction(PlainWord(first.lower()), rest.strip())
    near = difflib.get_close_matches(first.lower()[:LONGEST_TOLD], list(PlainWord), n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "`help` lists the commands"
    return Unknown(f"'{plain_text(line, LONGEST_TOLD)}' is not a command. {hint}")


def labels_of(line: str, labels: LabelSet) -> Labels | Unknown:
    """The labels that a line names."""
    whole = _meant(line, labels)
    if whole is not None:
        return Labels((whole,))
    found: list[str] = []
    for part in line.replace(JOINT, " ").replace(",", " ").split():
        one = _meant(part, labels)
        if one is None:
            known = [*labels.ids, *PlainWord]
            near = difflib.get_close_matches(part[:LONGEST_TOLD], known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "`guide` lists the labels, `help` the commands"
            return Unknown(f"'{plain_text(part, LONGEST_TOLD)}' is not a label. {hint}")
        found.append(one)
    return Labels(tuple(dict.fromkeys(found)))


def _meant(written: str, labels: LabelSet) -> str | None:
    """The label that a word names; an exact match goes before one that differs in case."""
    written = written.strip()
    for one in labels.labels:
        if written in (one.id, one.key) and written:
            return one.id
    for one in labels.labels:
        if written.casefold() in (one.id.casefold(), one.title.casefold()) and written:
            return one.id
    return None


LONGEST = 2000


def sight_lines(view: AnnotationView, labels: LabelSet) -> Iterator[str]:
    """Lines of the current page or utterance."""
    match view.phase:
        case AnnotationPhase.REVIEWING:
            yield from _lines_of_page(view)
        case AnnotationPhase.LABELLING:
            yield from _lines_of_item(view, labels)
        case AnnotationPhase.FINISHED:
            yield "nothing is left to settle" if view.adjudicating else "nothing is left to do"


def status_lines(view: AnnotationView) -> Iterator[str]:
    """Lines on the annotator's progress."""
    count = view.count
    yield f"{plain_text(view.annotator)}: {count.done} of {count.total} done, {count.left} left"
    if not view.adjudicating:
        yield f"of those left: {count.to_review} to review, {count.to_label} to label; struck so far: {count.struck}"
    yield f"postponed: {count.skipped}"
    if view.pace_s is not None and view.left_s is not None:
        yield f"pace: {seconds(view.pace_s)} per utterance, about {max(1, round(view.left_s / 60))} min left"
    if view.estimate:
        yield view.estimate


def guide_lines(labels: LabelSet) -> Iterator[str]:
    """The label set in brief."""
    yield shown(labels.title)
    if labels.intro:
        yield shown(labels.intro)
    for label in labels.labels:
        key = f" (key {label.key})" if label.key else ""
        alone = ", stands alone" if label.alone else ""
        yield shown(f"{label.id}{key}{alone}: {label.description or label.title}")
    for first, second in labels.never_together:
        yield shown(f"never together: {first} and {second}")
    for concept in labels.concepts:
        yield shown(f"slot {concept.id}: {concept.description or concept.title}")


def label_lines(label: Label) -> Iterator[str]:
    """One label with its examples."""
    yield shown(f"{label.id}: {label.title}")
    if label.description:
        yield shown(label.description)
    for one in label.examples:
        yield shown(f"yes: {_example(one, (label.id,))}")
    for one in label.counterexamples:
        yield shown(f"not: {_example(one, ())}")


def shown(text: str) -> str:
    return plain_text(text, LONGEST)


def labelled(intents: Intents, slots: tuple[str, ...] = ()) -> str:
    """Labels of an utterance as written in files, or "no label", and its slots."""
    return plain_text(labels_text(intents, slots), LONGEST)


def _lines_of_page(view: AnnotationView) -> Iterator[str]:
    group = view.group
    if group is not None:
        left = f"{group.left} of {group.total} left"
        yield f"group {group.number} of {group.groups}, proposed: {labelled(group.intents)} ({left})"
    for line in view.page:
        yield f"{line.number}{' struck' if line.struck else ''}: {shown(line.text)}"
    yield "`accept`, or the numbers of wrong lines"


def _lines_of_item(view: AnnotationView, labels: LabelSet) -> Iterator[str]:
    item, count = view.item, view.count
    if item is None:
        return
    yield f"utterance {count.done + 1} of {count.total}: {shown(marked_text(item.words, item.slots))}"
    if labels.concepts:
        yield shown("words: " + " ".join(f"{number} {word}" for number, word in enumerate(item.words, 1)))
    for number, given in enumerate(item.inputs, 1):
        comment = f", comment: {shown(given.comment)}" if given.comment else ""
        yield f"given {number}: {labelled(given.intents, given.slots)}{comment}"
    if item.struck:
        yield f"struck: {labelled(item.proposal or (), item.proposed_slots)}"
    elif item.proposal is not None:
        yield f"proposed: {labelled(item.proposal, item.proposed_slots)}"
    if item.saved:
        yield f"yours: {labelled(item.chosen)}; `keep`, or other labels"
    else:
        yield f"labels? ({counted(len(labels.labels), 'label')}, `guide` lists them)"


def _example(one: Example, own: Intents) -> str:
    labels = "" if one.labels in ((), own) else f" [{joined(one.labels)}]"
    return f"{one.text}{labels}{f' ({one.why})' if one.why else ''}"


def annotate_plainly(room: AnnotationRoom, desk: AnnotationDesk, *, source: TextIO | None = None) -> int:
    """A sitting over standard input and output, until `quit` or the end of the input. Returns the exit status.

    Input other than a terminal is a script. It ends at the first line that is wrong (status 2) or cannot be saved
    (status 3). Later lines would apply to another utterance.
    """
    return _Sitting(room, desk, source).run()


class _Sitting(TypedSitting):
    UNREADABLE = "the project cannot be read"

    def __init__(self, room: AnnotationRoom, desk: AnnotationDesk, source: TextIO | None) -> None:
        super().__init__(source)
        self._room, self._desk = room, desk
        self._labels = room.label_set

    def _begin(self) -> None:
        self.say([f"project {shown(self._room.project.id)}; `help` lists the commands"])
        self._show()

    def _show(self) -> None:
        self.say(sight_lines(self._desk.view, self._labels))

    def _end(self) -> None:
        view = self._desk.view
        kept = "everything is saved except the last entry" if self.status == NOT_SAVED else "everything is saved"
        struck = sum(line.struck for line in view.page)
        if struck and self.status != NOT_SAVED:
            kept += f" except the current page, with {struck} struck"
        self.say([f"ended: {view.count.done} of {view.count.total} done, {view.count.left} left; {kept}"])

    # Commands

    def _take(self, line: str) -> bool:
        """Carries out a line; False ends the sitting."""
        self._desk.present()
        meant = parse(line, self._labels, reviewing=self._desk.view.phase is AnnotationPhase.REVIEWING)
        if isinstance(meant, Instruction) and meant.word is PlainWord.QUIT:
            return False
        return self.carry_out(lambda: self._carried_out(meant))

    def _carried_out(self, meant: Instruction | Labels | Unknown) -> str:
        wrong = self._label(meant.intents) if isinstance(meant, Labels) else self._do(meant)
        if not wrong:
            self.catch_up(finished=self._desk.view.phase is AnnotationPhase.FINISHED)
        return shown(wrong)

    def _does(self, call: Callable[[], bool]) -> str:
        """Does it and shows what comes next; returns the error, or ""."""
        if not call():
            return self._desk.view.said or "this is not possible here"
        said = self._desk.view.said
        if said:
            self.say([shown(said)])
        self._show()
        return ""

    def _label(self, intents: tuple[str, ...]) -> str:
        """Saves these labels for the current utterance."""
        desk, item = self._desk, self._desk.view.item
        if item is None:
            return "there is no utterance to label here"
        before = item.chosen
        for label in set(before) ^ set(intents):
            desk.toggle(label)
        wrong = self._does(desk.save)
        if wrong and (after := desk.view.item) is not None:
            for label in set(after.chosen) ^ set(before):
                desk.toggle(label)
        return wrong

    def _do(self, said: Instruction | Unknown) -> str:
        desk = self._desk
        if isinstance(said, Unknown):
            return said.what
        match said.word:
            case PlainWord.ACCEPT:
                return self._does(desk.accept_page)
            case PlainWord.STRIKE:
                return self._strike(said.rest)
            case PlainWord.NONE:
                return self._label(())
            case PlainWord.KEEP:
                return self._keep(desk.view)
            case PlainWord.SKIP:
                return self._does(desk.skip)
            case PlainWord.UNDO:
                return self._does(desk.undo)
            case PlainWord.REVIEW:
                return self._does(lambda: desk.go_to(AnnotationPhase.REVIEWING))
            case PlainWord.LABEL:
                return self._does(lambda: desk.go_to(AnnotationPhase.LABELLING))
            case PlainWord.SLOT | PlainWord.CLEAR:
                return self._mark(said)
            case PlainWord.TAKE:
                return self._does(desk.take_proposed_slots)
            case PlainWord.COMMENT:
                if not desk.comment(said.rest):
                    return desk.view.said
                self.say(["comment set for this utterance" if said.rest else "comment removed"])
            case PlainWord.GUIDE:
                return self._guide(said.rest)
            case PlainWord.STATUS:
                self.read_again()
                self.say(status_lines(desk.view))
            case PlainWord.AGAIN:
                self._show()
            case _:
                self.say(f"{word}: {word.help}" for word in PlainWord)
                self.say(["labels: ids, keys or titles, separated by blanks; saved at once"])
        return ""

    def _strike(self, rest: str) -> str:
        numbers = rest.replace(",", " ").split()
        page = self._desk.view.page
        if not page:
            return "there is no page of proposals here"
        wrong = next((one for one in numbers if not one.isdecimal() or not 1 <= int(one) <= len(page)), None)
        if wrong is not None or not numbers:
            return f"write numbers from 1 to {len(page)}: strike 2 5"
        for one in dict.fromkeys(map(int, numbers)):
            self._desk.strike_number(one)
        struck = [str(line.number) for line in self._desk.view.page if line.struck]
        self.say([f"struck: {', '.join(struck) or 'none'}; `accept` saves the page"])
        return ""

    def _mark(self, said: Instruction) -> str:
        """Marks words, numbered from 1, as a slot, or removes the slots of words."""
        found = re.fullmatch(r"(?:(\S+)\s+)?([0-9]+)(?:-([0-9]+))?", said.rest)
        marks = said.word is PlainWord.SLOT
        if found is None or (found[1] is not None) is not marks:
            return f"write {said.word} {'CONCEPT ' * marks}4, or {said.word} {'CONCEPT ' * marks}4-5"
        start, end = int(found[2]) - 1, int(found[3] or found[2])
        if not marks:
            return self._does(lambda: self._desk.clear_slots(start, end))
        known = [one.id for one in self._labels.concepts]
        concept = next((one for one in known if one.casefold() == found[1].casefold()), found[1])
        return self._does(lambda: self._desk.mark(concept, start, end))

    def _keep(self, view: AnnotationView) -> str:
        if view.item is None or not view.item.saved:
            return "there are no saved labels to keep"
        return self._does(self._desk.save)

    def _guide(self, rest: str) -> str:
        if not rest:
            self.say(guide_lines(self._labels))
            return ""
        meant = labels_of(rest, self._labels)
        if isinstance(meant, Unknown):
            return meant.what
        for id_ in meant.intents:
            label = self._labels.label(id_)
            self.say(label_lines(label) if label is not None else ())
        return ""

    def _take_in(self) -> None:
        before = _in_sight(self._desk.view)
        self._desk.refresh(self._room.refresh())
        if _in_sight(self._desk.view) != before:
            self.say(["other annotators have made progress; this is next now"])
            self._show()


def _in_sight(view: AnnotationView) -> tuple[str, ...]:
    if view.item is not None:
        return (view.item.utterance,)
    return tuple(line.utterance for line in view.page)
