"""A command that can be run itself and also has subcommands, such as `harness score`."""

from __future__ import annotations

import copy
import difflib
import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from harness.cli import LazyGroup, add_hint, command_first
from harness.cli.command import Command, count_values
from harness.model.errors import InputError

_WORDS = "harness.words"


class EntryVerb(LazyGroup, Command):
    """A command whose help lists its subcommands. `Program` calls those before the command reads its arguments.

    An error suggests the subcommand that the first word nearly names, and says where one after an option belongs.
    verbs: name of the subcommand → (module, line of the help), as in `LazyGroup`.
    """

    def __init__(self, verb: click.Command, verbs: Mapping[str, tuple[str, str]]) -> None:
        # click.Group allows extra arguments and stops at the first. Here the arguments are those of the verb itself.
        context_settings = {**verb.context_settings, "allow_extra_args": False, "allow_interspersed_args": True}
        params = [
            _add_completion(param, verbs) if isinstance(param, click.Argument) else param for param in verb.params
        ]
        super().__init__(
            verbs, name=verb.name, callback=verb.callback, params=params, help=verb.help,
            context_settings=context_settings, invoke_without_command=True,
        )  # fmt: skip

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        # Not as click.Group, which adds "COMMAND [ARGS]...": the usage line shows the arguments of the verb itself.
        return click.Command.collect_usage_pieces(self, ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = tuple(args)
        with self._suggest(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with self._suggest(ctx):
            return super().invoke(ctx)

    @contextmanager
    def _suggest(self, ctx: click.Context) -> Iterator[None]:
        """Adds a hint to an error of the block if the user may have meant a subcommand."""
        try:
            yield
        except (click.UsageError, InputError) as error:
            words: tuple[str, ...] = ctx.meta[_WORDS]
            index = next((index for index in self._argument_indexes(words) if words[index] in self._verbs), None)
            similar = difflib.get_close_matches(words[0], self._verbs, n=1) if words else []
            # A word that names an existing file is taken as an argument, not as a mistyped subcommand.
            if index is not None and not os.path.lexists(words[index]):
                hint = command_first(ctx, words, index)
            elif similar and not os.path.lexists(words[0]):
                hint = f"Did you mean '{ctx.command_path} {similar[0]}'?"
            else:
                raise
            raise add_hint(error, hint) from None

    def _argument_indexes(self, words: Sequence[str]) -> Iterator[int]:
        """Indexes of the words that are neither options nor their values."""
        options = [option for option in self.params if isinstance(option, click.Option)]
        option_by_name = {name: option for option in options for name in (*option.opts, *getattr(option, "former", ()))}
        index = 0
        while index < len(words):
            if words[index] in option_by_name:
                index += count_values(option_by_name[words[index]], words[index + 1 :])
            else:
                yield index
            index += 1


def _add_completion(argument: click.Argument, verbs: Mapping[str, tuple[str, str]]) -> click.Argument:
    """A copy of the argument, for which the shell also completes a subcommand as the first value.

    click asks for file names by an item of type "file". bash drops the items before it, and adds no file names beside
    plain items. So it comes first, and files that begin like a subcommand are listed as plain items.
    """
    argument_copy = copy.copy(argument)

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        is_given = ctx.get_parameter_source(argument.name or "") is ParameterSource.COMMANDLINE
        names = [] if is_given else [verb_name for verb_name in verbs if verb_name.startswith(incomplete)]
        files = glob.glob(f"{glob.escape(incomplete)}*") if names and incomplete else []
        return [*argument.shell_complete(ctx, incomplete), *map(CompletionItem, [*names, *files])]

    argument_copy.shell_complete = complete  # type: ignore[method-assign]
    return argument_copy
