"""What is wrong with one file of transcripts, gathered so that all is told at once, up to a limit."""

from __future__ import annotations

from harness.model.errors import InputError, InputProblems, Place

MOST_TOLD = 50
LONGEST_SHOWN = 60


class Problems:
    """Problems of one file, in the order in which they are found; the first MOST_TOLD are kept, the rest counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._told: list[InputError] = []
        self._untold = 0

    def add(self, line: int, column: int, what: str, remedy: str) -> None:
        """line and column count from 1; 0 stands for "not known"."""
        self.take(InputError(what, place=Place(self.file, line, column), remedy=remedy))

    def take(self, problem: InputError) -> None:
        """Takes a problem that has its place already."""
        if len(self._told) < MOST_TOLD:
            self._told.append(problem)
        else:
            self._untold += 1

    def refuse(self) -> None:
        """Raises InputProblems when there are any."""
        if not self._told:
            return
        more = []
        if self._untold:
            what = "and 1 more problem" if self._untold == 1 else f"and {self._untold} more problems"
            more.append(InputError(what, place=Place(self.file)))
        raise InputProblems([*self._told, *more])


def shown(text: str) -> str:
    """A piece of a file for a message: in quotes, its middle left out when it is long."""
    if len(text) > LONGEST_SHOWN:
        text = f"{text[: LONGEST_SHOWN // 2]}…{text[-LONGEST_SHOWN // 2 :]}"
    return repr(text)


def repetition(id_: str, line: int) -> tuple[str, str]:
    """What is wrong with an id that was there before, and the remedy."""
    return f"the id {shown(id_)} is there already, in line {line}", "Ids that differ in case only are one; rename one"
