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
from harness.scenario.bench import BenchKeys
from harness.scenario.conditions import ConditionsKeys
from harness.scenario.driver_options import options_adapter
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
            tidy_value = _tidy(value, may_be_null=(name, key) in _MAY_BE_NULL)
            definition["properties"][key] = tidy_value
            if "description" not in tidy_value and "$ref" in tidy_value:  # pydantic omits one that is the same there
                referenced = schema["$defs"][tidy_value["$ref"].rsplit("/", 1)[-1]]
                tidy_value["description"] = referenced["description"]
    if kind is FileKind.SCENARIO:
        engines = list(plugins.names(plugins.Group.VOICES))
        schema["$defs"]["VoiceKeys"]["properties"]["engine"]["enum"] = engines
    if kind is FileKind.BENCH:
        _add_drivers(schema["$defs"])
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"voice-harness {kind.value}"}
    return {**title, **{key: value for key, value in schema.items() if key != "title"}}


def _add_drivers(definitions: Schema) -> None:
    """Replaces the definitions of a bench's equipment by a choice of the drivers, each with its options."""
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
    for name, takes_orders in (("FurtherSourceKeys", False), ("StandKeys", True), ("PowerSwitchKeys", True)):
        definition = definitions[name]
        branches = _branches(definition["properties"], definitions, definition["required"], takes_orders=takes_orders)
        definitions[name] = {"description": definition["description"], "anyOf": branches}


def _tidy(value: Schema, *, may_be_null: bool) -> Schema:
    """The schema of a key without its title, which repeats the key, and without a null that means "not given".

    may_be_null: whether null has a meaning of its own, and stays.
    """
    value = {key: entry for key, entry in value.items() if key != "title"}
    choices = value.get("anyOf", [])
    if not may_be_null and _NULL in choices and "prefixItems" not in value:
        other_choices = [choice for choice in choices if choice != _NULL]
        value.pop("anyOf")
        value.update({"anyOf": other_choices} if len(other_choices) > 1 else other_choices[0])
    if value.get("default", 0) is None or isinstance(value.get("default"), dict):
        value.pop("default")
    return value


def _branches(
    common: Schema, definitions: Schema, required: Sequence[str] = ("driver",), *, takes_orders: bool = False
) -> list[Schema]:
    """A branch for each driver that can be loaded: the keys of the bench, and its options. Adds to the definitions.

    takes_orders: the drivers that take orders, such as those of stands; otherwise all others.
    """
    branches: list[Schema] = []
    for name in plugins.names(plugins.Group.DRIVERS):
        try:
            driver = plugins.load(plugins.Group.DRIVERS, name)
            options = driver.Options
        except (PluginError, AttributeError):
            continue  # a driver that cannot be loaded here has no options to show
        if any(hasattr(driver, method) for method in ORDER_METHODS) is not takes_orders:
            continue
        schema = options_adapter(options).json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        descriptions = _field_descriptions(options)
        properties: Schema = {**common, "driver": {"const": name, "description": common["driver"]["description"]}}
        for key, subschema in schema.get("properties", {}).items():
            description = descriptions.get(key, f"Option of the {name} driver.")
            properties[key] = {**_tidy(subschema, may_be_null=True), "description": description}
        branches.append(
            {
                "title": f"driver {name}",
                "type": "object",
                "properties": properties,
                "required": [*required, *schema.get("required", [])],
                "additionalProperties": False,
            }
        )
    return branches


def _field_descriptions(options: type) -> dict[str, str]:
    """The descriptions of the fields of an Options class, from its docstring: the sentence after `field:`."""
    names = "|".join(re.escape(field.name) for field in dataclasses.fields(options))
    text = "\n\n".join(base.__doc__ or "" for base in options.__mro__[:-1])
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text) if names)
    pattern = re.compile(rf"\b({names}): (.*?)(?=[.;] (?:- )?(?:{names}): |$)")
    matches = (match for paragraph in paragraphs for match in pattern.finditer(paragraph))
    return {match[1]: f"{match[2][:1].upper()}{match[2][1:].rstrip('.')}." for match in matches}
