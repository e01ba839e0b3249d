"""A command whose options have former names or an optional FILE, and whose help fits a screen."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import click

from harness.base.foreign import plain_text
from harness.base.whole_file import demand_folder
from harness.cli.streams import STREAM
from harness.model.errors import InputError
from harness.model.numbers import exact

HELP_LINES = 40
"""A longer help shows only the usual options."""
_SHOWS_ALL = "harness.whole_help"
"""Key of a context's `meta`: whether the help shows all options."""
_TARGETS = "harness.targets"
"""Key of a context's `meta`: the option that names each file to write, by its real path."""


class Option(click.Option):
    """An option with hidden former names, or one whose FILE is optional (default: standard output).

    - former: `--name`, or `--name=value` for a former flag that stands for a value.
    - suffixes: makes FILE optional. The next word is FILE only if it ends with one of these.
    - any_word: the next word is FILE unless it is an option. For options whose FILE used to be required.
    - heading: of its section in the help; "" for the options that are used most.
    - writes: the value is a file that the command writes. Its folder must exist, which is checked before anything is
      read or played. It may exist: results can be made again. What was replaced is reported at the end.
    - reported: a new file is reported, too, since the command prints nothing else about it. Pages always are.
    """

    def __init__(
        self,
        *args: Any,
        former: Sequence[str] = (),
        suffixes: Sequence[str] = (),
        any_word: bool = False,
        heading: str = "",
        writes: bool = False,
        reported: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.heading = heading
        self.writes = writes or bool(suffixes)
        self.reported = reported or "--html" in self.opts
        self.former: dict[str, str] = {}
        for former_name in former:
            name, _, stands_for = former_name.partition("=")
            self.former[name] = stands_for
        self.suffixes = tuple(suffixes)
        self.any_word = any_word

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        converted = super().type_cast_value(ctx, value)
        if self.writes and converted not in (None, "", STREAM) and not ctx.resilient_parsing:
            target = Path(converted)
            demand_folder(target)
            self._demand_own_file(ctx, target)
            previous = target.stat() if os.path.isfile(target) else None
            if previous is not None or self.reported:
                ctx.call_on_close(partial(_report_written, target, previous))
        return converted

    def _demand_own_file(self, ctx: click.Context, target: Path) -> None:
        """Raises InputError if another option writes to the same file. Several may name one pipe or device."""
        if os.path.exists(target) and not os.path.isfile(target):
            return
        option_by_target: dict[str, str] = ctx.meta.setdefault(_TARGETS, {})
        name = next(opt for opt in self.opts if opt[:2] == "--")
        other = option_by_target.setdefault(os.path.realpath(target), name)
        if other != name:
            first, second = sorted((other, name), reverse=True)
            raise InputError(
                f"{first} and {second} name the same file", remedy="Choose another file name for one of them"
            )

    def takes(self, word: str) -> bool:
        """Whether the word after an option with an optional FILE is its FILE. `--json=FILE` always is."""
        if word == STREAM:
            return True
        return not word.startswith("-") and (self.any_word or PurePath(word).suffix.lower() in self.suffixes)

    def current_name(self, former: str) -> str:
        """The name that replaces a former one; for a short one a short name, if there is one."""
        return next((name for name in self.opts if name[:2] == "--" or former[:2] != "--"), self.opts[-1])

    @property
    def written_default(self) -> str:
        """The default as a user would write it, or in words; "" if there is none to show."""
        if isinstance(self.show_default, str):
            return self.show_default
        if not self.show_default or self.default in (None, "") or callable(self.default) or self.is_flag:
            return ""
        values = self.default if isinstance(self.default, (list, tuple)) else (self.default,)
        return " ".join(exact(value) if isinstance(value, float) else str(value) for value in values)

    def notes(self) -> list[str]:
        """The default ("" without one), then which numbers are allowed and whether it is required, if that applies."""
        limits = numbers_allowed(self.type)
        notes = [self.written_default]
        if limits not in ("", "at least 0") and self.name != "seed":
            notes.append(limits)
        if self.required:
            notes.append("required")
        return notes

    def make_metavar(self, ctx: click.Context) -> str:
        return super().make_metavar(ctx).removesuffix(" RANGE")

    def get_help_extra(self, ctx: click.Context) -> Any:
        return {}  # it is in the sentence, see get_help_record

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names and the help, with `(default: 480; 64 to 9600)` at the end of its first sentence."""
        record = super().get_help_record(ctx)
        default, *notes = self.notes()
        if default:
            notes.insert(0, f"default: {default}")
        if record is None or not notes:
            return record
        first, stop, rest = record[1].partition(". ")
        return record[0], f"{first.removesuffix('.')} ({'; '.join(notes)}){stop or '.'}{rest}"


def _report_written(target: Path, previous: os.stat_result | None) -> None:
    """Reports that a file was written or replaced, if it was. previous: the file that was there; None without one."""
    try:
        current = target.stat()
    except OSError:
        return
    with suppress(OSError):  # standard output is closed
        if os.path.samestat(current, os.fstat(1)):  # a path such as /dev/stdout
            return
    if previous is None or (current.st_ino, current.st_mtime_ns) != (previous.st_ino, previous.st_mtime_ns):
        verb = "wrote" if previous is None else "replaced"
        click.echo(f"harness: {verb} {plain_text(str(target), 300)}", err=True)


def numbers_allowed(kind: click.ParamType[Any]) -> str:
    """`64 to 9600`, `at least 1`, `above 0, at most 1`; "" for any number."""
    if not isinstance(kind, (click.IntRange, click.FloatRange)):
        return ""
    lower, upper = _end_text(kind.min), _end_text(kind.max)
    if lower and upper and not (kind.min_open or kind.max_open):
        return f"{lower} to {upper}"
    limits = []
    if lower:
        limits.append(f"{'above' if kind.min_open else 'at least'} {lower}")
    if upper:
        limits.append(f"{'below' if kind.max_open else 'at most'} {upper}")
    return ", ".join(limits)


def _end_text(end: float | None) -> str:
    """The end of a range; "" for an open one."""
    if end is None:
        return ""
    return str(end) if isinstance(end, int) else exact(end)


def count_values(option: click.Option, following: Sequence[str]) -> int:
    """How many of the words that follow an option are its values."""
    if option.is_flag or option.count:
        return 0
    if isinstance(option, Option) and option.suffixes:
        return int(bool(following) and option.takes(following[0]))
    return option.nargs


class Command(click.Command):
    """A command whose options may be our `Option`.

    If its help is longer than HELP_LINES, it leaves out the options below headings, which `--help-all` describes.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        headings = dict.fromkeys(param.heading for param in params if isinstance(param, Option) and param.heading)
        if headings:
            help_all = click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_whole_help,
                help=f"Describe all options: {', '.join(headings).lower()}.",
            )  # fmt: skip
            params.insert(-1, help_all)  # before --help
        return params

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # While _SHOWS_ALL is not set, `format_options` writes all options, so that the whole help can be measured.
        whole = click.HelpFormatter(width=formatter.width)
        super().format_help(ctx, whole)
        if ctx.meta.setdefault(_SHOWS_ALL, whole.getvalue().count("\n") <= HELP_LINES):
            formatter.write(whole.getvalue())
        else:
            super().format_help(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shows_all = ctx.meta.get(_SHOWS_ALL, True)
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            heading = param.heading if isinstance(param, Option) else ""
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if param.name == "help_all" and shows_all:
                continue
            if record and (shows_all or not heading):
                sections.setdefault(heading or "Options", []).append(record)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._rewrite(ctx, args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click's parser does not set it
            raise

    def _rewrite(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words with the current names of options, and with `=FILE` at options whose FILE is optional."""
        options = [opt for opt in self.params if isinstance(opt, Option)]
        former = {old: (opt.current_name(old), value) for opt in options for old, value in opt.former.items()}
        option_by_name = {name: opt for opt in options for name in opt.opts}
        flags = {name[1] for opt in options if opt.is_flag or opt.count for name in opt.opts if len(name) == 2}
        rewritten: list[str] = []
        words = list(args)
        while words:
            word = words.pop(0)
            if word == "--":
                rewritten += [word, *words]
                break
            leading_flags, short_option, short_value = _split_cluster(word, flags)
            if short_option in former:  # its words are read separately
                rewritten += [leading_flags] if leading_flags else []
                words[:0] = [short_option, short_value] if short_value else [short_option]
                continue
            name, equals, value = word.partition("=")
            if name in former:
                current, stands_for = former[name]
                if name == "-h" and (not words or words[0] in ("-h", "--help")):  # as everywhere else
                    current = "--help"
                elif not ctx.resilient_parsing:
                    click.echo(f"harness: {name} is now {current} {stands_for}".rstrip(), err=True)
                name, equals, value = (current, "=", stands_for) if stands_for else (current, equals, value)
            opt = option_by_name.get(name)
            values = [] if equals or opt is None else words[: count_values(opt, words)]
            del words[: len(values)]
            if opt is not None and opt.suffixes and not equals:
                file_name = values[0] if values else STREAM
                rewritten.append(f"{name}={file_name}")
            else:
                rewritten += [name + equals + value, *values]
        return rewritten


def _split_cluster(word: str, flags: Collection[str]) -> tuple[str, str, str]:
    """The flags, the option after them, and its value in a word of short options: `-v`, `-o`, `FILE` of `-voFILE`.

    "" for what is missing. All are "" for a word of another kind, or of flags only.
    """
    if len(word) < 3 or word[0] != "-" or word[1] == "-":
        return "", "", ""
    index = next((index for index in range(1, len(word)) if word[index] not in flags), 0)
    if not index:
        return "", "", ""
    leading_flags = word[:index] if index > 1 else ""
    return leading_flags, f"-{word[index]}", word[index + 1 :]


def _show_whole_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
