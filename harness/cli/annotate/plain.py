"""Annotating in lines: a page or an utterance as labelled lines, a command a line, and what was saved."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.annotation.view import AnnotationPhase, AnnotationView
from harness.base.foreign import counted, plain_text
from harness.cli.typed_lines import TypedLines
from harness.model.annotation import Example, Intents, Label, LabelSet
from harness.model.errors import LogError
from harness.model.understanding import JOINT, joined

LONGEST_TOLD = 60


class PlainWord(StrEnum):
    """The commands of plain annotation."""

    ACCEPT = "accept"
    STRIKE = "strike"
    NONE = "none"
    KEEP = "keep"
    SKIP = "skip"
    UNDO = "undo"
    COMMENT = "comment"
    REVIEW = "review"
    LABEL = "label"
    GUIDE = "guide"
    STATUS = "status"
    AGAIN = "again"
    HELP = "help"
    QUIT = "quit"


HELP: dict[PlainWord, str] = {
    PlainWord.ACCEPT: "accept all of the page that is not struck, and go on; `a` for short",
    PlainWord.STRIKE: "strike what is wrong on the page, by number, again takes it back: strike 2 5; 2 5 for short",
    PlainWord.NONE: "label the utterance: it has no label (where the label set allows that)",
    PlainWord.KEEP: "keep the labels that were saved, after what is proposed was shown",
    PlainWord.SKIP: "leave the utterance for the end; of proposals, the group for later",
    PlainWord.UNDO: "take back the last page or utterance, again and again",
    PlainWord.COMMENT: "comment TEXT; it is kept with the labels that follow",
    PlainWord.REVIEW: "go to the proposals",
    PlainWord.LABEL: "go to what is to be labelled by hand",
    PlainWord.GUIDE: "the labels with their guide; guide LABEL: one of them",
    PlainWord.STATUS: "how far you are",
    PlainWord.AGAIN: "print the page or the utterance again",
    PlainWord.HELP: "print this",
    PlainWord.QUIT: "leave; everything is saved",
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """A command, and what stands behind it."""

    word: PlainWord
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """All labels of the utterance in sight."""

    intents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is wrong with a line, and the nearest right one."""

    what: str


def parse(line: str, labels: LabelSet, *, reviewing: bool) -> Instruction | Labels | Unknown:
    """What a line means. Commands are whole words; labels are ids, keys or titles, with blanks or # between them."""
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
    hint = f"Did you mean {near[0]!r}?" if near else "help lists the commands"
    return Unknown(f"'{plain_text(line, LONGEST_TOLD)}' is no command. {hint}")


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
            hint = f"Did you mean {near[0]!r}?" if near else "guide lists the labels, help the commands"
            return Unknown(f"'{plain_text(part, LONGEST_TOLD)}' is no label. {hint}")
        found.append(one)
    return Labels(tuple(dict.fromkeys(found)))


def _meant(written: str, labels: LabelSet) -> str | None:
    """The label that is meant; what is written exactly so goes before what differs in case."""
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
    """The page or the utterance in sight."""
    match view.phase:
        case AnnotationPhase.REVIEWING:
            yield from _lines_of_page(view)
        case AnnotationPhase.LABELLING:
            yield from _lines_of_item(view, labels)
        case AnnotationPhase.FINISHED:
            yield "nothing is left to settle" if view.adjudicating else "nothing is left to do"


def status_lines(view: AnnotationView) -> Iterator[str]:
    """How far the annotator is."""
    count = view.count
    yield f"{plain_text(view.annotator)}: {count.done} of {count.total} done, {count.left} left"
    if not view.adjudicating:
        yield f"of those left: {count.to_review} to review, {count.to_label} to label; struck so far: {count.struck}"
    yield f"left for the end: {count.skipped}"
    if view.pace_s is not None and view.left_s is not None:
        yield f"pace: {view.pace_s:.1f} s an utterance, about {max(1, round(view.left_s / 60))} min left"


