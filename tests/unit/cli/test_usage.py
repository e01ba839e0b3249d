"""What a wrong command line is answered: one line with the command, what is wrong and where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rnu", "harness: there is no command 'rnu'. Did you mean 'run'?"),
        ("xyzzy", "harness: there is no command 'xyzzy'. See harness --help"),
        ("admin foo", "harness admin: there is no command 'foo'. See harness admin --help"),
        ("admin devices lsit", "harness admin devices: there is no command 'lsit'."),
        ("understand annotate summary", "harness understand annotate: there is no command 'summary'. Did you mean"),
        ("help rnu", "harness help: there is no command 'rnu'. Did you mean 'run'?"),
        ("--frob", "harness: there is no option --frob. See harness --help"),
        ("run a --benhc b", "harness run: there is no option --benhc. Did you mean --bench?"),
        ("run a --frob", "harness run: there is no option --frob. See harness run --help"),
        ("evaluate --frob", "harness evaluate: there is no option --frob. See harness evaluate --help-all"),
        (
            "evaluate --threshold 1",
            "harness evaluate: there is no option --threshold. Did you mean -s threshold=VALUE?",
        ),
        ("run --threshold 1", "harness run: there is no option --threshold. See harness run --help"),
        ("rate --json", "harness rate: there is no option --json. See harness rate --help"),
        ("run", "harness run: SCENARIO is missing. Usage: harness run [OPTIONS] SCENARIO"),
        ("run a", "harness run: --bench is missing. Add --bench PATH"),
        ("run a --bench", "harness run: --bench needs a value. Write --bench PATH"),
        ("run a --bench b --yes=3", "harness run: --yes takes no value. Write --yes alone"),
        (
            "admin lab log --lines 0",
            "harness admin lab log: --lines: 0 is not allowed. Write a whole number, at least 1",
        ),
        ("run a b --bench b", "harness run: too many arguments: b. Usage: harness run [OPTIONS] SCENARIO"),
        (
            "run a --bench b --seed x",
            "harness run: --seed: 'x' is not a whole number. Write a whole number, at least 0",
        ),
        (
            "admin voices say a --gap-ms x",
            "harness admin voices say: --gap-ms: 'x' is not a whole number. Write a whole number, such as 10",
        ),
        ("score snor a", "harness score snor: --output-format is missing. Add --output-format [lsn|esn|snr]"),
        ("score -r a -H b --unit x", "harness score: --unit: 'x' is not supported. Use word, char or mixed"),
        ("evaluate -t x -f y", "harness evaluate: -f needs 2 values. Write --setting-file NAME FILE"),
        ("evaluate -t x --tail 11", "harness evaluate: --tail: 11.0 is not allowed. Write a number, 0 to 10"),
        ("evaluate -t x --shard 9", "harness evaluate: --shard: '9' is not a shard. Write 1/8 for the first of eight"),
        (
            "evaluate mix a --hours 0",
            "harness evaluate mix: --hours: 0.0 is not allowed. Write a number, above 0, at most",
        ),
        (
            "check doctor --voices x",
            "harness check doctor: --voices: 'x' is not a whole number. Write a whole number, 1 to",
        ),
        (
            "report trend . --since x",
            "harness report trend: --since: 'x' is not a valid time. Write it like 2026-01-31 or 2026-",
        ),
        ("report trend gone", "harness report trend: FOLDER: 'gone' does not exist. Check the path"),
        ("admin schema --output a.yaml", "harness admin schema: --output: 'a.yaml' is a file. Choose a folder"),
        ("report trend . --html .", "harness report trend: --html: '.' is a folder. Choose a file"),
        ("report page a --max-wrong 1", "harness report page: there is no option --max-wrong."),
        (
            "report categories a --max-wrong 1.5",
            "harness report categories: --max-wrong: 1.5 would be 150 %. Write 1.5%",
        ),
        (
            "rate judgments import a",
            "harness rate judgments import: SESSION… is missing. Usage: harness rate judgments",
        ),
    ],
)
def test_a_wrong_command_line_gets_one_sentence(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("x: 1\n")
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report --json show x", "The command 'show' comes before its options: harness report show --json x"),
        ("run --yes resume x", "The command 'resume' comes before its options: harness run resume --yes x"),
        ("evaluate --quiet plan x", "The command 'plan' comes before its options: harness evaluate plan --quiet x"),
    ],
)
def test_a_command_behind_an_option_is_recognised(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert message in f"{result.exception}{result.output}"
    word = message.split("'")[1]
    (tmp_path / word).mkdir()
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert message not in f"{result.exception}{result.output}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--bench b.yaml run a.yaml", "The command 'run' comes before its options: harness run --bench b.yaml a.yaml"),
        ("--json report show x", "The command 'report show' comes before its options: harness report show --json x"),
        ("--json show x", "The command 'show' comes before its options: harness show --json x"),
        ("admin --json devices list", "The command 'devices' comes before its options: harness admin devices --json"),
    ],
)
def test_an_option_before_the_first_command_is_explained(line: str, message: str) -> None:
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    option = next(word for word in line.split() if word.startswith("--"))
    assert f"there is no option {option} here. {message}" in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "line",
    [
        "score --normalise snor -r ref.trn -H missing.trn",
        "report missing --html page",
        "rate nosuch --rater invite",
        "init --phrase demo -x",
        "evaluate --in mix -t x",
        "evaluate --report plan -t x",
    ],
)
def test_the_value_of_an_option_is_not_taken_for_a_command(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert result.exit_code
    assert "comes before its options" not in f"{result.exception}{result.output}"


def test_a_former_name_after_an_option_is_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(group, ["report", "effects", "s", "--answer", "T1", "wrong", "--comment", "--detail"])
    assert "is now" not in result.output
    result = CliRunner().invoke(group, ["score", "-r", "a", "-H", "-h"])
    assert "is now" not in result.output


@pytest.mark.parametrize("line", ["score -h", "score -h --help", "score -h -h"])
def test_score_h_alone_prints_its_help(line: str) -> None:
    result = CliRunner().invoke(group, line.split(), prog_name="harness")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: harness score [OPTIONS]")
