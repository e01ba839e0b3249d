"""Rules that the options of all commands keep."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.cli.options import (
    Command,
    Option,
    Printed,
    RatedAsked,
    Site,
    argument,
    json_option,
    option,
    printed_options,
    share,
    site_options,
    target_option,
    verb,
)
from harness.model.choices import YARDSTICKS_KNOWN, FileKind
from harness.model.errors import InputError
from tests.unit.cli.walking import commands

ALL = dict(commands(group))


@pytest.mark.parametrize("name", ALL)
def test_every_command_says_what_it_does(name: str) -> None:
    assert ALL[name].get_short_help_str(), name
    assert "--help" in ALL[name].get_help(click.Context(ALL[name], info_name=name))


@pytest.mark.parametrize("name", ALL)
def test_options_keep_the_rules(name: str) -> None:
    """A short name has a long one, each is explained, and those that print or write do both in one way."""
    for one in ALL[name].params:
        if not isinstance(one, click.Option):
            continue
        assert any(name.startswith("--") for name in one.opts), one.opts
        assert one.help, one.opts
        if isinstance(one, Option):
            assert isinstance(ALL[name], Command), "nothing would read the former names and the FILE of its options"
        if {"--json", "--csv"} & set(one.opts) and not name.endswith(" judgments import"):
            assert isinstance(one, Option)
            assert (bool(one.suffixes), one.metavar) == (True, "[FILE]")
        former = {"--quiet-progress", "--bound"} | ({"--out"} if name != "harness evaluate" else set())
        assert not former & set(one.opts)  # there, --in and --out are recordings with and without the phrase


@verb("example")
def example(
    *,
    files: tuple[str, ...] = argument(),
    as_json: bool = json_option("As JSON."),
    table: str | None = target_option("--csv", "As CSV."),
    output: str | None = option("A file.", former=("--out",)),
    fail: str | None = option("How it fails.", type=click.Choice(["status", "error"])),
) -> None:
    """Prints what it was given."""
    click.echo(json.dumps([files, as_json, table, output]))
    if fail == "error":
        raise InputError("wrong")
    if fail:
        raise SystemExit(1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a b --json", [["a", "b"], True, None, None]),
        ("--json a b", [["a", "b"], True, None, None]),
        ("--json - a", [["a"], True, None, None]),
        ("a", [["a"], False, None, None]),
        ("--csv --out=x a", [["a"], False, "-", "x"]),
        ("--csv anything --out x", [[], False, "anything", "x"]),
        ("-- --json", [["--json"], False, None, None]),
    ],
)
def test_a_file_that_is_left_out_takes_no_argument(line: str, told: list[object]) -> None:
    done = CliRunner().invoke(example, line.split())
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == told


@pytest.mark.parametrize(
    ("name", "former", "now"),
    [
        ("harness understanding distribution", "--most=3", "--max-rows"),
        ("harness understanding bench", "--yardstick=none", "--published"),
        ("harness understanding score", "--zero=1", "--zero-division"),
        ("harness understanding cascade", "--zero=1", "--zero-division"),
        ("harness understanding score", "--without-places", "--ignore-spans"),
        ("harness annotate new", "--take-labels", "--import-labels"),
        ("harness annotate agreement", "--differing", "--disagreements"),
        ("harness judgments export", "--in-force", "--current"),
    ],
)
def test_a_former_name_still_works_and_is_hidden(name: str, former: str, now: str) -> None:
    option = next(one for one in ALL[name].params if now in one.opts)
    assert isinstance(option, Option)
    assert option.former == (former.partition("=")[0],)
    done = CliRunner().invoke(group, [*name.split()[1:], former, "--nothing"])
    assert "No such option '--nothing'" in done.output
    in_full = "--help-all" if any(getattr(each, "heading", "") for each in ALL[name].params) else "--help"
    shown = CliRunner().invoke(group, [*name.split()[1:], in_full]).output.split()
    assert now in shown
    assert option.former[0] not in shown


@pytest.mark.parametrize("form", ["--json {} a", "a --json {}", "--json={} a", "--json {} a --fail status"])
def test_a_named_file_takes_what_would_be_printed(form: str, tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    done = CliRunner().invoke(example, form.format(target).split())
    assert (done.exit_code, done.stdout) == (int("status" in form), "")
    assert json.loads(target.read_text()) == [["a"], True, None, None]


def test_after_an_error_there_is_no_file(tmp_path: Path) -> None:
    done = CliRunner().invoke(example, ["--json", str(tmp_path / "found.json"), "--fail", "error"])
    assert isinstance(done.exception, InputError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        ("help run", 0, "Usage: harness run "),
        ("help judgments import", 0, "Usage: harness judgments import "),
        ("help", 0, "Which command answers which question?"),
        ("-V", 0, "voice-harness, version "),
        ("help rnu", 2, "Usage: harness help"),
    ],
)
def test_help_and_version(line: str, status: int, told: str) -> None:
    done = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert (done.exit_code, done.output[: len(told)]) == (status, told)


def test_completion_knows_verbs_and_options() -> None:
    asked = {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness score --norm", "COMP_CWORD": "2"}
    done = CliRunner().invoke(group, [], prog_name="harness", env=asked)
    assert done.output.split() == ["plain,--normalise"]


@pytest.mark.parametrize(
    ("scenario", "bench", "told"),
    [
        ("bench.yaml", "scenario.yaml", "Swap the two files: harness run SCENARIO --bench BENCH"),
        ("scenaro.yaml", "bench.yaml", "scenario.yaml'?"),
        ("scenario", "bench.yaml", "scenario.yaml'?"),
    ],
)
def test_a_wrong_file_is_recognised(scenario: str, bench: str, told: str, tmp_path: Path) -> None:
    CliRunner().invoke(group, ["init", str(tmp_path)])
    done = CliRunner().invoke(group, ["run", str(tmp_path / scenario), "--bench", str(tmp_path / bench)])
    assert told in str(done.exception)


def test_yardsticks_that_are_offered_are_there() -> None:
    from harness.understanding.models.training import YARDSTICKS

    assert tuple(YARDSTICKS) == YARDSTICKS_KNOWN


@verb("grouped")
def grouped(
    *,
    asked: RatedAsked,
    printed: Printed = printed_options("As JSON.", "As CSV."),
    site: Site = site_options("raters"),
    kind: FileKind = option("A kind of file.", default=FileKind.BENCH),
    most: float | None = option("A share.", callback=share),
) -> None:
    """Prints what it was given."""
    site.demand_web("raters'")
    click.echo(repr((asked.named, asked.round_id, printed.as_json, printed.as_csv, site.given, kind.name, most)))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a b", (("a", "b"), None, False, False, {}, "BENCH", None)),
        ("a --round r --json --kind scenario", (("a",), "r", True, False, {}, "SCENARIO", None)),
        ("a --csv --most 8%", (("a",), None, False, True, {}, "BENCH", 0.08)),
        ("a --web --port 0 --insecure", (("a",), None, False, False, {"port": 0, "insecure": True}, "BENCH", None)),
    ],
)
def test_options_that_go_together_come_as_one_object(line: str, told: object) -> None:
    done = CliRunner().invoke(grouped, line.split())
    assert done.output == f"{told!r}\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a --json --csv", "--json and --csv exclude each other"),
        ("a --tls-key k", "--tls-key applies only to the raters' site"),
        ("a --most 1.5", "write 1.5% if you mean per cent"),
        ("--web", "Missing argument"),
    ],
)
def test_what_options_demand_of_each_other(line: str, told: str) -> None:
    done = CliRunner().invoke(grouped, line.split())
    assert told in f"{done.exception}{done.output}"
