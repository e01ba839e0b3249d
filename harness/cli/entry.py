"""An entry of the program that is a verb, and the group of the verbs below it."""

from __future__ import annotations

from collections.abc import Mapping

import click

from harness.cli import Verbs
from harness.cli.options import Command


class EntryVerb(Verbs, Command):
    """A verb whose help lists the verbs below it. `Program` calls those before the verb reads its arguments."""

    def __init__(self, verb: click.Command, verbs: Mapping[str, tuple[str, str]]) -> None:
        settings = {**verb.context_settings, "allow_extra_args": False, "allow_interspersed_args": True}
        super().__init__(
            verbs, name=verb.name, callback=verb.callback, params=verb.params, help=verb.help,
            context_settings=settings, invoke_without_command=True,
        )  # fmt: skip

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return click.Command.collect_usage_pieces(self, ctx)
