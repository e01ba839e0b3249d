"""Parameter types and options that several verbs share."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, field, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from functools import wraps
from inspect import Parameter, get_annotations, signature
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TextIO, Union, get_args, get_origin

import click

from harness.base.places import shipped_folder
from harness.base.whole_file import WholeFile
from harness.cli.command import Command, Option
from harness.cli.streams import STREAM, print_file, print_lines
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact

if TYPE_CHECKING:
    from harness.model.offline import Task
    from harness.statistics.verdict import DeclaredLimit

LIMIT_FAILED = 1
"""The exit status if a limit does not hold, if a measure became worse, or if labels are not declared."""


class ShippedFile(click.Path):
    """A path. If one below `devices/` or `scenarios/` does not exist, it means the project's own file of that name.

    So the commands of the manual work in any folder, also if the package is installed.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return existing_or_shipped(Path(value))


def existing_or_shipped(path: Path) -> Path:
    """The path, or the project's own file if nothing exists at a path below `devices/` or `scenarios/`."""
    if not path.is_absolute() and path.parts and path.parts[0] in ("devices", "scenarios"):
        shipped = shipped_folder(path.parts[0]).joinpath(*path.parts[1:])
        if not path.exists() and shipped.exists():
            return shipped
    return path


SHIPPED_FILE = ShippedFile()
A_FILE = click.Path(path_type=Path, dir_okay=False)
A_FOLDER = click.Path(path_type=Path, file_okay=False)


class FiniteRange(click.FloatRange):
    """A finite number within limits. click itself accepts NaN in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class EnumChoice(click.Choice[str]):
    """The values of an enumeration. The command gets the member, not its text."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__([member.value for member in kind])
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._kind(super().convert(str(value), param, ctx))


def parse_share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback: the share that 0.08 or 8% means. BadParameter for another text.

    A rate of errors may be above 1, but only as a percentage: 8 is probably meant to be 8%.
    """
    if value is None:
        return None
    text = value.strip()
    try:
        # As decimals: the float 0.7 / 100 is below 0.007, and 7 errors in 1000 words would break a limit of 0.7%.
        number = Decimal(text.removesuffix("%"))
        fraction = float(number / 100 if text.endswith("%") else number)
    except (ArithmeticError, ValueError):
        fraction = math.nan
    if not 0 <= fraction < math.inf:
        raise click.BadParameter(f"{value!r} is not a share. Write 0.08 or 8%", ctx, param)
    if fraction > 1 and not text.endswith("%"):
        raise click.BadParameter(
            f"{text} would be {exact(100 * fraction)} %. Write {text}% if you mean per cent", ctx, param
        )
    return fraction


def demand_limits(limits: Iterable[DeclaredLimit], unfinished: Sequence[str] = ()) -> None:
    """Ends with status 1 if a limit does not hold, after printing a sentence for each of them.

    unfinished: sessions that were not completed, with what they lack. They leave all limits undecided, which counts as
    a failure.
    """
    declared_limits = list(limits)
    sentences = [limit.sentence for limit in declared_limits if limit.fails_run]
    if declared_limits and unfinished:
        sentences.append(f"the limits are undecided: {'; '.join(unfinished)}")
    for sentence in sentences:
        click.echo(f"harness: {sentence}", err=True)
    if sentences:
        sys.exit(LIMIT_FAILED)


def choose_one(**options: object) -> None:
    """Raises InputError if more than one of the options is given: `choose_one(json=as_json, csv=as_csv)`."""
    if len([name for name, value in options.items() if value]) > 1:
        *names, last = (f"--{name.replace('_', '-')}" for name in options)
        raise InputError(f"{', '.join(names)} and {last} cannot be combined", remedy="Choose one")


_DECLARED = "declared"
"""Key of a field's metadata: the class of the parameter, its names, and its attributes."""


