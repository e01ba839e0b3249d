"""The command line in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from harness.cli import group


def harness(*arguments: object) -> Result:
    """Runs `harness ARGUMENTS`."""
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def succeeded(result: Result) -> Result:
    """The result of a command; the test fails with its output if its status is not 0."""
    assert result.exit_code == 0, result.output
    return result
