"""Nine entries hold every verb; each verb is found by the name that it had before there were entries."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner, Result

from harness.cli import ENTRIES, FORMER, VERBS, group
from harness.cli.command import HELP_LINES, Option
from harness.cli.options import verb
from harness.cli.questions import QUESTIONS, SYNONYMS
from tests.unit.cli.walking import commands

ALL = dict(commands(group))


@pytest.mark.parametrize("former", [name for name in FORMER if not isinstance(ALL[f"harness {name}"], click.Group)])
def test_a_former_name_calls_the_same_verb(former: str) -> None:
    assert ALL[f"harness {former}"] is ALL[f"harness {FORMER[former]}"]


def harness(*words: str) -> Result:
    return CliRunner().invoke(group, words, prog_name="harness")


def usage(*words: str) -> str:
    return harness(*words, "--help").output.splitlines()[0]


def test_a_usage_line_shows_the_command_as_typed() -> None:
    assert usage("report", "show") == "Usage: harness report show [OPTIONS] SESSION"
    assert usage("show") == "Usage: harness show [OPTIONS] SESSION"
    assert usage("understanding", "split").startswith("Usage: harness understanding split ")
    assert usage("understand", "annotate", "new").startswith("Usage: harness understand annotate new ")
    assert "Usage: harness report show " in harness("report", "show").output
    assert harness("help", "report", "show").output == harness("report", "show", "--help").output


def test_an_entry_runs_itself_unless_a_verb_follows() -> None:
    assert usage("run") == "Usage: harness run [OPTIONS] SCENARIO"
    assert "\nCommands:\n  resume  " in harness("run", "--help").output
    assert harness("check").output == harness("validate").output.replace("harness validate", "harness check")
    assert harness("check", "missing.yaml").output == harness("validate", "missing.yaml").output
    assert harness("report", "a", "show").output == harness("report", "page", "a", "show").output
    assert "SCENARIO is missing" in harness("run").output
    assert harness("run", "a.yaml", "b.yaml", "--bench", "b.yaml").exit_code == 2
    assert "too many arguments: b.yaml" in harness("run", "a.yaml", "b.yaml", "--bench", "b.yaml").output


def test_a_file_named_like_a_verb_needs_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "./" not in harness("report", "show").output
    (tmp_path / "show").mkdir()
    (tmp_path / "validate").write_text("no: scenario\n")
    assert "write ./show" in harness("report", "show").output
    assert "write ./show" in message(harness("report", "show", "gone"))
    assert "write ./validate" in harness("check", "validate").output
    assert "validate:1:1: " in harness("check", "./validate").output
    assert "./" not in message(harness("show", "gone"))
    (tmp_path / "lab").mkdir()
    assert "./" not in harness("admin", "lab", "up", "x").output


def message(result: Result) -> str:
    return str(result.exception)


def test_a_mistyped_verb_is_suggested_by_its_name_below_an_entry() -> None:
    assert "Did you mean 'check validate'?" in harness("valdate").output
    assert "Did you mean 'show'?" in harness("help", "report", "shwo").output
    assert "Did you mean 'report page'?" in harness("page").output
    assert "Did you mean 'understand train'?" in harness("train").output
    assert "Did you mean 'harness report show'?" in message(harness("report", "shwo"))
    assert "Did you mean 'harness evaluate plan'?" in harness("evaluate", "pln").output
    assert "Did you mean 'harness run resume'?" in harness("run", "resum", "x").output


def test_common_synonyms_suggest_the_command() -> None:
    assert "Did you mean 'harness admin devices monitor'?" in harness("monitor").output
    assert "Did you mean 'harness understand annotate'?" in harness("label", "texts.csv").output
    assert "Did you mean 'harness admin devices monitor'?" in harness("admin", "monitor").output
    assert "Did you mean 'harness run attach'?" in harness("help", "watch").output
    assert "Did you mean 'harness understand annotate'?" in harness("lable").output
    for word, words in SYNONYMS.items():
        assert f"harness {words}" in ALL or isinstance(found(words), click.Group), word
        assert word not in ENTRIES
        assert word not in FORMER


def found(words: str) -> click.Command | None:
    command: click.Command | None = group
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    return command


def test_the_shell_completes_the_entries_and_the_verbs_below_them() -> None:
    def completed(*words: str) -> list[str]:
        return [completion.value for completion in items(*words) if completion.type == "plain"]

    assert completed() == list(ENTRIES)
    assert completed("admin")[:3] == ["lab", "voices", "devices"]
    assert completed("score") == ["snor"]
    assert completed("report")[:3] == ["page", "show", "compare"]
    assert completed("run")[:2] == ["resume", "attach"]
    assert "show" not in completed("report", "show", "x")
    completed("run", "a", "b")  # one word too many is no error here


def items(*words: str, incomplete: str = "") -> list[CompletionItem]:
    return ShellComplete(group, {}, "harness", "_HARNESS_COMPLETE").get_completions(list(words), incomplete)


@pytest.mark.parametrize("entry", [name for name, (module, _) in ENTRIES.items() if module])
def test_bash_completes_verbs_and_files(entry: str) -> None:
    kinds = [completion.type for completion in items(entry)]
    assert "plain" in kinds
    assert not {"file", "dir"} & set(kinds[kinds.index("plain") :]), "bash would drop the verbs"


def test_the_shell_completes_files_that_begin_like_a_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sound.yaml").touch()
    assert [completion.value for completion in items("check", incomplete="so") if completion.type == "plain"] == [
        "sound",
        "sound.yaml",
    ]


def test_help_names_the_command_that_answers_a_question() -> None:
    lines = harness("help").output.splitlines()
    words_by_question = {question: words for rows in QUESTIONS.values() for question, words in rows.items()}
    for question, words in words_by_question.items():
        assert f"harness {words}" in ALL
        assert any(line.startswith(f"  {question}  ") and line.endswith(f"  harness {words}") for line in lines)
    below = {f"{entry} {name}" for entry, verbs in VERBS.items() if entry != "understand" for name in verbs}
    assert below - {"check validate"} <= set(words_by_question.values())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("words", ALL)
def test_a_help_fits_a_screen_and_help_all_describes_every_option(words: str) -> None:
    command, *rest = words.split()[1:] or ["--help"]
    shown = harness(command, *rest, "--help").output
    assert len(shown.splitlines()) <= HELP_LINES
    options = [
        option for option in ALL[words].params if isinstance(option, Option) and not option.hidden and option.help
    ]
    headings = {option.heading for option in options} - {""}
    left_out = {option for option in headings if f"\n{option}:\n" not in shown}
    assert bool(left_out) == ("--help-all" in shown)
    assert headings or len(options) <= 12
    whole = harness(command, *rest, "--help-all").output if headings else shown
    for option in options:
        assert max(option.opts, key=len) in whole
    for heading in headings:
        assert f"\n{heading}:\n" in whole
        assert heading not in left_out or heading.lower() in " ".join(shown.split())


def test_a_section_of_a_help_names_options_that_exist() -> None:
    with pytest.raises(TypeError, match="no option is named colour"):
        verb("x", sections={"Output": "colour"})(lambda: None)
