"""`harness evaluate engines`: offline engines, with their models, settings, operating points and licences."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text
from harness.base.plain_json import to_plain
from harness.base.progress import tracked
from harness.cli.options import argument, json_option, repeatable, verb
from harness.cli.streams import NO_TERMINAL, drawn_progress
from harness.model.errors import InputError, PluginError
from harness.model.numbers import exact
from harness.model.offline import EngineKind, OperatingPoint, Setting, SettingKind

if TYPE_CHECKING:
    from rich.table import Table

    from harness.engines.offline_loading import CataloguedEngine, LoadedEngine

_MAX_TEXT_CHARS = 400
_MIN_WIDE_COLUMNS = 130
"""A narrower table leaves out versions and operating points."""


@verb("engines")
def command(
    *,
    name: str | None = argument(required=False),
    settings: tuple[str, ...] = repeatable(
        "Load NAME:MODEL with this setting.", "-s", "--setting", metavar="SETTING=VALUE"
    ),
    as_json: bool = json_option("Print JSON instead of text."),
) -> None:
    """List engines for offline evaluation. NAME: describe one engine. NAME:MODEL: load one model and describe it.

    NAME:MODEL is written as for `harness evaluate -t`: microwakeword:okay_nabu, process:'./their-engine --model x', a
    model file such as my_word.tflite.

    Exit status: 0 done · 2 the engine is unknown or its model cannot be loaded · 3 the engine failed.
    """
    from harness.engines.offline_loading import BY_ENDING, catalogue, find_in_catalogue, load_or_explain, loaded_model
    from harness.engines.settings import parse_assignment

    if name is None:
        if settings:
            raise InputError("-s needs the model that the setting is for", remedy="Specify the model as ENGINE:MODEL")
        with drawn_progress():
            entries = list(tracked(catalogue(), "Reading engines"))
        if as_json:
            click.echo(json.dumps([_engine_json(entry) for entry in entries], ensure_ascii=False, indent=2))
        else:
            _print_table(_overview_table(entries))
        return
    if ":" not in name and (ending := PurePath(name).suffix.lower()) in BY_ENDING:
        name = f"{BY_ENDING[ending]}:{name}"
    engine, colon, model = name.partition(":")
    entry = find_in_catalogue(engine.replace("-", "_"))
    if entry.missing:
        raise PluginError(f"the engine {entry.name} cannot be used here: {entry.missing}")
    if colon and model:
        models = [loaded_model(name, map(parse_assignment, settings))]
    elif settings:
        raise InputError("-s needs the model that the setting is for", remedy="Specify the model as ENGINE:MODEL")
    else:
        with drawn_progress():
            shipped_models = entry.models if _has_points_per_model(entry) else ()
            models = [
                load_or_explain(f"{entry.name}:{shipped_model.name}")
                for shipped_model in tracked(shipped_models, "Loading models")
            ]
    if as_json:
        content = _engine_json(entry) | {"loaded": [_loaded_json(loaded_engine) for loaded_engine in models]}
        click.echo(json.dumps(content, ensure_ascii=False, indent=2))
    else:
        _print_details(entry, models)


def _has_points_per_model(entry: CataloguedEngine) -> bool:
    """Whether each model has its own operating points, as in wake engines with scores. Their models load quickly."""
    from harness.engines.settings import OPERATING_POINT

    if entry.kind is not EngineKind.WAKE or entry.operating_points:
        return False
    return any(setting.name == OPERATING_POINT.name for setting in entry.settings)


def _overview_table(entries: Iterable[CataloguedEngine]) -> Table:
    """A row for each engine, also for those that cannot be used here, with the reason in place of the models."""
    is_wide = _terminal_columns() >= _MIN_WIDE_COLUMNS
    wide_titles = ["version", "operating points"] if is_wide else []
    table = _new_table("engine", "kind", *wide_titles, "models and phrases", "licence")
    for entry in entries:
        if entry.missing:
            wide_cells = ["not here", "–"] if is_wide else []
            _add_row(table, entry.name, _kind_text(entry), *wide_cells, entry.missing, "–")
            continue
        models_text = ", ".join(_model_text(model.name, model.phrases) for model in entry.models)
        licences = "; ".join(entry.licences)
        wide_cells = [entry.version, _points_text(entry)] if is_wide else []
        _add_row(table, entry.name, _kind_text(entry), *wide_cells, models_text or "–", licences or "–")
    return table


def _model_text(name: str, phrases: Sequence[str]) -> str:
    """A model's name, with its phrases unless the name already is its phrase."""
    is_phrase = [name.replace("_", " ")] == [phrase.lower() for phrase in phrases]
    return name if is_phrase or not phrases else f"{name} ({', '.join(phrases)})"


def _points_text(entry: CataloguedEngine) -> str:
    """The range of an engine's operating points, or what stands in its place."""
    if entry.operating_points:
        first, last = entry.operating_points[0], entry.operating_points[-1]
        return f"{first.number} ({exact(first.threshold, 4)}) to {last.number} ({exact(last.threshold, 4)})"
    if _has_points_per_model(entry):
        return "1 to 20 per model"
    return "if the engine reports scores" if entry.kind is None else "–"


