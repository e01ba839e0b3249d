"""A group of verbs whose modules are imported when they are used."""

from __future__ import annotations

import difflib
import sys
from importlib import import_module
from typing import Any

import click

INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


class Verbs(click.Group):
    """Verbs by name, imported on use; a wrong one is answered with the nearest right one.

    verbs: name → module that has it as `command`, and what stands in the list.
    """

    def __init__(self, verbs: dict[str, tuple[str, str]], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        command: click.Command = import_module(self._verbs[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._verbs and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self._verbs, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no verb {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # click would leave with 1, which says here that a declared limit failed.
            click.echo("harness: interrupted", err=True)
            sys.exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in self._verbs.items()])
