"""A group of verbs whose modules are imported when they are used."""

from __future__ import annotations

import difflib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Within it, what asks the program to end leaves as an exit does, so that temporary files go.

    The status is the one that shells say of a program that the signal ended. What was ignored before, as behind
    `nohup`, stays ignored.
    """
    mine = threading.current_thread() is threading.main_thread()
    taken = [one for one in ASKED_TO_END if mine and signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _leave)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    for one in ASKED_TO_END:  # asked twice, it still tidies up once
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)


INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


@click.command("help")
@click.argument("words", nargs=-1, metavar="[VERB]...")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Say what a verb does: `harness help run` is `harness run --help`."""
    assert ctx.parent is not None
    above = ctx.parent
    for word in words:
        found = above.command.get_command(above, word) if isinstance(above.command, click.Group) else None
        if found is None:
            known = above.command.list_commands(above) if isinstance(above.command, click.Group) else []
            near = difflib.get_close_matches(word, known, n=1)
            raise click.UsageError(f"There is no verb {word!r}." + (f" Did you mean {near[0]!r}?" if near else ""), ctx)
        above = click.Context(found, info_name=word, parent=above)
    click.echo(above.get_help())


class Verbs(click.Group):
    """Verbs by name, imported on use; a wrong one is answered with the nearest right one.

    verbs: name → module that has it as `command`, or module:name; and what stands in the list.
    """

    def __init__(self, verbs: dict[str, tuple[str, str]], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        module, _, name = self._verbs[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
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