def guide_lines(labels: LabelSet) -> Iterator[str]:
    """The label set in short."""
    yield shown(labels.title)
    if labels.intro:
        yield shown(labels.intro)
    for label in labels.labels:
        key = f" (key {label.key})" if label.key else ""
        alone = ", stands alone" if label.alone else ""
        yield shown(f"{label.id}{key}{alone}: {label.description or label.title}")
    for first, second in labels.never_together:
        yield shown(f"never together: {first} and {second}")


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


def labelled(intents: Intents) -> str:
    """Labels of an utterance as they stand in files, or that there are none."""
    return plain_text(joined(intents) or "no label", LONGEST)


def _lines_of_page(view: AnnotationView) -> Iterator[str]:
    group = view.group
    if group is not None:
        left = f"{group.left} of {group.total} left"
        yield f"group {group.number} of {group.groups}, proposed: {labelled(group.intents)} ({left})"
    for line in view.page:
        yield f"{line.number}{' struck' if line.struck else ''}: {shown(line.text)}"
    yield "accept, or numbers of what is wrong"


def _lines_of_item(view: AnnotationView, labels: LabelSet) -> Iterator[str]:
    item, count = view.item, view.count
    if item is None:
        return
    yield f"utterance {count.done + 1} of {count.total}: {shown(item.text)}"
    for number, given in enumerate(item.inputs, 1):
        comment = f", comment: {shown(given.comment)}" if given.comment else ""
        yield f"given {number}: {labelled(given.intents)}{comment}"
    if item.struck:
        yield f"struck: {labelled(item.proposal or ())}"
    elif item.proposal is not None:
        yield f"proposed: {labelled(item.proposal)}"
    if item.saved:
        yield f"yours: {labelled(item.chosen)}; `keep`, or labels again"
    else:
        yield f"labels? ({counted(len(labels.labels), 'label')}, `guide` lists them)"


def _example(one: Example, own: Intents) -> str:
    labels = "" if one.labels in ((), own) else f" [{joined(one.labels)}]"
    return f"{one.text}{labels}{f' ({one.why})' if one.why else ''}"


DONE, WRONG_LINE, NOT_SAVED = 0, 2, 3
READ_AGAIN_S = 10.0


def annotate_plainly(room: AnnotationRoom, desk: AnnotationDesk, *, source: TextIO | None = None) -> int:
    """A sitting over standard input and output, until `quit` or the end of the input; the exit status.

    A script, which is any input that is no terminal, ends at the first line that cannot be done (status 2), or that
    cannot be saved (3): all lines after it would be about something else.
    """
    return _Sitting(room, desk, TypedLines(source)).run()


