"""Parameter types and options that several verbs share."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, TypeVar

import click

from harness.base.places import shipped_folder
from harness.base.whole_file import WholeFile

F = TypeVar("F", bound=Callable[..., object])
STREAM = "-"
"""Standard output."""


class ShippedFile(click.Path):
    """A path; one below `devices/` or `scenarios/` that is not here means the project's own file of that name.

    So the commands of the manual work from an installed package too, in any folder.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if not path.is_absolute() and path.parts and path.parts[0] in ("devices", "scenarios"):
            shipped = shipped_folder(path.parts[0]).joinpath(*path.parts[1:])
            if not path.exists() and shipped.exists():
                return shipped
        return path


SHIPPED_FILE = ShippedFile()


class Option(click.Option):
    """An option with former names, which still work and are not shown, or one whose FILE may be left out.

    suffixes: of an option whose FILE may be left out (standard output), those by which the next word is its FILE.
    any_word: … any next word that is no option; for options that needed a FILE before.
    """

    def __init__(
        self,
        *args: Any,
        former: Sequence[str] = (),
        suffixes: Sequence[str] = (),
        any_word: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.former = tuple(former)
        self.suffixes = tuple(suffixes)
        self.any_word = any_word

    def takes(self, word: str) -> bool:
        """Whether the word after the option is its FILE. `--json=FILE` always is."""
        if word == STREAM:
            return True
        return not word.startswith("-") and (self.any_word or PurePath(word).suffix.lower() in self.suffixes)


class Command(click.Command):
    """A command whose options may be of our `Option`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [one for one in self.params if isinstance(one, Option)]
        former = {old: one.opts[0] for one in options for old in one.former}
        optional = {name: one for one in options if one.suffixes for name in one.opts}
        rewritten: list[str] = []
        words = list(args)
        while words:
            word = words.pop(0)
            if word == "--":
                rewritten += [word, *words]
                break
            name, equals, value = word.partition("=")
            name = former.get(name, name)
            if name in optional and not equals:
                equals, value = "=", words.pop(0) if words and optional[name].takes(words[0]) else STREAM
            rewritten.append(name + equals + value)
        return super().parse_args(ctx, rewritten)


def json_option(name: str, help: str) -> Callable[[F], F]:
    """`--json` prints to standard output, `--json FILE` writes; the command gets whether it was given, and prints."""
    return _printed("--json", name, help, (".json", ".jsonl"))


def csv_option(name: str, help: str) -> Callable[[F], F]:
    """`--csv`, as `json_option`."""
    return _printed("--csv", name, help, (".csv",))


def target_option(option: str, name: str, help: str) -> Callable[[F], F]:
    """`--json` or `--csv` of a command that prints other text beside; it gets FILE, STREAM without one, or None."""
    return click.option(
        option, name, cls=Option, suffixes=(f".{option[2:]}",), any_word=True, metavar="[FILE]", help=help + _WRITES
    )


_WRITES = " FILE: write it there."


def _printed(option: str, name: str, help: str, suffixes: Sequence[str]) -> Callable[[F], F]:
    return click.option(
        option, name, cls=Option, suffixes=suffixes, metavar="[FILE]", callback=_redirected, help=help + _WRITES
    )


def _redirected(ctx: click.Context, param: click.Parameter, value: str | None) -> bool:
    if value is not None and value != STREAM and not ctx.resilient_parsing:
        ctx.with_resource(_Redirected(value))
    return value is not None


class _Redirected:
    """Standard output goes into a file, which is there whole when the command has ended, and not after an error."""

    def __init__(self, name: str) -> None:
        self._file = WholeFile(name)
        self._before = sys.stdout

    def __enter__(self) -> None:
        self._before, sys.stdout = sys.stdout, io.TextIOWrapper(io.BufferedWriter(_Into(self._file)), "utf-8")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        written, sys.stdout = sys.stdout, self._before
        with self._file as file:
            if kind is None or issubclass(kind, SystemExit | click.exceptions.Exit):
                written.flush()
                file.keep()


class _Into(io.RawIOBase):
    def __init__(self, file: WholeFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._file.write(bytes(content))
        return len(content)
