"""An entry of the program that is a verb, and the group of the verbs below it."""

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
from harness.cli.command import Command, values_taken
from harness.model.errors import InputError

_WORDS = "harness.words"


class EntryVerb(LazyGroup, Command):
    """A verb whose help lists the verbs below it. `Program` calls those before the verb reads its arguments.

    An error suggests the verb below that the first word nearly names, and says where one after an option belongs.
    """

    def __init__(self, verb: click.Command, verbs: Mapping[str, tuple[str, str]]) -> None:
        settings = {**verb.context_settings, "allow_extra_args": False, "allow_interspersed_args": True}
        params = [
            _add_completion(param, verbs) if isinstance(param, click.Argument) else param for param in verb.params
        ]
        super().__init__(
            verbs, name=verb.name, callback=verb.callback, params=params, help=verb.help,
            context_settings=settings, invoke_without_command=True,
        )  # fmt: skip

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
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
        try:
            yield
        except (click.UsageError, InputError) as error:
            words: tuple[str, ...] = ctx.meta[_WORDS]
            index = next((n for n in self._arguments(words) if words[n] in self._verbs), None)
            similar = difflib.get_close_matches(words[0], self._verbs, n=1) if words else []
            if index is not None and not os.path.lexists(words[index]):
                hint = command_first(ctx, words, index)
            elif similar and not os.path.lexists(words[0]):
                hint = f"Did you mean '{ctx.command_path} {similar[0]}'?"
            else:
                raise
            raise add_hint(error, hint) from None

    def _arguments(self, words: Sequence[str]) -> Iterator[int]:
        """Places of the words that are neither options nor their values."""
        options = [option for option in self.params if isinstance(option, click.Option)]
        option_by_name = {name: option for option in options for name in (*option.opts, *getattr(option, "former", ()))}
        index = 0
        while index < len(words):
            if words[index] in option_by_name:
                index += values_taken(option_by_name[words[index]], words[index + 1 :])
            else:
                yield index
            index += 1


def _add_completion(argument: click.Argument, verbs: Mapping[str, tuple[str, str]]) -> click.Argument:
    """The argument; as its first value, the shell also completes a verb.

    bash drops all words before the sign for files, and completes no file beside a word. So the sign comes first, and
    files that begin like a verb are words too.
    """
    completed = copy.copy(argument)

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        is_given = ctx.get_parameter_source(argument.name or "") is ParameterSource.COMMANDLINE
        names = [] if is_given else [verb_name for verb_name in verbs if verb_name.startswith(incomplete)]
        files = glob.glob(f"{glob.escape(incomplete)}*") if names and incomplete else []
        return [*argument.shell_complete(ctx, incomplete), *map(CompletionItem, [*names, *files])]

    completed.shell_complete = complete  # type: ignore[method-assign]
    return completed
