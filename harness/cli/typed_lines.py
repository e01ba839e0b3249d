"""A sitting in lines: commands come in, one a line, and answers go out at once."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import ClassVar, TextIO

from harness.cli.streams import demand_reader, safe_stream, standard_output
from harness.model.errors import InputError, LogError

DONE, WRONG_LINE, NOT_SAVED = 0, 2, 3
READ_AGAIN_S = 10.0


class TypedSitting(ABC):
    """A sitting of a rater over standard output and a source of lines; None is standard input.

    person: input comes from a terminal, where a wrong line ends nothing. Any other source is a script. It ends at the
    first line that is wrong or cannot be saved: later lines would apply to something else. status: exit status, DONE
    until then.
    """

    UNREADABLE: ClassVar[str]
    """The fault when the files of others cannot be read."""

    def __init__(self, source: TextIO | None = None) -> None:
        self._read_at_s = time.monotonic()
        self._source = sys.stdin if source is None else source
        reconfigure = getattr(self._source, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        self._out = standard_output()
        demand_reader()
        self.person = self._source.isatty()
        self.status = DONE

    def __iter__(self) -> Iterator[str]:
        """Non-empty lines, stripped; a terminal shows a prompt for each."""
        while True:
            if self.person:
                self._out.write("> ")
                self._out.flush()
            line = self._source.readline()
            if not line:
                return
            line = line.strip()
            if line:
                yield line

    def say(self, lines: Iterable[str]) -> None:
        """Writes lines, which must be escaped already."""
        for line in lines:
            self._out.write(line + "\n")
        self._out.flush()

    def complain(self, what: str) -> None:
        """A line on standard error."""
        safe_stream(sys.stderr).write(f"harness: {what}\n")

    def carry_out(self, do: Callable[[], str]) -> bool:
        """Does what a line says. do: returns what is wrong with the line, "" for nothing. False ends a script."""
        try:
            wrong = do()
        except InputError as error:  # a comment that cannot be kept
            wrong = str(error)
        except LogError as error:
            self.complain(f"not saved: {error}")
            self.status = NOT_SAVED
            return self.person
        if wrong:
            self.say([wrong])
            self.status = DONE if self.person else WRONG_LINE
        return not wrong or self.person

    def run(self) -> int:
        """Sits until `_take` returns False, the input ends or the reader of the output has gone; the exit status."""
        with suppress(BrokenPipeError):
            self._begin()
            for line in self:
                if not self._take(line):
                    break
            self._end()
        return self.status

    def catch_up(self, *, finished: bool) -> None:
        """Takes in what others did, at intervals, and whenever nothing is left."""
        if finished or time.monotonic() - self._read_at_s > READ_AGAIN_S:
            self.read_again()

    def read_again(self) -> None:
        self._read_at_s = time.monotonic()
        try:
            self._take_in()
        except LogError as error:
            self.complain(f"{self.UNREADABLE}, and saving may fail: {error}")

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _take(self, line: str) -> bool:
        """Carries out a line; False ends the sitting."""

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def _take_in(self) -> None:
        """Reads the files again, and shows what has changed; LogError."""
