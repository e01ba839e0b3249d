"""`harness init`: commented starter files for a bench, by how its device is reached."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from harness.base.foreign import plain_text
from harness.cli.options import A_FOLDER, argument, option, option_group, verb
from harness.model.errors import HarnessError, InputError, Place
from harness.model.frozen import frozen

if TYPE_CHECKING:
    from harness.devices.declared import SetupAdvice

NAME = re.compile(r"(?!(true|false|null|\d+(e-?\d+)?)$)[a-z0-9][a-z0-9_-]{0,63}")
"""A board's name, which the starter files have without quotation marks: YAML must read it as text."""
TAKEN = ("scenario", "bench", "near")
"""Names of other starter files and of the loudspeaker in them, which a board cannot have."""
MAX_LINE_CHARS = 10_000
PHRASE = "hey computer"
"""The usual wake phrase."""
_PHRASE = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[^\W\d_]+( [^\W\d_]+)*", re.IGNORECASE)
_PLAIN_YAML = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z/][\w./-]*(:\w[\w./-]*)*", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[0-9a-fA-F:.]+(%[\w.-]+)?\](:\d+)?")


class BenchKind(StrEnum):
    """How the device under test is reached."""

    VIRTUAL_LAB = "virtual_lab"
    SOUND = "sound"
    SERIAL = "serial"
    MQTT = "mqtt"
    ESPHOME = "esphome"
    WYOMING = "wyoming"
    OVOS = "ovos"
    HOME_ASSISTANT = "home_assistant"
    COMMAND = "command"
    RHASSPY = "rhasspy"


@frozen
class DeviceKind:
    """A kind of device with a connection: how `harness init` asks for its address, and what its starter files say."""

    option: str
    """The option that says where the device is. `metavar`, `help` and `default` are those of the option."""
    metavar: str
    help: str
    default: str
    prompt: str
    """Asks for the same on a terminal."""
    title: str
    """The kind, in the list of kinds of bench."""
    name: str
    """Default name of the device."""
    reached: str
    """How the device is reached, as text after "one device"."""
    keys: dict[str, str]
    """Keys of the connection. {at} is the address as given; {place} is a URL or host and port, see `connection`."""
    hint: str
    """A comment on the keys."""
    port: int | None = None
    """The default port in {place}; None if {place} is the address as given."""
    scheme: str = ""
    """What precedes host and port in {place}, unless the address is a URL already."""
    shipped: str = ""
    """A profile that comes with the harness; "" if one is written from `starter`."""
    phrase: str = ""
    """Wakes a device with the shipped profile; "" for the usual phrase."""
    starter: str = ""
    """The template of a new profile."""
    monitor: str = ""
    """Arguments of `devices monitor`."""

    def connection(self, address: str) -> dict[str, str]:
        """The keys for a device at this address. Raises InputError for a text that is not an address."""
        place = address
        if self.port is not None and not (self.scheme and "://" in address):
            place = self.scheme + _add_port(address, self.port)
        return {key: value.format(at=address, place=place) for key, value in self.keys.items()}


def _add_port(text: str, port: int) -> str:
    """The address as host:port, with this port if it has none. Raises InputError for a text that is not an address."""
    if _HOST.fullmatch(text) is None:
        raise InputError(f"{plain_text(text, 80)!r} is not an address", remedy="Write HOST or HOST:PORT")
    return text if re.search(r":\d+$", text) else f"{text}:{port}"


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
DEVICES: Mapping[BenchKind, DeviceKind] = {BenchKind(name): DeviceKind(**fields) for name, fields in _TABLES.items()}
"""The kinds whose device has a connection, in the order of the question."""
NAMES = {BenchKind.SOUND: "assistant"} | {kind: device.name for kind, device in DEVICES.items()}
"""Kind of bench → default name of the device under test. The virtual lab is missing, since it brings its own device."""
KINDS_BY_OPTION: dict[str, tuple[BenchKind, ...]] = {
    "board": tuple(NAMES),
    "phrase": tuple(NAMES),
    "key_env": (BenchKind.ESPHOME,),
} | {device.option: (kind,) for kind, device in DEVICES.items()}
"""The kinds of bench that each option applies to."""
_TITLES = {
    BenchKind.VIRTUAL_LAB: "virtual lab: simulated rooms and a reference assistant, no hardware",
    BenchKind.SOUND: "loudspeaker and microphone, in front of any voice assistant",
} | {kind: device.title for kind, device in DEVICES.items()}
"""The kinds of bench in the order of the question, each with its line there."""


_BY_REPORTS = "evidence: auto                         # the device's report if it has one, else the operator's answer"
_BY_SOUND = """\
evidence: none                         # every response counts, and nobody is asked what the device understood.
                                         # `auto`: a person answers that, on the dashboard or with --plain --attended"""
