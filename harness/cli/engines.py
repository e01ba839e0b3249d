"""`harness evaluate engines`: offline engines, with their models, settings, operating points and licences."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable, Sequence
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
_NARROW = 130  # columns; narrower tables leave out versions and operating points


@verb("engines")
def command(
    *,
    name: str | None = argument(required=False),
    given: tuple[str, ...] = repeatable(
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
        if given:
            raise InputError("-s needs the model that the setting is for", remedy="Name it, as ENGINE:MODEL")
        with drawn_progress():
            entries = list(tracked(catalogue(), "Reading engines"))
        if as_json:
            click.echo(json.dumps([_engine_json(entry) for entry in entries], ensure_ascii=False, indent=2))
        else:
            _print(_overview(entries))
        return
    if ":" not in name and (ending := PurePath(name).suffix.lower()) in BY_ENDING:
        name = f"{BY_ENDING[ending]}:{name}"
    engine, colon, model = name.partition(":")
    entry = find_in_catalogue(engine.replace("-", "_"))
    if entry.missing:
        raise PluginError(f"the engine {entry.name} cannot be used here: {entry.missing}")
    if colon and model:
        models = [loaded_model(name, map(parse_assignment, given))]
    elif given:
        raise InputError("-s needs the model that the setting is for", remedy="Name it, as ENGINE:MODEL")
    else:
        with drawn_progress():
            named = tracked(entry.models if _has_points_per_model(entry) else (), "Loading models")
            models = [load_or_explain(f"{entry.name}:{listed_model.name}") for listed_model in named]
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


def _overview(entries: Iterable[CataloguedEngine]) -> Table:
    narrow = _columns() < _NARROW
    middle = [] if narrow else ["version", "operating points"]
    table = _table("engine", "kind", *middle, "models and phrases", "licence")
    for entry in entries:
        if entry.missing:
            not_here = [] if narrow else ["not here", "–"]
            _row(table, entry.name, _kind(entry), *not_here, entry.missing, "–")
            continue
        named = [model.name if _is_phrase(model.name, model.phrases) else f"{model.name} ({', '.join(model.phrases)})"
                 for model in entry.models]  # fmt: skip
        licences = "; ".join(entry.licences)
        middle = [] if narrow else [entry.version, _points_of(entry)]
        _row(table, entry.name, _kind(entry), *middle, ", ".join(named) or "–", licences or "–")
    return table


def _is_phrase(name: str, phrases: Sequence[str]) -> bool:
    """Whether the model's name already is its phrase."""
    return not phrases or [name.replace("_", " ")] == [phrase.lower() for phrase in phrases]


def _points_of(entry: CataloguedEngine) -> str:
    if entry.operating_points:
        first, last = entry.operating_points[0], entry.operating_points[-1]
        return f"{first.number} ({exact(first.threshold, 4)}) to {last.number} ({exact(last.threshold, 4)})"
    if _has_points_per_model(entry):
        return "1 to 20 per model"
    return "if it reports scores" if entry.kind is None else "–"


def _print_details(entry: CataloguedEngine, models: Sequence[LoadedEngine]) -> None:
    _lines([("engine", entry.name), ("kind", _kind(entry)), ("version", entry.version),
            ("licence", "; ".join(entry.licences) or "–")])  # fmt: skip
    click.echo()
    table = _table("model", "phrases", "licence", "what")
    for model in entry.models:
        _row(table, model.name, ", ".join(model.phrases) or "–", model.licence, model.what)
    _print(table)
    click.echo()
    table = _table("setting", "default", "range", "what")
    for setting in entry.settings:
        default = setting.default or ("none" if setting.kind is SettingKind.FILE else "the model's own")
        _row(table, setting.name, default, _range(setting), setting.what)
    _print(table)
    by_model = [engine for engine in models if engine.facts is not None and engine.facts.operating_points]
    if entry.operating_points and not by_model:
        click.echo()
        _print(_points(["threshold"], [entry.operating_points]))
    if by_model:
        click.echo()
        points = [engine.facts.operating_points for engine in by_model if engine.facts is not None]
        _print(_points([engine.model.partition(":")[2] for engine in by_model], points))
    for engine in models:
        if engine.missing:
            click.echo(f"\n{_plain(engine.model)} cannot be loaded: {_plain(engine.missing)}")
        elif len(models) == 1:
            click.echo()
            _loaded_lines(engine)


def _loaded_lines(engine: LoadedEngine) -> None:
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
    _lines([*lines, ("fingerprint", facts.fingerprint)])


def _points(titles: Sequence[str], models: Sequence[tuple[OperatingPoint, ...]]) -> Table:
    table = _table("operating point", *titles)
    for number in sorted({point.number for points in models for point in points}):
        cells = [
            next((exact(point.threshold, 6) for point in points if point.number == number), "–") for points in models
        ]
        _row(table, str(number), *cells)
    return table


def _range(setting: Setting) -> str:
    match setting.kind:
        case SettingKind.CHOICE:
            return ", ".join(setting.choices)
        case SettingKind.TEXT | SettingKind.FILE:
            return setting.kind.value
        case SettingKind.NUMBER | SettingKind.WHOLE:
            if setting.low is None or setting.high is None:
                return setting.kind.value
            return f"{exact(setting.low)} to {exact(setting.high)}" + (
                ", whole" if setting.kind is SettingKind.WHOLE else ""
            )


def _kind(entry: CataloguedEngine) -> str:
    return "by model" if entry.kind is None else entry.kind.value


def _engine_json(entry: CataloguedEngine) -> dict[str, Any]:
    fields: dict[str, Any] = to_plain(entry)
    for setting in fields["settings"]:
        del setting["scores"]
    return fields | {"missing": entry.missing or None}


def _loaded_json(engine: LoadedEngine) -> dict[str, Any]:
    facts = engine.facts
    if facts is None:
        return {"task": engine.model, "missing": engine.missing}
    fields: dict[str, Any] = {"task": engine.model} | to_plain(facts)
    rule = fields.pop("rule")
    del fields["settings"]
    return fields | {"threshold": rule and rule["threshold"]}


def _table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, overflow="fold", no_wrap=number == 0)
    return table


def _row(table: Table, *cells: str) -> None:
    from rich.text import Text

    table.add_row(*(Text(_plain(cell)) for cell in cells))


def _lines(pairs: Sequence[tuple[str, str]]) -> None:
    width = max(len(title) for title, _ in pairs)
    for title, text in pairs:
        click.echo(f"{title:<{width}}  {_plain(text)}".rstrip())


def _plain(text: str) -> str:
    return plain_text(text, _MAX_TEXT_CHARS)


def _columns() -> int:
    return shutil.get_terminal_size(NO_TERMINAL).columns


def _print(table: Table) -> None:
    """Print as wide as the terminal, or 120 columns in a pipe. Programs should use --json."""
    from rich.console import Console

    drawn = io.StringIO()
    Console(file=drawn, width=_columns(), color_system=None).print(table)
    click.echo("\n".join(line.rstrip() for line in drawn.getvalue().splitlines()))
