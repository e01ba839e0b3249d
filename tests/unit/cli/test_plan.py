"""`harness plan`: the figures of the specification, in words and as JSON."""

import json

import pytest
from click.testing import CliRunner

from harness.cli.plan import command
from harness.model.errors import InputError


def said(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_figures_of_the_specification() -> None:
    text = said()
    for figure in ("30.0 h", "47.4 h", "63.0 h", "173 utterances when just", "passes after 7.4 h"):
        assert figure in text, text
    told = json.loads(said("--json"))
    assert [round(row["hours"], 1) for row in told["false_accepts"]["claims"][:3]] == [30.0, 47.4, 63.0]
    assert told["false_rejects"]["utterances_as_expected"] == 173
    assert told["sequential"]["hours_to_pass"] == pytest.approx(7.4, abs=0.05)


def test_power_and_talkers() -> None:
    told = json.loads(said("--fa-below", "0.1", "--fa-expected", "0.02", "--json"))
    assert round(told["false_accepts"]["hours"], 1) == 63.0
    assert told["false_accepts"]["power"] >= 0.8
    assert "false_rejects" not in told
    told = json.loads(said("--fr-below", "5%", "--fr-expected", "0.02", "--per-talker", "20", "--json"))
    assert told["design_effect"] == pytest.approx(2.9)
    rejects = told["false_rejects"]
    assert rejects["utterances_clustered"] == pytest.approx(rejects["utterances"] * 2.9, abs=1)


def test_two_systems() -> None:
    told = json.loads(said("--difference", "5%", "3%", "--json"))["difference"]
    fewer = json.loads(said("--difference", "5%", "3%", "--discordant", "2.5%", "--json"))["difference"]
    assert fewer["files"] < told["files"]
    assert told["power"] >= 0.8
    assert f"{told['files']:,} files" in said("--difference", "5%", "3%")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--fa-expected", "1"),
        ("--fa-below", "0.1", "--fa-expected", "0.2"),
        ("--fr-below", "5%", "--fr-expected", "6%"),
        ("--discordant", "5%"),
        ("--sprt", "0.5", "0.1"),
        ("--sprt", "0.1", "0.5", "--alpha", "0.5", "--beta", "0.5"),
        ("--difference", "3%", "3%"),
        ("--difference", "5%", "3%", "--discordant", "1%"),
        ("--fr-below", "500%"),
        ("--fa-below", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert result.exception is None or not isinstance(result.exception, ValueError)


def test_rates_the_wrong_way_round_are_turned() -> None:
    with pytest.raises(InputError, match=r"Write --sprt 0\.1 0\.5"):
        CliRunner().invoke(command, ["--sprt", "0.5", "0.1"], catch_exceptions=False)