_LIMITS_BY_SOUND = """\
min_answered_share: 0.5                # share of the queries with a response
  # max_latency_p95_ms: 8000             # from the end of the query to the response; needs 20 responses
  # min_recognised_share: 0.5            # needs `evidence: auto`, and an operator"""


@frozen
class Setup:
    """What the starter files depend on. Raises InputError for an address that the device cannot have.

    - board: name of the device. address: where it is.
    - key_env: environment variable with the key of an ESPHome device; "" without one.
    - phrase: wakes the device.
    - advice: what the device reported; None if it was not asked.
    """

    kind: BenchKind
    board: str
    address: str = ""
    key_env: str = ""
    phrase: str = PHRASE
    advice: SetupAdvice | None = None

    def __post_init__(self) -> None:
        from harness.devices.declared import options_of

        if not self.key_env.isprintable():
            problem = f"{plain_text(self.key_env, 80)!r} cannot be the name of an environment variable"
            raise InputError(problem, remedy="Enter the name of a variable without `$`, such as DEVICE_KEY")
        keys = self._keys()
        if not all(str(value).strip() and str(value).isprintable() for value in keys.values()):
            raise InputError(
                f"{plain_text(self.address, 80)!r} is not a valid device address",
                remedy="Use printable characters only",
            )
        if keys:
            options_of(str(keys["driver"]), {key: value for key, value in keys.items() if key != "driver"})

    def with_advice(self) -> Setup:
        """Asks the device, and returns the setup with what it reports. Raises HarnessError if it does not answer."""
        from harness.devices.declared import options_of, setup_advice

        keys = self._keys()
        driver = str(keys.pop("driver", ""))
        advice = setup_advice(driver, options_of(driver, keys)) if driver else None
        return replace(self, advice=advice)

    def _keys(self) -> dict[str, object]:
        """The keys of the connection, with those of the advice; {} for a kind without a connection."""
        if self.kind not in DEVICES:
            return {}
        keys: dict[str, object] = dict(DEVICES[self.kind].connection(self.address))
        if self.advice is not None and self.advice.profile:
            keys = {"driver": keys["driver"], **self.advice.keys}
        if self.key_env:
            keys["key_env"] = self.key_env
        return keys

    def files(self) -> dict[str, str]:
        """The texts of the starter files by file name, in the order in which they are written."""
        replacements = {"BOARD": self.board, "PHRASE": self.phrase}
        match self.kind:
            case BenchKind.VIRTUAL_LAB:
                templates = {"scenario.yaml": "scenario", "bench.yaml": "bench"}
                replacements |= {"EVIDENCE": _BY_REPORTS, "LIMITS": "min_recognised_share: 0.5"}
            case BenchKind.SOUND:
                templates = {f"{self.board}.yaml": "sound", "bench.yaml": "sound_bench", "scenario.yaml": "scenario"}
                replacements |= {"EVIDENCE": _BY_SOUND, "LIMITS": _LIMITS_BY_SOUND}
            case _:
                templates = {"bench.yaml": "device_bench", "scenario.yaml": "device_scenario"}
                if not DEVICES[self.kind].shipped:
                    templates = {f"{self.board}.yaml": DEVICES[self.kind].starter} | templates
                replacements |= self._device_values()
        placeholder = re.compile(rf"\b(?:{'|'.join(replacements)})\b")
        texts = {}
        for name, template in templates.items():
            path = Path(__file__).with_name("starters") / f"{template}.yaml"
            texts[name] = placeholder.sub(lambda match: replacements[match[0]], path.read_text(encoding="utf-8"))
        return texts

    def _device_values(self) -> dict[str, str]:
        """The placeholders in the files for a device with a connection, preferably from advice that names a profile."""
        device = DEVICES[self.kind]
        shipped, reached, hint = device.shipped, device.reached, device.hint
        if self.advice is not None and self.advice.profile:
            shipped, reached, hint = self.advice.profile, self.advice.reached, self.advice.why
        profile = f"{shipped}\n    wake_phrases: [{self.phrase}]            # what wakes your device"
        if not device.shipped:
            profile = f"{self.board}                       # {self.board}.yaml in this folder"
        keys = ", ".join(f"{key}: {_quote(value)}" for key, value in self._keys().items())
        return {
            "PROFILE": profile,
            "REACHED": reached,
            "HINT": hint,
            "CONNECTION": f"{{{keys}}}",
            "MONITOR": self._monitor_command(f"{self.board}.yaml"),
        }

    def _monitor_command(self, profile: str) -> str:
        arguments = DEVICES[self.kind].monitor.format(at=shlex.quote(self.address), board=self.board)
        return f"harness admin devices monitor {profile} {arguments}"

    def next_steps(self, folder: Path) -> list[str]:
        """Commands to run next, in order."""
        from harness.cli import VERBS

        files = (folder / f"{name}.yaml" for name in ("scenario", "bench", self.board))
        scenario, bench, profile = (shlex.quote(str(path)) for path in files)
        # `harness check doctor` would be the verb, not a folder of that name.
        folder_text = f"./{folder}" if str(folder) in VERBS["check"] else str(folder)
        check, doctor = f"harness check {shlex.quote(folder_text)}", f"harness check doctor --bench {bench}"
        rehearse, run = f"harness check rehearse {scenario} --bench {bench}", f"harness run {scenario} --bench {bench}"
        match self.kind:
            case BenchKind.VIRTUAL_LAB:
                return [check, rehearse, f"{run} --yes"]
            case BenchKind.SOUND:
                sound = ["harness admin sound list", "harness check sound --speaker default --microphone default"]
                return [*sound, check, doctor, rehearse, run]
            case kind if DEVICES[kind].shipped:
                return [doctor, rehearse, run]
        return [self._monitor_command(profile), f"harness admin devices test {profile}", check, doctor, rehearse, run]


