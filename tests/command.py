"""The command line in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from harness.cli import group


def harness(*arguments: object) -> Result:
    """Runs `harness ARGUMENTS`."""
    return CliRunner().invoke(group, [str(argument) for argument in arguments])
