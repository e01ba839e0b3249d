"""Errors of the command line in three parts: which command, what is wrong and where, and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import click

from harness.base.places import similar_path
from harness.cli.command import numbers_allowed

_EXAMPLE = datetime(2026, 1, 31, 18, 30, tzinfo=UTC)


class CommandLineError(click.UsageError):
    """A usage error whose message is complete."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


def reworded_error(error: click.UsageError, hint: str = "") -> CommandLineError:
    """The error in our words: `harness run: --seed: 'x' is not a whole number. Write a whole number`.

    hint: a further sentence.
    """
    if isinstance(error, CommandLineError):
        text = error.message
    else:
        command = error.ctx.command_path if error.ctx is not None else "harness"
        text = f"{command}: {_sentences(error)}"
    if hint:
        full_stop = "" if text.endswith((".", "?")) else "."
        text = f"{text}{full_stop} {hint}"
    return CommandLineError(text, error.ctx)


def _sentences(error: click.UsageError) -> str:
    """What is wrong, and what to do. Errors that are not known here keep click's words."""
    if isinstance(error, click.MissingParameter):
        return _missing_text(error)
    if isinstance(error, click.BadParameter):
        problem = _value_problem(error.message, error.param)
        return f"{_name(error.param)}: {problem}" if error.param is not None else problem
    if isinstance(error, click.BadOptionUsage):
        return _missing_value_text(error)
    if isinstance(error, click.NoSuchOption):
        return f"there is no option {error.option_name}. {_nearest_hint(_similar_options(error), error.ctx)}"
    if (command := getattr(error, "command_name", None)) is not None:  # click.NoSuchCommand, from 8.4
        similar = [repr(name) for name in getattr(error, "possibilities", None) or ()]
        return f"there is no command {command!r}. {_nearest_hint(similar, error.ctx)}"
    arguments_match = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.format_message(), re.DOTALL)
    if arguments_match is not None:
        return f"too many arguments: {arguments_match[1]}. {_usage(error.ctx)}"
    return error.format_message().removesuffix(".")


def _similar_options(error: click.NoSuchOption) -> list[str]:
    """The setting that the user may have meant, otherwise the options with a similar name."""
    option_name = error.option_name.lstrip("-")  # click compares the hyphens, too
    similar = [name for name in error.possibilities or () if difflib.get_close_matches(option_name, [name.lstrip("-")])]
    return _matching_setting(option_name, error.ctx) or similar


def _matching_setting(name: str, ctx: click.Context | None) -> list[str]:
    """[`-s NAME=VALUE`] if the wrong option is the name of an engine's setting, and the command takes settings."""
    if ctx is None or not any("--setting" in parameter.opts for parameter in ctx.command.params):
        return []
    from harness.engines.settings import OF_SCORES  # here, since few need it

    return [f"-s {name}=VALUE"] if name in [setting.name for setting in OF_SCORES] else []


def _missing_text(error: click.MissingParameter) -> str:
    if isinstance(error.param, click.Option) and error.ctx is not None:
        return f"{_name(error.param)} is missing. Add {_spell_option(error.param, error.ctx)}"
    subject = _name(error.param) if error.param is not None else "an argument"
    return f"{subject} is missing. {_usage(error.ctx)}"


def _missing_value_text(error: click.BadOptionUsage) -> str:
    """What to write for an option without its value, or for a flag with one."""
    name = error.option_name
    if error.ctx is None:
        return error.message.removesuffix(".")
    option = next((parameter for parameter in error.ctx.command.params if name in parameter.opts), None)
    if not isinstance(option, click.Option):
        return error.message.removesuffix(".")
    if option.is_flag or option.count:
        return f"{name} takes no value. Write {name} alone"
    values = "a value" if option.nargs == 1 else f"{option.nargs} values"
    return f"{name} needs {values}. Write {_spell_option(option, error.ctx)}"


def _nearest_hint(names: Sequence[str] | None, ctx: click.Context | None) -> str:
    """The similar names; without any, the help that lists all of them."""
    if names:
        return f"Did you mean {' or '.join(names)}?"
    if ctx is None:
        return "See harness --help"
    has_help_all = any("--help-all" in param.opts for param in ctx.command.get_params(ctx))
    return f"See {ctx.command_path} {'--help-all' if has_help_all else '--help'}"


def _usage(ctx: click.Context | None) -> str:
    return "" if ctx is None else " ".join(ctx.get_usage().split())


def _name(parameter: click.Parameter) -> str:
    """The name of a parameter as people write it: `--seed` for an option, `SESSION` for an argument."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.metavar or parameter.human_readable_name.upper()).strip("[]")


def _spell_option(option: click.Option, ctx: click.Context) -> str:
    return f"{_name(option)} {option.make_metavar(ctx)}"


def _value_problem(message: str, parameter: click.Parameter | None) -> str:
    """What is wrong with a value, and what to write instead.

    message: click's. A message of our own parameter types says both already.
    """
    kind = parameter.type if parameter is not None else None
    match = re.match(r"(.+?) (?:is not (?:a valid|in the range|one of)|does not match the format)", message, re.DOTALL)
    value = match[1] if match is not None else ""
    if value and isinstance(kind, click.Choice):
        *names, last = map(str, kind.choices)
        return f"{value} is not supported. Use {', '.join(names) + ' or ' if names else ''}{last}"
    if value and isinstance(kind, click.DateTime):
        return f"{value} is not a valid time. Write it like {' or '.join(map(_EXAMPLE.strftime, kind.formats))}"
    if value and isinstance(kind, (type(click.INT), type(click.FLOAT))):
        number, example = ("a whole number", "10") if isinstance(kind, type(click.INT)) else ("a number", "0.5")
        problem = "is not allowed" if "is not in the range" in message else f"is not {number}"
        return f"{value} {problem}. Write {number}, {numbers_allowed(kind) or f'such as {example}'}"
    path_match = re.fullmatch(r"\w+ ('.*'|\".*\") (.*?)\.", message, re.DOTALL)
    if path_match is not None and isinstance(kind, click.Path):
        quoted_path, problem = path_match.groups()
        if problem == "does not exist":
            return f"{quoted_path} does not exist. {similar_path(Path(quoted_path[1:-1]))}"
        if problem in _PATH_PROBLEMS:
            return f"{quoted_path} {_PATH_PROBLEMS[problem]}"
    return message.removesuffix(".")


_PATH_PROBLEMS = {
    "is a directory": "is a folder. Choose a file",
    "is a file": "is a file. Choose a folder",
    "is not readable": "cannot be read. Check its permissions",
    "is not writable": "cannot be written. Check its permissions",
}
