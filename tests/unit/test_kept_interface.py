"""Every verb, option and YAML key that an earlier version had is still there, under its name and with its default.

tests/data/kept/interface.json holds what it had; it is only ever added to by hand, where something changes on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from harness.cli import group
from harness.cli.command import Option
from harness.cli.json_schema import json_schema
from harness.model.choices import FileKind
from tests.unit.cli.walking import commands

KEPT = Path(__file__).parent.parent / "data" / "kept" / "interface.json"


def test_commands_keep_their_options_and_arguments() -> None:
    now = dict(described())
    for name, was in json.loads(KEPT.read_text(encoding="utf-8"))["commands"].items():
        assert name in now, f"{name} is missing"
        for parameter, facts in was.items():
            for option in parameter.split():
                facts_now = now[name].get(option)
                if facts_now is not None and facts.get("choices"):  # further ones harm nobody
                    facts_now = facts_now | {
                        "choices": [choice for choice in facts_now["choices"] if choice in facts["choices"]]
                    }
                assert facts_now == facts, f"{name}: {option}"


def test_files_keep_their_keys() -> None:
    for kind, was in json.loads(KEPT.read_text(encoding="utf-8"))["files"].items():
        missing = set(was) - set(paths(json_schema(FileKind(kind))))
        assert not missing, f"{kind}: {sorted(missing)}"


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each command, its parameters by each of their names (also former names), and what they take."""
    for name, command in commands(group):
        facts = {
            option: facts_of(parameter)
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        for parameter in command.params:
            for old, value in parameter.former.items() if isinstance(parameter, Option) else ():
                facts[old] = facts_of(parameter) | ({"flag": True, "choices": None} if value else {})
        yield name, facts


def facts_of(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type
    default = parameter.default
    plain = isinstance(default, (str, int, float, bool)) and parameter.name not in ("jobs", "rater")
    return {
        "required": parameter.required,
        "repeatable": parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs == -1,
        "values": parameter.nargs,
        "flag": isinstance(parameter, click.Option) and parameter.is_flag,
        "choices": [str(choice) for choice in kind.choices] if isinstance(kind, click.Choice) else None,
        "default": str(default) if plain else None,
    }


def paths(schema: dict[str, Any]) -> Iterator[str]:
    """The keys of a file with those that they stand below: `trials.kind`."""
    definitions = schema.get("$defs", {})

    def walk(part: Any, above: tuple[str, ...], within: frozenset[str]) -> Iterator[str]:
        if isinstance(part, list):
            for subschema in part:
                yield from walk(subschema, above, within)
        elif isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix("#/$defs/")
            if name and name not in within:
                yield from walk(definitions[name], above, within | {name})
            for key, below in part.get("properties", {}).items():
                yield ".".join((*above, key))
                yield from walk(below, (*above, key), within)
            for key, below in part.items():
                if key not in ("$defs", "properties"):
                    yield from walk(below, above, within)

    return walk(schema, (), frozenset())
