"""Parameter types and options that several verbs share."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from harness.base.places import shipped_folder
from harness.base.whole_file import WholeFile
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.model.offline import Task

F = TypeVar("F", bound=Callable[..., object])
Declared = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What declares an option or several: a decorator of a command."""
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


class WordOf(click.Choice[str]):
    """The words of an enumeration. The command gets the member, not its text."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__([one.value for one in kind])
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._kind(super().convert(str(value), param, ctx))


def share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback: a share (0.08), or a percentage (8%). A rate of errors may be above 1, as a percentage."""
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    found = number / 100 if text.endswith("%") else number
    if not 0 <= found < math.inf:
        raise click.BadParameter(f"{value!r} is not a share; write 0.08 or 8%", ctx, param)
    if found > 1 and not text.endswith("%"):
        raise click.BadParameter(f"{text} would be {100 * found:g} %; write {text}% if you mean per cent", ctx, param)
    return found


def choose_one(remedy: str = "Choose one", **given: object) -> None:
    """InputError for more than one of options that exclude each other: `choose_one(json=as_json, csv=as_csv)`."""
    if sum(bool(value) for value in given.values()) > 1:
        *names, last = (f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"{', '.join(names)} and {last} exclude each other", remedy=remedy)


class Option(click.Option):
    """An option with hidden former names, or one whose FILE is optional (default: standard output).

    - suffixes: the next word is taken as FILE only when it ends with one of these.
    - any_word: takes any next word that is not an option. For options whose FILE used to be required.
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


_WRITES = " FILE: write to this file."


def _printed(option: str, name: str, help: str, suffixes: Sequence[str]) -> Callable[[F], F]:
    return click.option(
        option, name, cls=Option, suffixes=suffixes, metavar="[FILE]", callback=_redirected, help=help + _WRITES
    )


def _redirected(ctx: click.Context, param: click.Parameter, value: str | None) -> bool:
    if value is not None and value != STREAM and not ctx.resilient_parsing:
        ctx.with_resource(_standard_output_into(value))
    return value is not None


@contextmanager
def _standard_output_into(name: str) -> Iterator[None]:
    """Standard output goes into a file, which is there whole when the command has ended, and not after an error."""
    with WholeFile(name) as file:
        before, sys.stdout = sys.stdout, io.TextIOWrapper(io.BufferedWriter(file), "utf-8")
        written: TextIO = sys.stdout
        ended: BaseException | None = None
        try:
            yield
        except (SystemExit, click.exceptions.Exit) as leaving:
            ended = leaving
        finally:
            sys.stdout = before
        written.flush()
        file.keep()
        if ended is not None:
            raise ended


def options_as(name: str, kind: type[Any], *declared: Declared) -> Declared:
    """Options that go together: the command gets one object of `kind`, a frozen dataclass, under `name`.

    An option's name is that of its field: `click.option("--by", "groups")` fills `groups`. Fields without an option
    keep their defaults. What the options demand of each other stands in the `__post_init__` of `kind`.
    """

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        own: list[str] = []

        @wraps(command)
        def called(*arguments: Any, **given: Any) -> Any:
            made = kind(**{field: given.pop(field) for field in own})
            return command(*arguments, **{name: made}, **given)

        before = len(getattr(called, "__click_params__", ()))
        wrapped: Callable[..., Any] = called
        for option in reversed(declared):
            wrapped = option(wrapped)
        own += [one.name for one in wrapped.__click_params__[before:]]  # type: ignore[attr-defined]
        return wrapped

    return declare


session_arguments = click.argument("sessions", metavar="SESSION…", nargs=-1, required=True)
"""`sessions`: one or several by path, or by name below ./sessions; `session_folder` finds their folders."""


@dataclass(frozen=True, slots=True)
class RatedAsked:
    """Sessions whose judgments are evaluated; `sessions.rated_sessions` finds the folders.

    named: sessions, or one round file. round_id: whose judgments count; None for all, or for those of the file.
    with_programs: programs count as raters.
    """

    named: tuple[str, ...]
    round_id: str | None
    with_programs: bool = False


def rated_options(name: str = "asked") -> Declared:
    """SESSION… | ROUND.yaml, --round and --with-programs, as `RatedAsked`."""
    return options_as(
        name,
        RatedAsked,
        click.argument("named", metavar="SESSION… | ROUND.yaml", nargs=-1, required=True),
        click.option("--round", "round_id", metavar="ID", help="Only judgments of this round."),
        click.option(
            "--with-programs", is_flag=True, help="Count programs as raters like people (default: kept apart)."
        ),
    )


def seed_option(
    help: str, default: int | None = None, *, most: int | None = None, show_default: bool = True
) -> Callable[[F], F]:
    """`--seed` as `seed`."""
    return click.option(
        "--seed", type=click.IntRange(0, most), default=default, show_default=show_default and default is not None,
        help=help,
    )  # fmt: skip


def output_option(
    help: str, *, metavar: str | None = None, folder: bool = False, required: bool = False
) -> Callable[[F], F]:
    """`--output` as `out`, a path to a file or a folder; formerly `--out`."""
    kind = click.Path(path_type=Path, file_okay=not folder, dir_okay=folder)
    return click.option(
        "--output", "out", cls=Option, former=("--out",), type=kind, metavar=metavar, required=required, help=help
    )


@dataclass(frozen=True, slots=True)
class Printed:
    """How a result is printed: as text, or as one of these. InputError for both."""

    as_json: bool
    as_csv: bool

    def __post_init__(self) -> None:
        choose_one(json=self.as_json, csv=self.as_csv)


def printed_options(as_json: str, as_csv: str, name: str = "printed") -> Declared:
    """`--json` and `--csv`, with these helps, as `Printed`."""
    return options_as(name, Printed, json_option("as_json", as_json), csv_option("as_csv", as_csv))


@dataclass(frozen=True, slots=True)
class EngineAsked:
    """An engine for lists of files and how it is set. settings: `name=value`; files: (name, path)."""

    task: str
    settings: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    def checked(self) -> Task:
        """The task with its settings; PluginError, InputError. Loads no model."""
        from harness.engines.offline_loading import task_of
        from harness.engines.settings import assigned

        return task_of(self.task, map(assigned, self.settings), self.files)


def engine_options(name: str, task: str, file: str) -> Declared:
    """`-t`, `-s` and `-f` as `EngineAsked`. task, file: the helps of -t and -f."""
    return options_as(
        name,
        EngineAsked,
        click.option("-t", "--task", "task", required=True, metavar="TASK", help=task),
        setting_option("settings", "A setting of the engine; the last wins."),
        click.option(
            "-f", "--setting-file", "files", multiple=True, type=(str, str), metavar="NAME FILE", help=file
        ),
    )  # fmt: skip


def setting_option(name: str, help: str, metavar: str = "NAME=VALUE") -> Callable[[F], F]:
    """`-s` as a tuple of `name=value`."""
    return click.option("-s", "--setting", name, multiple=True, metavar=metavar, help=help)


@dataclass(frozen=True, slots=True)
class Site:
    """Whether people work in their browsers, and how their site is served. None: as `WebOptions` has it."""

    web: bool
    address: str | None
    port: int | None
    tls_cert: Path | None
    tls_key: Path | None
    insecure: bool
    public_url: str | None
    invitations: Path | None

    @property
    def given(self) -> dict[str, Any]:
        """Fields of `harness.web.server.WebOptions` that differ from its defaults."""
        names = ("address", "port", "tls_cert", "tls_key", "insecure", "public_url", "invitations")
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if not (value is None or value is False or value == "")}

    def demand_web(self, whose: str) -> None:
        """InputError for an option of the site without --web. whose: `raters'`."""
        if self.given and not self.web:
            first = next(iter(self.given)).replace("_", "-")
            raise InputError(f"--{first} applies only to the {whose} site", remedy="Add --web")


def site_options(who: str) -> Declared:
    """`--web` and how the site is served, as `site`. who: `raters`, `annotators`, `live`."""
    whose, visitors = ("live", "visitors") if who == "live" else (f"{who}'", who)
    path = click.Path(path_type=Path)
    return options_as(
        "site",
        Site,
        click.option(
            "--web", is_flag=True, help=f"Serve the {whose} site; `harness invite` makes the links to log in."
        ),
        click.option("--address", help="With --web: address to listen on (default: 127.0.0.1)."),
        click.option("--port", type=click.IntRange(0, 65535), help="With --web: port (default: 8765)."),
        click.option("--tls-cert", type=path, help="With --web: TLS certificate, PEM."),
        click.option("--tls-key", type=path, help="With --web: key of the certificate, PEM."),
        click.option("--insecure", is_flag=True, help="With --web: allow other hosts without TLS."),
        click.option(
            "--public-url", metavar="URL", help=f"With --web: address that {visitors} use, if it differs."
        ),
        click.option("--invitations", type=path, help="With --web: file of invitations (default: invitations.json)."),
    )  # fmt: skip