class _Sitting:
    def __init__(self, room: AnnotationRoom, desk: AnnotationDesk, lines: TypedLines) -> None:
        self._room, self._desk, self._lines = room, desk, lines
        self._labels = room.label_set
        self._status = DONE
        self._read_at_s = time.monotonic()

    def run(self) -> int:
        self._lines.hold(self._begin, self._take, self._end)
        return self._status

    def _begin(self) -> None:
        self._lines.say([f"project {shown(self._room.project.id)}; `help` lists the commands"])
        self._show()

    def _show(self) -> None:
        self._lines.say(sight_lines(self._desk.view, self._labels))

    def _end(self) -> None:
        view = self._desk.view
        kept = "what was given last is not saved, all else is" if self._status == NOT_SAVED else "everything is saved"
        struck = sum(line.struck for line in view.page)
        if struck and self._status != NOT_SAVED:
            kept += f", but the page in sight, of which {struck} {'is' if struck == 1 else 'are'} struck"
        self._lines.say([f"ended: {view.count.done} of {view.count.total} done, {view.count.left} left; {kept}"])

    # Commands

    def _take(self, line: str) -> bool:
        """Does what a line says; False when the sitting is to end."""
        self._desk.present()
        meant = parse(line, self._labels, reviewing=self._desk.view.phase is AnnotationPhase.REVIEWING)
        if isinstance(meant, Instruction) and meant.word is PlainWord.QUIT:
            return False
        try:
            wrong = self._label(meant.intents) if isinstance(meant, Labels) else self._do(meant)
        except LogError as error:
            self._lines.complain(f"not saved: {error}")
            self._status = NOT_SAVED
            return self._lines.person
        if wrong:
            self._lines.say([shown(wrong)])
            self._status = DONE if self._lines.person else WRONG_LINE
            return self._lines.person
        self._catch_up()
        return True

    def _does(self, call: Callable[[], bool]) -> str:
        """Does it and shows what comes next; what is wrong, "" when nothing is."""
        if not call():
            return self._desk.view.said or "that cannot be done here"
        said = self._desk.view.said
        if said:
            self._lines.say([shown(said)])
        self._show()
        return ""

    def _label(self, intents: tuple[str, ...]) -> str:
        """Makes these the labels of the utterance in sight, and saves them."""
        desk, item = self._desk, self._desk.view.item
        if item is None:
            return "no utterance to label is in sight"
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
            case PlainWord.COMMENT:
                if not desk.comment(said.rest):
                    return desk.view.said
                self._lines.say(["comment kept for this utterance" if said.rest else "comment taken away"])
            case PlainWord.GUIDE:
                return self._guide(said.rest)
            case PlainWord.STATUS:
                self._read_again()
                self._lines.say(status_lines(desk.view))
            case PlainWord.AGAIN:
                self._show()
            case _:
                self._lines.say(f"{word.value}: {text}" for word, text in HELP.items())
                self._lines.say(["labels: their ids, keys or titles, with blanks between; they are saved at once"])
        return ""

    def _strike(self, rest: str) -> str:
        numbers = rest.replace(",", " ").split()
        page = self._desk.view.page
        if not page:
            return "no page of proposals is in sight"
        wrong = next((one for one in numbers if not one.isdecimal() or not 1 <= int(one) <= len(page)), None)
        if wrong is not None or not numbers:
            return f"write numbers from 1 to {len(page)}: strike 2 5"
        for one in dict.fromkeys(map(int, numbers)):
            self._desk.strike_number(one)
        struck = [str(line.number) for line in self._desk.view.page if line.struck]
        self._lines.say([f"struck: {', '.join(struck) or 'none'}; `accept` saves the page"])
        return ""

    def _keep(self, view: AnnotationView) -> str:
        if view.item is None or not view.item.saved:
            return "nothing waits to be kept"
        return self._does(self._desk.save)

    def _guide(self, rest: str) -> str:
        if not rest:
            self._lines.say(guide_lines(self._labels))
            return ""
        meant = labels_of(rest, self._labels)
        if isinstance(meant, Unknown):
            return meant.what
        for id_ in meant.intents:
            label = self._labels.label(id_)
            self._lines.say(label_lines(label) if label is not None else ())
        return ""

    # Around it

    def _catch_up(self) -> None:
        """Now and then, and whenever nothing is left, looks for rows that were given elsewhere."""
        finished = self._desk.view.phase is AnnotationPhase.FINISHED
        if finished or time.monotonic() - self._read_at_s > READ_AGAIN_S:
            self._read_again()

    def _read_again(self) -> None:
        self._read_at_s = time.monotonic()
        before = _in_sight(self._desk.view)
        try:
            rows = self._room.refresh()
        except LogError as error:
            self._lines.complain(f"the project cannot be read again, saving may fail: {error}")
            return
        self._desk.refresh(rows)
        if _in_sight(self._desk.view) != before:
            self._lines.say(["others have gone on meanwhile; this is in sight now"])
            self._show()


def _in_sight(view: AnnotationView) -> tuple[str, ...]:
    if view.item is not None:
        return (view.item.utterance,)
    return tuple(line.utterance for line in view.page)