def _declare(kind: type[click.Parameter], names: Sequence[str], attributes: dict[str, Any], absent: object) -> Any:
    """A field of a dataclass that `verb` makes a parameter of. absent: its value if no default is given."""
    default = attributes.get("default", absent)
    return field(default=default, metadata={_DECLARED: (kind, names, attributes)})


def option(help: str, *names: str, **attributes: Any) -> Any:
    """Declares an option where its value is named: a parameter of a `verb`, or a field of a frozen dataclass.

    names: other names than that of the parameter. Without `type` and `callback`, the annotation is the type. within:
    minimum and maximum of a number, None for no limit. The help ends with the default: `default`, or what
    `show_default` says in words.
    """
    has_default = attributes.get("default", "") != ""
    return _declare(Option, names, {"help": help, "show_default": has_default, **attributes}, None)


def flag(help: str, *names: str, **attributes: Any) -> Any:
    """An `option` without a value."""
    return _declare(Option, names, {"help": help, "is_flag": True, **attributes}, False)


def repeatable(help: str, *names: str, **attributes: Any) -> Any:
    """A repeatable `option`."""
    return _declare(Option, names, {"help": help, "multiple": True, **attributes}, ())


def argument(metavar: str | None = None, **attributes: Any) -> Any:
    """Declares an argument, as `option`. If the annotation is a tuple, the argument takes all words that are left."""
    return _declare(click.Argument, (), {"metavar": metavar, **attributes}, ())


def option_group(**declared: Any) -> Any:
    """Options that become one object, of the dataclass that the parameter is annotated with. declared: field → option.

    A dataclass whose fields declare their options needs no `option_group`. Its `__post_init__` checks whether the
    options go together.
    """
    return declared


def verb(
    name: str, parent: click.Group | None = None, sections: Mapping[str, str] = MappingProxyType({}), **attributes: Any
) -> Callable[[Callable[..., object]], click.Command]:
    """A decorator that makes a command of a function. Each parameter of the function has its option or argument as
    default, see `option`.

    sections: heading in the help → the parameters or fields below it, separated by spaces. The others come first.
    Raises TypeError for a section that names an unknown option.
    """

    def make_command(function: Callable[..., object]) -> click.Command:
        parameters, groups = _make_parameters(function)
        headings = {param_name: heading for heading, names in sections.items() for param_name in names.split()}
        for param in parameters:
            if isinstance(param, Option) and param.name in headings:
                param.heading = headings.pop(param.name)
        if headings:
            raise TypeError(f"{name}: no option is named {', '.join(headings)}")

        @wraps(function)
        def call_function(**values: Any) -> object:
            for group, (kind, names) in groups.items():
                values[group] = kind(**{field_name: values.pop(field_name) for field_name in names})
            return function(**values)

        declare = (click if parent is None else parent).command
        return declare(name, cls=Command, params=parameters, **attributes)(call_function)

    return make_command


def _make_parameters(
    function: Callable[..., object],
) -> tuple[list[click.Parameter], dict[str, tuple[type[Any], list[str]]]]:
    """What click needs to call the function, and its groups of options: parameter → its dataclass and the fields."""
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters: list[click.Parameter] = []
    kinds = _read_annotations(function)
    for name, parameter in signature(function).parameters.items():
        kind, declared = kinds[name], parameter.default
        if is_dataclass(kind) and declared is Parameter.empty:
            declared = {
                option_field.name: option_field for option_field in fields(kind) if _DECLARED in option_field.metadata
            }
        if isinstance(declared, dict):
            field_kinds = _read_annotations(kind) if isinstance(kind, type) else {}
            groups[name] = kind, list(declared)
            for field_name, declaration in declared.items():
                parameters.append(_make_parameter(field_name, field_kinds.get(field_name, Any), declaration))
        elif declared is not Parameter.empty:
            declarations = declared if isinstance(declared, tuple) else (declared,)
            parameters += [_make_parameter(name, kind, declaration) for declaration in declarations]
    return parameters, groups


