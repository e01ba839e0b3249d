"""`harness engines ENGINE:MODEL`: operating points are told once."""

from __future__ import annotations

from click.testing import CliRunner

from harness.cli.engines import command


def test_points_of_a_model_that_is_named_stand_in_place_of_the_engines() -> None:
    done = CliRunner().invoke(command, ['pocketsphinx:"hey jarvis"'], catch_exceptions=False)
    assert done.exit_code == 0
    assert [line for line in done.output.splitlines() if line.startswith("operating point  ")][:1] == [
        'operating point  "hey jarvis"'
    ]
    assert sum(line.startswith("10 ") for line in done.output.splitlines()) == 1
