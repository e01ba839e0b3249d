"""Each command in the documentation, in examples and in messages has its name of today and existing options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli import FORMER, group
from harness.cli.command import Option
from tests.unit.cli.walking import commands

ROOT = Path(__file__).parents[3]
SUFFIXES = (".py", ".yaml", ".txt", ".md", ".toml")
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "decisions"),
    *sorted((ROOT / "scenarios").rglob("*.yaml")), *sorted((ROOT / "devices").glob("*.yaml")),
    *(path for path in sorted((ROOT / "harness").rglob("*")) if path.suffix in SUFFIXES),
]  # fmt: skip
NAMED = re.compile(r"(?<![Tt]he )(?<![\w./-])harness (" + "|".join(map(re.escape, FORMER)) + r")(?![\w-]|: )")
"""A former name after `harness`; not in "let the harness compare"."""
OF_TODAY = {name for name, words in FORMER.items() if name == words.split()[0]}
LINE = re.compile(r"^(?:[\w./]*bin/)?harness (.*)$", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`harness ((?![\w-]+: )[a-z][^`\n]*)`(?!`)")
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_or_message_uses_a_former_name(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [match[0] for match in NAMED.finditer(text) if match[1] not in OF_TODAY] == []


def documented() -> Iterator[tuple[str, str]]:
    """Page and command line of each command in a sentence of a page, message or example, or in a block of a page."""
    for page in PAGES:
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
        yield from ((name, line) for line in INLINE.findall(text))
        for kind, block in BLOCK.findall(text) if page.suffix == ".md" else ():
            if kind in ("", "console", "sh", "bash"):
                typed = re.findall(r"^\$ (.*)$", block.replace("\\\n", " "), re.MULTILINE)
                lines = LINE.findall("\n".join(typed) if typed else block.replace("\\\n", " "))
                yield from ((name, line) for line in lines)


def test_each_documented_command_has_an_existing_verb_and_options() -> None:
    wrong = [f"{page}: {line}: {fault}" for page, line in documented() if (fault := fault_of(line))]
    assert wrong == []
    assert len(list(documented())) > 600


def test_starter_files_name_commands_and_not_their_groups() -> None:
    lines = [line for page, line in documented() if "/starters/" in page]
    groups = {name for name, command in commands(group) if isinstance(command, click.Group) and not command.params}
    assert "harness admin voices" in groups
    assert "admin voices list" in lines
    assert [line for line in lines if f"harness {line}" in groups] == []


def test_no_page_uses_an_option_that_no_command_has_any_more() -> None:
    options = [option for _, command in commands(group) for option in command.params if isinstance(option, Option)]
    today = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    gone = {name for option in options if not option.hidden for name in option.former if name[:2] == "--"} - today
    assert "--silent" in gone
    pages = [page for page in PAGES if page.suffix == ".md" and not page.name.startswith("command")]
    mentions = [(page.name, name) for page in pages for name in re.findall(r"--[a-z][\w-]*", page.read_text("utf-8"))]
    assert [(page, name) for page, name in mentions if name in gone] == []


def fault_of(line: str) -> str:
    """Why the program would refuse the verb or an option of a line; "" if it would not."""
    line = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "x", line)
    words = re.split(r"\s[#|&;<>]|;\s|\s--\s", line)[0].split()
    command: click.Command = group
    context = click.Context(group)
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        below = command.get_command(context, words[0])
        if below is None:
            return "" if command.params and command is not group else f"no command {words[0]}"
        command = below
        words.pop(0)
    known_options = {
        name for parameter in command.get_params(context) for name in (*parameter.opts, *parameter.secondary_opts)
    }
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    return ", ".join(option for option in options if option not in known_options | {"-h", "--help", "-V", "--version"})
