"""Annotating in lines: a page or an utterance as labelled lines, a command a line, and what was saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from harness.annotation.desk import AnnotationDesk
from harness.annotation.project import AnnotationRoom
from harness.annotation.view import AnnotationPhase, AnnotationView
from harness.cli.annotate.plain_lines import guide_lines, label_lines, shown, sight_lines, status_lines
from harness.cli.annotate.plain_words import HELP, Labels, Said, Unknown, Word, labels_of, parse
from harness.cli.typed_lines import TypedLines
from harness.model.errors import LogError

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
        if isinstance(meant, Said) and meant.word is Word.QUIT:
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

    def _do(self, said: Said | Unknown) -> str:
        desk = self._desk
        if isinstance(said, Unknown):
            return said.what
        match said.word:
            case Word.ACCEPT:
                return self._does(desk.accept_page)
            case Word.STRIKE:
                return self._strike(said.rest)
            case Word.NONE:
                return self._label(())
            case Word.KEEP:
                return self._keep(desk.view)
            case Word.SKIP:
                return self._does(desk.skip)
            case Word.UNDO:
                return self._does(desk.undo)
            case Word.REVIEW:
                return self._does(lambda: desk.go_to(AnnotationPhase.REVIEWING))
            case Word.LABEL:
                return self._does(lambda: desk.go_to(AnnotationPhase.LABELLING))
            case Word.COMMENT:
                if not desk.comment(said.rest):
                    return desk.view.said
                self._lines.say(["comment kept for this utterance" if said.rest else "comment taken away"])
            case Word.GUIDE:
                return self._guide(said.rest)
            case Word.STATUS:
                self._read_again()
                self._lines.say(status_lines(desk.view))
            case Word.AGAIN:
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
