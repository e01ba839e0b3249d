"""JSON Schemas (draft 2020-12) of our files, for editors: a description on every key, closed sets, driver options."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from harness.base import plugins
from harness.base.findings import Keys
from harness.devices.orders import ORDER_METHODS
from harness.devices.profiles.keys import ProfileKeys
from harness.model.choices import FileKind
from harness.model.errors import PluginError
from harness.rating.files.rounds import GoldFileKeys, RaterKeysKeys, RoundKeys, TrainingKeys
from harness.scenario.bench import BenchKeys, adapter
from harness.scenario.conditions import ConditionsKeys
from harness.scenario.keys import ScenarioKeys
from harness.transcripts.files.normalisation_file import NormalisationKeys
from harness.understanding.files.grammar_file import GrammarKeys
from harness.understanding.files.label_set_file import LabelSetKeys

Schema = dict[str, Any]

_MODELS: dict[FileKind, type[Keys]] = {
    FileKind.SCENARIO: ScenarioKeys,
    FileKind.BENCH: BenchKeys,
    FileKind.CONDITIONS: ConditionsKeys,
    FileKind.DEVICE: ProfileKeys,
    FileKind.NORMALISATION: NormalisationKeys,
    FileKind.ROUND: RoundKeys,
    FileKind.TRAINING: TrainingKeys,
    FileKind.GOLD: GoldFileKeys,
    FileKind.RATER_KEYS: RaterKeysKeys,
    FileKind.GRAMMAR: GrammarKeys,
    FileKind.LABEL_SET: LabelSetKeys,
}
_NULL: Schema = {"type": "null"}
_MAY_BE_NULL = {("DefaultsKeys", "noise"), ("DefaultsKeys", "close_dialogue"), ("ExcludeKeys", "noise")}
"""Keys for which null has a meaning: no noise, or no closing words. For others, it only means "not given"."""


def json_schema(kind: FileKind) -> Schema:
    """The schema of one kind of file; options of drivers that are installed here are part of a bench's."""
    schema: Schema = _MODELS[kind].model_json_schema()
    for name, definition in [("", schema), *schema.get("$defs", {}).items()]:
        for key, value in definition.get("properties", {}).items():
            tidy = definition["properties"][key] = _tidy(value, null=(name, key) in _MAY_BE_NULL)
            if "description" not in tidy and "$ref" in tidy:  # pydantic leaves it out where the two are the same
                tidy["description"] = schema["$defs"][tidy["$ref"].rsplit("/", 1)[-1]]["description"]
    if kind is FileKind.SCENARIO:
        engines = list(plugins.names(plugins.Group.VOICES))
        schema["$defs"]["VoiceKeys"]["properties"]["engine"]["enum"] = engines
    if kind is FileKind.BENCH:
        definitions = schema["$defs"]
        properties: Schema = dict(definitions["EquipmentKeys"]["properties"])
        same_as_branch: Schema = {
            "title": "the driver of a loudspeaker",
            "type": "object",
            "properties": {"same_as": properties.pop("same_as")},
            "required": ["same_as"],
            "additionalProperties": False,
        }
        definitions["EquipmentKeys"] = {
            "description": "Equipment that a driver runs.",
            "anyOf": [*_branches(properties, definitions), same_as_branch],
        }
        for name, orders in (("FurtherSourceKeys", False), ("StandKeys", True), ("PowerSwitchKeys", True)):
            definition = definitions[name]
            branches = _branches(definition["properties"], definitions, definition["required"], orders=orders)
            definitions[name] = {"description": definition["description"], "anyOf": branches}
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"voice-harness {kind.value}"}
    return {**title, **{key: value for key, value in schema.items() if key != "title"}}


def _tidy(value: Schema, *, null: bool) -> Schema:
    """The schema of a key without its title, which repeats the key, and without a null that means "not given".

    null: whether null has a meaning of its own, and stays.
    """
    value = {key: entry for key, entry in value.items() if key != "title"}
    choices = value.get("anyOf", [])
    if not null and _NULL in choices and "prefixItems" not in value:
        other_choices = [choice for choice in choices if choice != _NULL]
        value.pop("anyOf")
        value.update({"anyOf": other_choices} if len(other_choices) > 1 else other_choices[0])
    if value.get("default", 0) is None or isinstance(value.get("default"), dict):
        value.pop("default")
    return value


def _branches(
    common: Schema, definitions: Schema, required: Sequence[str] = ("driver",), *, orders: bool = False
) -> list[Schema]:
    """A branch for each driver that can be loaded: the keys of the bench, and its options. Adds to the definitions.

    orders: the drivers that take orders; else all others.
    """
    branches: list[Schema] = []
    for name in plugins.names(plugins.Group.DRIVERS):
        try:
            driver = plugins.load(plugins.Group.DRIVERS, name)
            options = driver.Options
        except (PluginError, AttributeError):
            continue  # a driver that cannot be loaded here has no options to show
        if any(hasattr(driver, method) for method in ORDER_METHODS) is not orders:
            continue
        schema = adapter(options).json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        described = _describe(options)
        properties = {
            key: {**_tidy(subschema, null=True), "description": described.get(key, f"Option of the {name} driver.")}
            for key, subschema in schema.get("properties", {}).items()
        }
        branches.append(
            {
                "title": f"driver {name}",
                "type": "object",
                "properties": {
                    **common,
                    "driver": {"const": name, "description": common["driver"]["description"]},
                    **properties,
                },
                "required": [*required, *schema.get("required", [])],
                "additionalProperties": False,
            }
        )
    return branches


def _describe(options: type) -> dict[str, str]:
    """The descriptions of the fields of an Options class, from its docstring: the sentence after `field:`."""
    names = "|".join(re.escape(field.name) for field in dataclasses.fields(options))
    text = "\n\n".join(base.__doc__ or "" for base in options.__mro__[:-1])
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text) if names)
    pattern = re.compile(rf"\b({names}): (.*?)(?=[.;] (?:{names}): |$)")
    matches = (match for paragraph in paragraphs for match in pattern.finditer(paragraph))
    return {match[1]: f"{match[2][:1].upper()}{match[2][1:].rstrip('.')}." for match in matches}