@verb("init", sections={"Where the device is": "address esphome wyoming ovos home_assistant command rhasspy key_env"})
def command(
    *,
    folder: Path = argument(default=".", type=A_FOLDER),
    kind: BenchKind | None = option(
        "Kind of bench: virtual_lab, sound (a loudspeaker and a microphone), or a kind of device, such as esphome.",
        "--bench-kind",
        show_default="the kind that the other options imply; virtual_lab without options",
    ),
    board: str | None = option("Name of the device; a new profile is called NAME.yaml.", metavar="NAME"),
    phrase: str | None = option(
        "Wake phrase of the device.",
        show_default=f"what the device reports, else the profile's, else {PHRASE!r}",
        metavar="WORDS",
    ),
    addresses: dict[str, str] = option_group(
        **{
            device.option: option(device.help, metavar=device.metavar, default=device.default)
            for device in DEVICES.values()
        }
    ),
    key_env: str = option(
        "With --esphome: environment variable that holds the encryption key.", default="", metavar="NAME"
    ),
) -> None:
    """Write a commented starter scenario and bench into FOLDER (default: here).

    On a terminal, without options, the command asks which kind of bench you have. To find devices and the options for
    each, run `harness admin devices discover`. The command asks an ESPHome device, a Wyoming satellite or Home
    Assistant for its wake phrase. It never overwrites a file.
    """
    ctx = click.get_current_context()
    # Options have defaults, so their values do not show whether they were given.
    options = [name for name in KINDS_BY_OPTION if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if kind is None and not options and sys.stdin.isatty() and sys.stdout.isatty():
        _refuse_existing(folder / f"{name}.yaml" for name in TAKEN)
        setup = _ask_user()
    else:
        kind = kind or _implied_kind(options)
        for name in options:
            if kind not in KINDS_BY_OPTION[name]:
                raise InputError(
                    f"--{name.replace('_', '-')} does not apply to --bench-kind {kind}",
                    remedy=f"Remove that option, or write --bench-kind {' or '.join(KINDS_BY_OPTION[name])}",
                )
        address = addresses[DEVICES[kind].option] if kind in DEVICES else ""
        name = _demand_board(board) if board is not None else NAMES.get(kind, "")
        setup = _ask_device(Setup(kind, name, address, key_env))
        setup = replace(setup, phrase=_demand_phrase(phrase or setup.phrase))
    _write_files(folder, setup.files())
    click.echo("Next:")
    for line in setup.next_steps(folder):
        click.echo(plain_text(f"  {line}", MAX_LINE_CHARS))


def _ask_user() -> Setup:
    """Asks the user for the kind of bench and what that kind needs, and then the device for its wake phrases."""
    kinds = {str(number): kind for number, kind in enumerate(_TITLES, 1)}
    click.echo("Which bench do you have?")
    for number, kind in kinds.items():
        click.echo(f"  {number}. {_TITLES[kind]}")
    choice = click.Choice(list(kinds))
    kind = kinds[click.prompt(f"Choose 1–{len(kinds)}", type=choice, default="1", show_choices=False)]
    board, address, key_env = "", "", ""
    if kind in NAMES:
        board = click.prompt("Name of the device", default=NAMES[kind], value_proc=_prompt_check(_demand_board))
    if kind in DEVICES:
        check = _prompt_check(lambda text: Setup(kind, board, text).address)
        address = click.prompt(DEVICES[kind].prompt, default=DEVICES[kind].default, value_proc=check)
    if kind is BenchKind.ESPHOME:
        key_env = click.prompt(
            "Environment variable that holds the device's key (empty: no key)", default="", show_default=False
        )
    setup = _ask_device(Setup(kind, board, address, key_env))
    if kind not in NAMES:
        return setup
    phrase = click.prompt("Wake phrase", default=setup.phrase, value_proc=_prompt_check(_demand_phrase))
    return replace(setup, phrase=phrase)


def _ask_device(setup: Setup) -> Setup:
    """The setup with what the device reports, which is also printed.

    Of several phrases, it takes the usual one of this kind of device, otherwise the first. Without an answer, a note is
    printed, and the usual phrase is taken.
    """
    device_phrase = DEVICES[setup.kind].phrase if setup.kind in DEVICES else ""
    usual_setup = replace(setup, phrase=device_phrase or PHRASE)
    try:
        device_setup = usual_setup.with_advice()
    except HarnessError as error:
        click.echo(plain_text(f"note: {error.what}; check the wake phrase in bench.yaml", MAX_LINE_CHARS), err=True)
        return usual_setup
    advice = device_setup.advice
    if advice is None:
        return device_setup
    if advice.why:
        click.echo(plain_text(f"note: {advice.why}: the bench has {advice.reached}", MAX_LINE_CHARS))
    phrases = [phrase for phrase in advice.wake_phrases if _PHRASE.fullmatch(phrase)]
    if not phrases:
        return device_setup
    usual_phrases = (phrase for phrase in phrases if phrase.casefold() == usual_setup.phrase.casefold())
    phrase = next(usual_phrases, phrases[0])
    others = f" (or {', '.join(other for other in phrases if other != phrase)})" if len(phrases) > 1 else ""
    click.echo(plain_text(f"the device listens for {phrase!r}{others}", MAX_LINE_CHARS))
    return replace(device_setup, phrase=phrase)


def _prompt_check(demand: Callable[[str], str]) -> Callable[[str], str]:
    """A check of answers for `click.prompt`, which asks again after a UsageError. demand: raises InputError."""

    def check_answer(text: str) -> str:
        try:
            return demand(text.strip())
        except InputError as error:
            raise click.UsageError(f"{error.what}. {error.remedy}") from error

    return check_answer


def _demand_phrase(phrase: str) -> str:
    """The phrase. Raises InputError if YAML would not read it as a text in a list."""
    if _PHRASE.fullmatch(phrase) is None:
        raise InputError(
            f"{plain_text(phrase, 80)!r} cannot be used as a wake phrase",
            remedy="Use words made of letters. For any other phrase, edit the starter files",
        )
    return phrase


def _demand_board(board: str) -> str:
    """The name. Raises InputError if it cannot be the name of a profile's file."""
    if NAME.fullmatch(board) is None or board in TAKEN:
        problem = f"{plain_text(board, 80)!r} is not a valid board name"
        remedy = "Use lowercase letters, digits, - and _. A number, true, false and null are not allowed"
        if board in TAKEN:
            problem, remedy = f"the starter files already use the name {board}", "Choose another name for the board"
        raise InputError(problem, remedy=remedy)
    return board


def _implied_kind(options: list[str]) -> BenchKind:
    """The kind of bench that the given options imply. Raises InputError if they belong to different kinds."""
    options_by_kind = {KINDS_BY_OPTION[name][0]: name for name in options if name not in ("board", "phrase")}
    if len(options_by_kind) > 1:
        names = " and --".join(options_by_kind.values()).replace("_", "-")
        raise InputError(f"--{names} apply to different kinds of bench", remedy="Keep only one of these options")
    if options_by_kind:
        [kind] = options_by_kind
        return kind
    return BenchKind.SERIAL if options else BenchKind.VIRTUAL_LAB


def _quote(value: object) -> str:
    """The value as YAML, with quotation marks if it needs them."""
    text = str(value)
    return text if isinstance(value, int) or _PLAIN_YAML.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _refuse_existing(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists() or path.is_symlink():
            raise InputError(
                "this file already exists", place=Place(str(path)), remedy="Choose another folder: harness init FOLDER"
            )


def _write_files(folder: Path, texts: dict[str, str]) -> None:
    """Writes the files, and prints their names.

    Raises InputError if any of them exists, before the first is written.
    """
    files = {folder / name: text for name, text in texts.items()}
    _refuse_existing(files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            click.echo(plain_text(f"wrote {path}", MAX_LINE_CHARS))
    except OSError as error:
        raise InputError(
            f"the files cannot be written: {error}", place=Place(str(folder)), remedy="Choose another folder"
        ) from error