def _read_annotations(owner: Callable[..., object] | type[Any]) -> dict[str, Any]:
    """The annotations of a function or class by name. A type that only type checkers import becomes `Any`."""
    hints: dict[str, Any] = {}
    for name, annotation in get_annotations(owner).items():
        try:
            hints[name] = eval(annotation, vars(sys.modules[owner.__module__]))
        except NameError:
            hints[name] = Any
    return hints


def _make_parameter(name: str, kind: Any, declared: Field[Any]) -> click.Parameter:
    """The option or argument that a field declares. kind: the annotation."""
    parameter_class, names, attributes = declared.metadata[_DECLARED]
    attributes = dict(attributes)
    if isinstance(attributes.get("default"), StrEnum):
        attributes["default"] = attributes["default"].value  # click would show its name
    if (limits := attributes.pop("within", None)) is not None:
        attributes["type"] = click.IntRange(*limits) if _item_type(kind) is int else FiniteRange(*limits)
    if not attributes.keys() & {"type", "callback", "is_flag", "flag_value", "count", "nargs"}:
        attributes["type"] = _param_type_of(kind)
    if parameter_class is click.Argument:
        if get_origin(kind) is tuple:
            attributes.setdefault("nargs", -1)
        return click.Argument([name], **attributes)
    if not any(option_name.startswith("--") for option_name in names):
        names = (*names, f"--{name.replace('_', '-')}")
    return Option([*names, name], **attributes)


