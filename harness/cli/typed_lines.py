"""A sitting in lines: commands come in, one a line, and answers go out at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from harness.cli.streams import demand_reader, safe_stream, standard_output
from harness.model.errors import LogError

DONE, WRONG_LINE, NOT_SAVED = 0, 2, 3


class TypedLines:
    """Standard output, and a source of lines; None is standard input.

    person: input comes from a terminal, where a wrong line ends nothing. Any other source is a script. status: exit
    status, DONE until a line is wrong or cannot be saved.
    """

    def __init__(self, source: TextIO | None = None) -> None:
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
        except LogError as error:
            self.complain(f"not saved: {error}")
            self.status = NOT_SAVED
            return self.person
        if wrong:
            self.say([wrong])
            self.status = DONE if self.person else WRONG_LINE
        return not wrong or self.person

    def hold(self, begin: Callable[[], None], take: Callable[[str], bool], end: Callable[[], None]) -> None:
        """Calls `begin`, then `take` for each line until it returns False or the input ends, then `end`.

        Stops without error when the reader of the output has gone.
        """
        try:
            begin()
            for line in self:
                if not take(line):
                    break
            end()
        except BrokenPipeError:
            sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115 (for the interpreter's last flush)
