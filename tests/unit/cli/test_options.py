"""Rules that the options of all commands keep."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.cli.options import (
    Command,
    FiniteRange,
    Option,
    OutputFormat,
    RatedSessionOptions,
    Site,
    argument,
    json_option,
    option,
    parse_share,
    printed_options,
    repeatable,
    site_options,
    target_option,
    verb,
)
from harness.model.choices import YARDSTICKS_KNOWN, FileKind
from harness.model.errors import InputError
from tests.known import known
from tests.unit.cli.walking import commands

ALL = dict(commands(group))
SAME_KIND = {
    "--web-port": "the port that a site listens on",
    "--tls-key": "the key of a site's certificate",
    "--tls-cert": "the certificate of a site",
    "--listen": "the address that a site listens on",
    "--insecure": "a site without TLS is allowed",
    "--audio": "sounds",
    "--adjudicate": "disagreements are settled",
    "--all": "everything, not only the usual",
    "--annotator": "the name of an annotator",
    "--attempt": "an attempt of a session's trials",
    "--address": "where the device or its broker is",
    "--bench": "a bench file",
    "--by": "what results are grouped by",
    "--check": "look for damage and changes",
    "--cluster-by": "what belongs together in intervals",
    "--confusions": "how many confusions to print",
    "--continuous": "the engine's state is kept from sound to sound",
    "--cross": "two groupings that are crossed",
    "--csv": "the table as CSV, on standard output or into FILE",
    "--data": "annotated utterances",
    "--days": "how long something holds",
    "--detail": "whether concepts have their specifiers",
    "--device": "a device by its name",
    "--disagreements": "print what people differ on",
    "--dry-run": "write or remove nothing",
    "--encoding": "the text encoding of what is read",
    "--force": "overwrite what exists",
    "--format": "the format of what is read",
    "--from": "a file instead of a device",
    "--gold": "correct annotations",
    "--groups": "a list of groups",
    "--html": "write a page of HTML",
    "--invitations": "the file of invitations",
    "--json": "the result as JSON, on standard output or into FILE",
    "--junit": "write JUnit XML",
    "--labels": "the declared labels",
    "--language": "a BCP 47 tag",
    "--level-dbfs": "the level of a sound",
    "--limits-on": "what limits are compared with",
    "--list": "print a list, do nothing else",
    "--log": "the log that is written",
    "--max-rows": "how many rows to print",
    "--max-wer": "the highest WER before status 1",
    "--min-alpha": "the least alpha before status 1",
    "--normalise": "how words are made comparable",
    "--output": "what the command writes",
    "--output-format": "the format of what is written",
    "--parquet": "the table as Parquet",
    "--phrase": "the wake phrase",
    "--plain": "lines instead of a screen",
    "--port": "the serial port of a board",
    "--public-url": "the address that visitors use",
    "--rater": "the name of a rater",
    "--reason": "why sound is removed",
    "--round": "the name of a round",
    "--seconds": "how long to listen",
    "--seed": "the seed",
    "--sessions": "the folder of sessions",
    "--setting": "a setting of a plug-in",
    "--sound-server": "which sound server is used",
    "--speaker": "the sound device that plays",
    "--split": "a split of the data",
    "--task": "an engine and its model",
    "--unattended": "nobody answers questions",
    "--understander": "a plug-in that understands",
    "--verbose": "print more",
    "--web": "serve a site",
    "--wer": "word errors",
    "--yes": "do not ask",
}
"""Names whose help differs between commands, as they say what the thing is there → what it is everywhere."""


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_a_help_sentence(name: str) -> None:
    assert ALL[name].get_short_help_str(), name
    assert "--help" in ALL[name].get_help(click.Context(ALL[name], info_name=name))


@pytest.mark.parametrize("name", ALL)
def test_option_declarations_follow_the_rules(name: str) -> None:
    """A short name has a long one, each is explained, numbers are finite, and those that print or write do both in one
    way."""
    for parameter in ALL[name].params:
        if not isinstance(parameter, click.Option):
            continue
        assert any(name.startswith("--") for name in parameter.opts), parameter.opts
        assert parameter.help, parameter.opts
        if isinstance(parameter.type, click.FloatRange):
            assert isinstance(parameter.type, FiniteRange), f"{parameter.opts} would take NaN"
        if isinstance(parameter, Option):
            assert isinstance(ALL[name], Command), "nothing would read the former names and the FILE of its options"
        if {"--json", "--csv"} & set(parameter.opts) and not name.endswith(" judgments import"):
            assert isinstance(parameter, Option)
            assert (bool(parameter.suffixes), parameter.metavar) == (True, "[FILE]")
        former = {"--quiet-progress", "--bound"} | ({"--out"} if name != "harness evaluate" else set())
        assert not former & set(parameter.opts)  # there, --in and --out are recordings with and without the phrase


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
    ("line", "expected"),
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
def test_option_without_its_file_takes_no_argument(line: str, expected: list[object]) -> None:
    result = CliRunner().invoke(example, line.split())
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == expected


KEPT = Path(__file__).parents[2] / "data" / "kept" / "options.csv"
NAMED = [
    (f"harness {row['command']}".rstrip(), row["option"], row["now"])
    for row in csv.DictReader(KEPT.read_text(encoding="utf-8").splitlines())
]
"""Command, name of an option before the names had one meaning each, and its name since; "" for the same."""


def test_each_former_option_is_accepted() -> None:
    former = set()
    for name, command in ALL.items():
        for parameter in command.params:
            if isinstance(parameter, Option):
                for old, value in parameter.former.items():
                    former.add((name, old, f"{parameter.current_name(old)} {value}".rstrip()))
    for name, old_name, now in NAMED:
        flags = {flag for parameter in ALL[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}
        assert (name, old_name, now) in former if now else old_name in flags, f"{name} {old_name}"


@pytest.mark.parametrize(("name", "former", "now"), [row for row in NAMED if row[2]])
def test_a_former_name_still_works_and_is_hidden(name: str, former: str, now: str) -> None:
    option = next(parameter for parameter in ALL[name].params if now.split()[0] in parameter.opts)
    assert isinstance(option, Option)
    assert former in option.former
    value = [] if option.is_flag or " " in now else ["1"]
    result = CliRunner().invoke(group, [*name.split()[1:], former, *value, "--nothing"], prog_name="harness")
    assert result.stderr.splitlines()[0] == f"harness: {former} is now {now}"
    assert "there is no option --nothing" in result.stderr
    in_full = "--help-all" if any(getattr(parameter, "heading", "") for parameter in ALL[name].params) else "--help"
    shown = CliRunner().invoke(group, [*name.split()[1:], in_full]).output.split()
    assert now.split()[0] in {word.rstrip(",") for word in shown}
    assert former not in {word.rstrip(",") for word in shown}


@verb("renamed")
def renamed(
    *,
    files: tuple[str, ...] = repeatable("Lists.", "-x", "--lists", former=("-h", "-o")),
    verbose: int = option("More.", "-v", count=True),
    kind: str | None = option("Kind.", former=("--csv=csv",)),
) -> None:
    """Prints what it was given."""
    click.echo(json.dumps([files, verbose, kind]))


@pytest.mark.parametrize(
    ("line", "expected", "notes"),
    [
        ("-o a -x b", [["a", "b"], 0, None], ["-o is now -x"]),
        ("-oa", [["a"], 0, None], ["-o is now -x"]),
        ("-vvo a", [["a"], 2, None], ["-o is now -x"]),
        ("-vva", None, []),
        ("-xo", [["o"], 0, None], []),
        ("-h a --csv", [["a"], 0, "csv"], ["-h is now -x", "--csv is now --kind csv"]),
    ],
)
def test_a_former_short_name_works_in_each_form(line: str, expected: object, notes: list[str]) -> None:
    result = CliRunner().invoke(renamed, line.split())
    assert (json.loads(result.stdout) if result.stdout else None) == expected
    assert [message for message in result.stderr.splitlines() if "is now" in message] == [
        f"harness: {note}" for note in notes
    ]


def test_dash_h_prints_the_same_as_help() -> None:
    assert CliRunner().invoke(group, ["score", "-h"]).output == CliRunner().invoke(group, ["score", "--help"]).output


def visible() -> Iterator[tuple[str, click.Option]]:
    """Each command and option of today that a help shows."""
    for name in dict.fromkeys(name for name, _, _ in NAMED):
        for parameter in ALL[name].params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield name, parameter


def test_an_option_name_has_one_meaning() -> None:
    """What a name means stands in its help. If that differs between commands, it is the same kind of thing."""
    helps: dict[str, set[str]] = {}
    takes: dict[str, set[bool]] = {}
    for _, parameter in visible():
        for name in (*parameter.opts, *parameter.secondary_opts):
            helps.setdefault(name, set()).add(parameter.help or "")
            takes.setdefault(name, set()).add(bool(parameter.is_flag or parameter.count))
    assert {name for name in helps if len(helps[name]) > 1 and name.startswith("--")} == set(SAME_KIND)
    assert [name for name in takes if len(takes[name]) > 1] == []
    short: dict[str, set[str]] = {}
    for _, parameter in visible():
        for name in parameter.opts:
            if not name.startswith("--"):
                short.setdefault(name, set()).add(max(parameter.opts, key=len))
    assert {name: longs for name, longs in short.items() if len(longs) > 1} == {}


def test_defaults_are_written_in_one_style() -> None:
    for name, parameter in visible():
        record = known(parameter.get_help_record(click.Context(ALL[name])))
        text = record[1]
        has_default = isinstance(parameter, Option) and bool(parameter.written_default)
        assert text.count("(default: ") == (1 if has_default else 0), f"{name}: {text}"
        others = 1 if "(default when " in text else 0
        assert text.lower().count("default") == text.count("(default: ") + others, f"{name}: {text}"
        assert ") (" not in text, f"{name}: {text}"
        if isinstance(parameter.default, (str, int, float, tuple, Path)) and not (parameter.is_flag or parameter.count):
            assert has_default or parameter.default in ("", ()), f"{name} {parameter.opts}"


def test_a_default_ends_the_first_sentence() -> None:
    def shown(text: str, **attributes: object) -> str:
        record = known(Option(["--x"], help=text, **attributes).get_help_record(click.Context(example)))
        return record[1]

    size = click.IntRange(64, 9600)
    assert shown("Size. Raise it.", default=480, show_default=True, type=size) == (
        "Size (default: 480; 64 to 9600). Raise it."
    )
    assert shown("Size.", type=click.IntRange(0), required=True) == "Size (required)."
    assert shown("Share", type=click.FloatRange(0, 1, min_open=True)) == "Share (above 0, at most 1)."
    assert shown("Names.", show_default="the host's") == "Names (default: the host's)."
    assert shown("Gap.", nargs=2, default=(1.0, 2.5), show_default=True) == "Gap (default: 1 2.5)."


def test_documented_defaults_match_the_code() -> None:
    from harness.web.server import WebOptions

    web = WebOptions()
    words = {
        parameter.opts[0]: parameter.written_default for _, parameter in visible() if isinstance(parameter, Option)
    }
    assert (words["--listen"], words["--web-port"]) == (web.address, str(web.port))
    assert Path(words["--invitations"]) == web.invitations


@pytest.mark.parametrize("form", ["--json {} a", "a --json {}", "--json={} a", "--json {} a --fail status"])
def test_an_output_file_gets_what_would_be_printed(form: str, tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    result = CliRunner().invoke(example, form.format(target).split())
    assert (result.exit_code, result.stdout) == (int("status" in form), "")
    assert json.loads(target.read_text()) == [["a"], True, None, None]


def test_an_error_leaves_no_output_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(example, ["--json", str(tmp_path / "found.json"), "--fail", "error"])
    assert isinstance(result.exception, InputError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("help run", 0, "Usage: harness run "),
        ("help judgments import", 0, "Usage: harness judgments import "),
        ("help", 0, "Which command answers which question?"),
        ("-V", 0, "voice-harness, version "),
        ("help rnu", 2, "harness help: there is no command 'rnu'. Did you mean 'run'?"),
    ],
)
def test_help_and_version_are_printed(line: str, status: int, message: str) -> None:
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert (result.exit_code, result.output[: len(message)]) == (status, message)


def test_completion_knows_verbs_and_options() -> None:
    environment = {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness score --norm", "COMP_CWORD": "2"}
    result = CliRunner().invoke(group, [], prog_name="harness", env=environment)
    assert result.output.split() == ["plain,--normalise"]


@pytest.mark.parametrize(
    ("scenario", "bench", "message"),
    [
        ("bench.yaml", "scenario.yaml", "Swap the two files: harness run SCENARIO --bench BENCH"),
        ("scenaro.yaml", "bench.yaml", "scenario.yaml'?"),
        ("scenario", "bench.yaml", "scenario.yaml'?"),
    ],
)
def test_a_file_of_another_kind_is_recognised(scenario: str, bench: str, message: str, tmp_path: Path) -> None:
    CliRunner().invoke(group, ["init", str(tmp_path)])
    result = CliRunner().invoke(group, ["run", str(tmp_path / scenario), "--bench", str(tmp_path / bench)])
    assert message in str(result.exception)


def test_offered_yardsticks_exist() -> None:
    from harness.understanding.models.training import YARDSTICKS

    assert tuple(YARDSTICKS) == YARDSTICKS_KNOWN


@verb("grouped")
def grouped(
    *,
    asked: RatedSessionOptions,
    printed: OutputFormat = printed_options("As JSON.", "As CSV."),
    site: Site = site_options("raters'"),
    kind: FileKind = option("A kind of file.", default=FileKind.BENCH),
    most: float | None = option("A share.", callback=parse_share),
) -> None:
    """Prints what it was given."""
    site.demand_web("raters'")
    click.echo(repr((asked.named, asked.round_id, printed.as_json, printed.as_csv, site.web_options, kind.name, most)))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a b", (("a", "b"), None, False, False, {}, "BENCH", None)),
        ("a --round r --json --kind scenario", (("a",), "r", True, False, {}, "SCENARIO", None)),
        ("a --csv --most 8%", (("a",), None, False, True, {}, "BENCH", 0.08)),
        ("a --web --web-port 0 --insecure", (("a",), None, False, False, {"port": 0, "insecure": True}, "BENCH", None)),
    ],
)
def test_grouped_options_arrive_as_one_object(line: str, expected: object) -> None:
    result = CliRunner().invoke(grouped, line.split())
    assert result.output == f"{expected!r}\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a --json --csv", "--json and --csv cannot be combined"),
        ("a --tls-key k", "--tls-key applies only to the raters' site"),
        ("a --most 1.5", "Write 1.5% if you mean per cent"),
        ("--web", "Missing argument"),
    ],
)
def test_option_dependencies_are_enforced(line: str, message: str) -> None:
    result = CliRunner().invoke(grouped, line.split())
    assert message in f"{result.exception}{result.output}"