def _print_details(entry: CataloguedEngine, models: Sequence[LoadedEngine]) -> None:
    """Prints an engine's models, settings and operating points. models: those that were loaded, or could not be."""
    _print_pairs([("engine", entry.name), ("kind", _kind_text(entry)), ("version", entry.version),
                  ("licence", "; ".join(entry.licences) or "–")])  # fmt: skip
    click.echo()
    table = _new_table("model", "phrases", "licence", "what")
    for model in entry.models:
        _add_row(table, model.name, ", ".join(model.phrases) or "–", model.licence, model.what)
    _print_table(table)
    click.echo()
    table = _new_table("setting", "default", "range", "what")
    for setting in entry.settings:
        default = setting.default or ("none" if setting.kind is SettingKind.FILE else "the model's own")
        _add_row(table, setting.name, default, _range_text(setting), setting.what)
    _print_table(table)
    points_by_model = {
        engine.model.partition(":")[2]: engine.facts.operating_points
        for engine in models
        if engine.facts is not None and engine.facts.operating_points
    }
    if entry.operating_points and not points_by_model:
        points_by_model = {"threshold": entry.operating_points}
    if points_by_model:
        click.echo()
        _print_table(_points_table(points_by_model))
    for engine in models:
        if engine.missing:
            click.echo(f"\n{_safe(engine.model)} cannot be loaded: {_safe(engine.missing)}")
        elif len(models) == 1:
            click.echo()
            _print_loaded(engine)


def _print_loaded(engine: LoadedEngine) -> None:
    """Prints what a loaded engine reports about itself; nothing if it could not be loaded."""
    facts = engine.facts
    if facts is None:
        return
    lines = [
        ("task", engine.model),
        ("loaded", facts.version),
        ("kind", facts.kind.value),
        ("rate", f"{facts.rate_hz} Hz"),
        ("phrases", ", ".join(facts.phrases) or "–"),
        ("licence", facts.licence or "not stated"),
    ]
    if facts.kind is EngineKind.WAKE:
        lines.append(("lead-in", f"{exact(facts.lead_in_ms)} ms"))
    if facts.rule is not None:
        point = "" if facts.operating_point is None else f" (operating point {facts.operating_point})"
        lines += [("threshold", f"{exact(facts.rule.threshold, 6)}{point}"),
                  ("refractory", f"{exact(1000 * facts.rule.refractory_samples / facts.rate_hz)} ms")]  # fmt: skip
    elif facts.operating_point is not None:
        lines.append(("operating point", str(facts.operating_point)))
    _print_pairs([*lines, ("fingerprint", facts.fingerprint)])


def _points_table(points_by_title: Mapping[str, Iterable[OperatingPoint]]) -> Table:
    """The threshold of each operating point, in a column for each title."""
    thresholds = [{point.number: point.threshold for point in points} for points in points_by_title.values()]
    table = _new_table("operating point", *points_by_title)
    for number in sorted(set().union(*thresholds)):
        cells = [exact(column[number], 6) if number in column else "–" for column in thresholds]
        _add_row(table, str(number), *cells)
    return table


def _range_text(setting: Setting) -> str:
    match setting.kind:
        case SettingKind.CHOICE:
            return ", ".join(setting.choices)
        case SettingKind.TEXT | SettingKind.FILE:
            return setting.kind.value
        case SettingKind.NUMBER | SettingKind.WHOLE:
            if setting.low is None or setting.high is None:
                return setting.kind.value
            whole_text = ", whole" if setting.kind is SettingKind.WHOLE else ""
            return f"{exact(setting.low)} to {exact(setting.high)}{whole_text}"


def _kind_text(entry: CataloguedEngine) -> str:
    return "by model" if entry.kind is None else entry.kind.value


def _engine_json(entry: CataloguedEngine) -> dict[str, Any]:
    """An entry of the catalogue. `missing` is null if the engine can be used."""
    fields: dict[str, Any] = to_plain(entry)
    for setting in fields["settings"]:
        del setting["scores"]
    return fields | {"missing": entry.missing or None}


def _loaded_json(engine: LoadedEngine) -> dict[str, Any]:
    """What a loaded engine reports about itself, or why it could not be loaded."""
    facts = engine.facts
    if facts is None:
        return {"task": engine.model, "missing": engine.missing}
    fields: dict[str, Any] = {"task": engine.model} | to_plain(facts)
    rule = fields.pop("rule")
    del fields["settings"]
    return fields | {"threshold": None if rule is None else rule["threshold"]}


def _new_table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for index, title in enumerate(titles):
        table.add_column(title, overflow="fold", no_wrap=index == 0)
    return table


def _add_row(table: Table, *cells: str) -> None:
    from rich.text import Text

    table.add_row(*(Text(_safe(cell)) for cell in cells))


def _print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Prints a line for each title and its text, with the texts in a column."""
    width = max(len(title) for title, _ in pairs)
    for title, text in pairs:
        click.echo(f"{title:<{width}}  {_safe(text)}".rstrip())


def _safe(text: str) -> str:
    return plain_text(text, _MAX_TEXT_CHARS)


def _terminal_columns() -> int:
    return shutil.get_terminal_size(NO_TERMINAL).columns


def _print_table(table: Table) -> None:
    """Prints a table as wide as the terminal, or 120 columns in a pipe. Programs should use --json."""
    from rich.console import Console

    output = io.StringIO()
    Console(file=output, width=_terminal_columns(), color_system=None).print(table)
    click.echo("\n".join(line.rstrip() for line in output.getvalue().splitlines()))
