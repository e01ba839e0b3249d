"""A sitting in lines: commands come in, one a line, and answers go out at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from harness.cli.streams import demand_reader, safe_stream, standard_output


class TypedLines:
    """Standard output, and a source of lines; None is standard input.

    person: somebody types, so that a wrong line ends nothing. A script is any source that is no terminal.
    """

    def __init__(self, source: TextIO | None = None) -> None:
        self._source = sys.stdin if source is None else source
        reconfigure = getattr(self._source, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        self._out = standard_output()
        demand_reader()
        self.person = self._source.isatty()

    def __iter__(self) -> Iterator[str]:
        """Lines that are not empty, without blanks around them; a person is asked for each."""
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
        """Writes lines, which are harmless."""
        for line in lines:
            self._out.write(line + "\n")
        self._out.flush()

    def complain(self, what: str) -> None:
        """A line on standard error."""
        safe_stream(sys.stderr).write(f"harness: {what}\n")

    def hold(self, begin: Callable[[], None], take: Callable[[str], bool], end: Callable[[], None]) -> None:
        """Begins, takes each line until there is none or one is the last (False), and ends.

        Whoever reads the output may go away; then nothing else is done.
        """
        try:
            begin()
            for line in self:
                if not take(line):
                    break
            end()
        except BrokenPipeError:
            sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115 (for the interpreter's last flush)