def _item_type(kind: Any) -> Any:
    """The type of one item: `int` for `int | None` and for `tuple[int, ...]`."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(member for member in get_args(kind) if member is not NoneType)
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _param_type_of(kind: Any) -> Any:
    """The type of click that converts a word to an annotated type; None for click's own choice."""
    kind = _item_type(kind)
    if get_origin(kind) is Literal:
        return click.Choice(list(get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return EnumChoice(kind)
    if kind is Path:
        return click.Path(path_type=Path)
    return kind if kind in (int, float) else None


def json_option(help: str) -> Any:
    """`--json` or `--json FILE`. The command gets whether it was given, and prints in either case."""
    return _print_option("--json", help, (".json", ".jsonl"))


def csv_option(help: str) -> Any:
    """`--csv`, as `json_option`."""
    return _print_option("--csv", help, (".csv",))


def target_option(name: str, help: str) -> Any:
    """`--json` or `--csv` of a command that prints its text, too, if a FILE is named.

    The command gets FILE, STREAM without one, or None.
    """
    help += " FILE: write to this file, and print the text too."
    return option(help, name, suffixes=(f".{name[2:]}",), any_word=True, reported=True, metavar="[FILE]")


_WRITES = " FILE: write to this file."


def _print_option(name: str, help: str, suffixes: Sequence[str]) -> Any:
    return option(help + _WRITES, name, suffixes=suffixes, reported=True, metavar="[FILE]", callback=_redirect)


def _redirect(ctx: click.Context, param: click.Parameter, value: str | None) -> bool:
    """A callback: from now on, standard output is written to the file, if one is named. True if the option is given."""
    if value is not None and value != STREAM and not ctx.resilient_parsing:
        ctx.with_resource(_standard_output_into(value))
    return value is not None


@contextmanager
def _standard_output_into(name: str) -> Iterator[None]:
    """Sends standard output to a file. It appears, complete, when the command ends, and not at all after an error.

    An exit with a status is not an error: a command whose limit fails has printed its result.
    """
    with WholeFile(name) as file:
        output: TextIO = io.TextIOWrapper(io.BufferedWriter(file), "utf-8")
        previous, sys.stdout = sys.stdout, output
        exit_request: BaseException | None = None
        try:
            yield
        except (SystemExit, click.exceptions.Exit) as error:
            exit_request = error
        finally:
            sys.stdout = previous
        output.flush()
        file.keep()
        if exit_request is not None:
            raise exit_request


@frozen
class RatedSessionOptions:
    """Sessions whose judgments are evaluated; `sessions.rated_sessions` finds the folders.

    - named: sessions, or one round file.
    - round_id: the round whose judgments count; None for all, or for that of the file.
    - with_programs: programs count as raters.
    """

    named: tuple[str, ...] = argument("SESSION… | ROUND.yaml", required=True)
    round_id: str | None = option("Count only judgments of this round.", "--round", metavar="ID")
    with_programs: bool = flag("Count programs as raters, too.", show_default="kept apart")


def sessions_argument() -> Any:
    """One session or several by path, or by name in ./sessions; `session_folder` finds their folders."""
    return argument("SESSION…", required=True)


def seed_option(help: str, default: int | None = None, *, max_seed: int | None = None, **attributes: Any) -> Any:
    """`--seed`, from 0 to `max_seed`. default: None for a default that `show_default` describes."""
    if default is not None:
        attributes["default"] = default
    return option(help, "--seed", within=(0, max_seed), **attributes)


def output_option(help: str, *, folder: bool = False, **attributes: Any) -> Any:
    """`-o`, a path to a file or a folder, formerly `--out`. attributes: may replace the type."""
    kind = click.Path(path_type=Path, file_okay=not folder, dir_okay=folder)
    return option(help, "-o", "--output", former=("--out",), writes=not folder, **{"type": kind, **attributes})


@frozen
class OutputFormat:
    """How a result is printed: as JSON, as CSV, or as text without either. Raises InputError for both."""

    as_json: bool
    as_csv: bool

    def __post_init__(self) -> None:
        choose_one(json=self.as_json, csv=self.as_csv)

    def print(self, *, json: Callable[[], str], csv: Callable[[], str], lines: Callable[[], Iterable[str]]) -> None:
        """Prints the result in this form.

        - json: returns it without the last line end.
        - csv: with all line ends.
        """
        if self.as_json:
            print_lines([json()])
        elif self.as_csv:
            print_file(csv().encode("utf-8", "replace"))
        else:
            print_lines(lines())


def printed_options(as_json: str, as_csv: str) -> Any:
    """`--json` and `--csv`, with these helps, as `OutputFormat`."""
    return option_group(as_json=json_option(as_json), as_csv=csv_option(as_csv))


@frozen
class EngineOptions:
    """Engines for the same lists of files. A setting goes to every engine that knows it.

    - tasks: as on the command line.
    - settings: `name=value`.
    - files: (name of a setting, path of the file with its value).
    """

    tasks: tuple[str, ...]
    settings: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    def parse_tasks(self) -> list[Task]:
        """A task for each engine, in order. Loads no model.

        Raises PluginError for an unknown engine. Raises InputError for a wrong value, and for a setting that no engine
        knows.
        """
        from harness.engines.offline_loading import check_model, engine_class, task_of
        from harness.engines.settings import parse_assignment

        settings = [parse_assignment(assignment) for assignment in self.settings]
        if len(self.tasks) == 1:
            return [task_of(self.tasks[0], settings, self.files)]
        names_by_task = [
            {setting.name for setting in engine_class(task_of(text).engine).settings} for text in self.tasks
        ]
        for name, _ in (*settings, *self.files):
            if not any(name in names for names in names_by_task):
                raise InputError(
                    f"none of the engines has the setting {name!r}", remedy="Run: harness evaluate engines ENGINE"
                )
        tasks = []
        for text, names in zip(self.tasks, names_by_task, strict=True):
            task_settings = [(name, value) for name, value in settings if name in names]
            task_files = [(name, file) for name, file in self.files if name in names]
            tasks.append(task_of(text, task_settings, task_files))
        for task in tasks:
            check_model(task)
        return tasks


def audio_option() -> Any:
    """`--audio`: where the sounds of a page are."""
    return option(
        "Sounds for the page: embedded (at most 6 MB), in a folder next to it, or none.",
        type=click.Choice(["embed", "beside", "none"]),
        default="embed",
    )


def engine_options(task: str, *, several: bool = False) -> Any:
    """`-t`, `-s` and `-f` as `EngineOptions`. several: whether -t is repeatable. task: its help."""
    return option_group(
        tasks=option(
            task, "-t", "--task", required=True, multiple=several, metavar="TASK",
            callback=None if several else lambda ctx, param, value: (value,),
        ),
        settings=setting_option("Engine setting; the last one wins."),
        files=repeatable(
            "Set an engine setting from a file.", "-f", "--setting-file", type=(str, str), metavar="NAME FILE"
        ),
    )  # fmt: skip


def setting_option(help: str, metavar: str = "NAME=VALUE") -> Any:
    """`-s` as a tuple of `name=value`."""
    return repeatable(help, "-s", "--setting", metavar=metavar)


def parse_settings(assignments: Sequence[str], form: str = "name=value") -> list[tuple[str, str]]:
    """The name and value of each text of `setting_option`.

    Raises InputError for other texts. form: what the error advises.
    """
    settings = []
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            missing = "name" if equals else "value"
            raise InputError(f"-s {text}: the {missing} is missing", remedy=f"Write -s {form}")
        settings.append((name.strip(), value.strip()))
    return settings


_SITE = "Web site"


@frozen
class Site:
    """Whether people work in their browsers, and how their site is served. None: the default of `WebOptions`."""

    web: bool
    address: str | None = option(
        "Address to listen on.", "--listen", former=("--address",), heading=_SITE, show_default="127.0.0.1"
    )
    port: int | None = option(
        "Port to listen on.", "--web-port", former=("--port",), heading=_SITE, within=(0, 65535), show_default="8765"
    )
    tls_cert: Path | None = option("TLS certificate, PEM.", heading=_SITE)
    tls_key: Path | None = option("Key of the certificate, PEM.", heading=_SITE)
    insecure: bool = flag("Let other hosts connect without TLS.", heading=_SITE)
    public_url: str | None = option(
        "Address that visitors use, if it differs from --listen.", heading=_SITE, metavar="URL"
    )
    invitations: Path | None = option("Invitations file.", heading=_SITE, show_default="invitations.json")

    @property
    def web_options(self) -> dict[str, Any]:
        """The fields of `harness.web.server.WebOptions` that are given, with their values."""
        values = {
            option_field.name: getattr(self, option_field.name)
            for option_field in fields(Site)
            if option_field.name != "web"
        }
        # By identity, since the port 0 equals False but is given.
        return {name: value for name, value in values.items() if not (value is None or value is False or value == "")}

    def demand_web(self, owner: str) -> None:
        """InputError if an option of the site is given without --web. owner: of the site, such as `raters'`."""
        if self.web_options and not self.web:
            first = next(option_field for option_field in fields(Site) if option_field.name in self.web_options)
            _, names, _ = first.metadata[_DECLARED]
            name = names[0] if names else f"--{first.name.replace('_', '-')}"
            raise InputError(f"{name} applies only to the {owner} site", remedy="Add --web")


def site_options(audience: str) -> Any:
    """`--web` and how the site is served, as `Site`.

    audience: `raters'`, `live`; "" for a command that always serves it.
    """
    options = {
        option_field.name: _require_web(option_field) if audience else option_field
        for option_field in fields(Site)
        if _DECLARED in option_field.metadata
    }
    web_help = f"Serve the {audience} site; `harness rate invite` creates the links to log in."
    return option_group(web=flag(web_help, hidden=not audience), **options)


def _require_web(declared: Field[Any]) -> Any:
    """The option with a help that says that it needs --web."""
    kind, names, attributes = declared.metadata[_DECLARED]
    text = attributes["help"]
    if not text[:2].isupper():  # an abbreviation such as TLS keeps its capitals
        text = text[0].lower() + text[1:]
    return _declare(kind, names, {**attributes, "help": f"With --web: {text}"}, declared.default)
