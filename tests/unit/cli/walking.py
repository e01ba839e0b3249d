"""All commands of the program, verbs and their verbs, each by its former name too."""

from __future__ import annotations

from collections.abc import Iterator

import click


def commands(group: click.Group, name: str = "harness") -> Iterator[tuple[str, click.Command]]:
    """Each with the words that call it."""
    yield name, group
    context = click.Context(group)
    for verb in [*group.list_commands(context), *getattr(group, "former", ())]:
        command = group.get_command(context, verb)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {verb}")
        else:
            yield f"{name} {verb}", command
