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

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TAKEN = ("scenario", "bench")
MAX_LINE_CHARS = 10_000
PHRASE = "hey computer"
_PHRASE = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[^\W\d_]+( [^\W\d_]+)*", re.IGNORECASE)
_PLAIN_YAML = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z./][\w./-]*(:\w[\w./-]*)*", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[0-9a-fA-F:.]+(%[\w.-]+)?\]:\d+")


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
    """What the starter files of a device with a connection say.

    - option: says where the device is.
    - metavar, help, default: of that option.
    - asks: for it, on a terminal.
    - kind: for people.
    - name: default name of the device.
    - reached: how, after "one device".
    - keys: of the connection; {at} is where the device is, {place} the same with `scheme` and with `port` as the
      default.
    - hint: a comment on them.
    - shipped: a profile that comes with the harness; "" when `starter` is written.
    - phrase: wakes a device with that profile.
    - monitor: arguments of `devices monitor`.
    """

    option: str
    metavar: str
    help: str
    default: str
    asks: str
    kind: str
    name: str
    reached: str
    keys: dict[str, str]
    hint: str
    port: int | None = None
    scheme: str = ""
    shipped: str = ""
    phrase: str = ""
    starter: str = ""
    monitor: str = ""

    def connection(self, address: str) -> dict[str, str]:
        """The keys for a device that is there; InputError for a text that is not an address."""
        place = address
        if self.port is not None and not (self.scheme and "://" in address):
            place = self.scheme + _locate(address, self.port)
        return {key: value.format(at=address, place=place) for key, value in self.keys.items()}


def _locate(text: str, port: int) -> str:
    """The address as host:port. port: the default. InputError if the text is not a host with or without a port."""
    if _HOST.fullmatch(text) is None:
        raise InputError(f"{plain_text(text, 80)!r} is not an address", remedy="Write HOST or HOST:PORT")
    return text if text.startswith("[") or ":" in text else f"{text}:{port}"


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
DEVICES: Mapping[BenchKind, DeviceKind] = {BenchKind(name): DeviceKind(**fields) for name, fields in _FILE.items()}
"""The kinds whose device has a connection, in the order of the question."""
NAMES = {BenchKind.SOUND: "assistant"} | {kind: device.name for kind, device in DEVICES.items()}
"""Kind of bench → default name of the device under test. The virtual lab is missing, since it brings its own device."""
NEEDS: dict[str, tuple[BenchKind, ...]] = {
    "board": tuple(NAMES),
    "phrase": tuple(NAMES),
    "key_env": (BenchKind.ESPHOME,),
} | {device.option: (kind,) for kind, device in DEVICES.items()}
"""The kinds of bench that each option applies to."""
_ASKED = {
    BenchKind.VIRTUAL_LAB: "virtual lab: simulated rooms and a reference assistant, no hardware",
    BenchKind.SOUND: "loudspeaker and microphone, in front of any voice assistant",
} | {kind: device.kind for kind, device in DEVICES.items()}


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
    """What the starter files depend on. address: where the device is. key_env: variable with the key of an ESPHome
    device. phrase: wakes the device. advice: what the device reported; None if it was not asked.

    InputError if the device cannot be there.
    """

    kind: BenchKind
    board: str
    address: str = ""
    key_env: str = ""
    phrase: str = PHRASE
    advice: SetupAdvice | None = None

    def __post_init__(self) -> None:
        from harness.devices.declared import options_of

        keys = self._keys()
        if not all(str(value) and str(value).isprintable() for value in keys.values()):
            raise InputError(f"{plain_text(self.address, 80)!r} is not a valid device address", remedy="Correct it")
        if keys:
            options_of(str(keys["driver"]), {key: value for key, value in keys.items() if key != "driver"})

    def with_reported(self) -> Setup:
        """The same setup with what the device reports; HarnessError when it does not answer."""
        from harness.devices.declared import options_of, setup_advice

        keys = self._keys()
        driver = str(keys.pop("driver", ""))
        advice = setup_advice(driver, options_of(driver, keys)) if driver else None
        return replace(self, advice=advice)

    def _keys(self) -> dict[str, object]:
        if self.kind not in DEVICES:
            return {}
        keys: dict[str, object] = dict(DEVICES[self.kind].connection(self.address))
        if self.advice is not None and self.advice.profile:
            keys = {"driver": keys["driver"], **self.advice.keys}
        return keys | ({"key_env": self.key_env} if self.key_env else {})

    def files(self) -> dict[str, str]:
        """Text by file name."""
        values = {"BOARD": self.board, "PHRASE": self.phrase}
        match self.kind:
            case BenchKind.VIRTUAL_LAB:
                starters = {"scenario.yaml": "scenario", "bench.yaml": "bench"}
                values |= {"EVIDENCE": _BY_REPORTS, "LIMITS": "min_recognised_share: 0.5"}
            case BenchKind.SOUND:
                starters = {f"{self.board}.yaml": "sound", "bench.yaml": "sound_bench", "scenario.yaml": "scenario"}
                values |= {"EVIDENCE": _BY_SOUND, "LIMITS": _LIMITS_BY_SOUND}
            case _:
                device = DEVICES[self.kind]
                starters = {"bench.yaml": "device_bench", "scenario.yaml": "device_scenario"}
                advice = self.advice if self.advice is not None and self.advice.profile else None
                shipped = advice.profile if advice else device.shipped
                profile = f"{shipped}\n    wake_phrases: [{self.phrase}]            # what wakes your device"
                if not device.shipped:
                    starters = {f"{self.board}.yaml": device.starter} | starters
                    profile = f"{self.board}                       # {self.board}.yaml in this folder"
                keys = ", ".join(f"{key}: {_quote(value)}" for key, value in self._keys().items())
                values |= {"PROFILE": profile, "REACHED": advice.reached if advice else device.reached}
                values |= {"HINT": advice.why if advice else device.hint}
                values |= {"CONNECTION": f"{{{keys}}}", "MONITOR": self._monitor(f"{self.board}.yaml")}
        placeholder = re.compile(rf"\b(?:{'|'.join(values)})\b")
        return {
            name: placeholder.sub(
                lambda hit: values[hit[0]],
                Path(__file__).with_name("starters").joinpath(f"{starter}.yaml").read_text(encoding="utf-8"),
            )
            for name, starter in starters.items()
        }

    def _monitor(self, profile: str) -> str:
        arguments = DEVICES[self.kind].monitor.format(at=shlex.quote(self.address), board=self.board)
        return f"harness admin devices monitor {profile} {arguments}"

    def next_steps(self, folder: Path) -> list[str]:
        """Commands to run next, in order."""
        from harness.cli import VERBS

        files = (folder / f"{name}.yaml" for name in ("scenario", "bench", self.board))
        scenario, bench, profile = (shlex.quote(str(path)) for path in files)
        checked = f"./{folder}" if str(folder) in VERBS["check"] else str(folder)
        check, doctor = f"harness check {shlex.quote(checked)}", f"harness check doctor --bench {bench}"
        rehearse, run = (f"harness {words} {scenario} --bench {bench}" for words in ("check rehearse", "run"))
        match self.kind:
            case BenchKind.VIRTUAL_LAB:
                return [check, rehearse, f"{run} --yes"]
            case BenchKind.SOUND:
                sound = ["harness admin sound list", "harness check sound --speaker default --microphone default"]
                return [*sound, check, doctor, rehearse, run]
            case kind if DEVICES[kind].shipped:
                return [doctor, rehearse, run]
        return [self._monitor(profile), f"harness admin devices test {profile}", check, doctor, rehearse, run]


@verb("init", sections={"Where the device is": "address esphome wyoming ovos home_assistant command rhasspy key_env"})
def command(
    *,
    folder: Path = argument(default=".", type=A_FOLDER),
    kind: BenchKind | None = option(
        "Kind of bench: virtual_lab, sound (a loudspeaker and a microphone), or a kind of device, such as esphome.",
        "--bench-kind",
        show_default="the kind whose option is given, serial with --board alone, else virtual_lab",
    ),
    board: str | None = option("Name of the device; a new profile is called NAME.yaml.", metavar="NAME"),
    phrase: str | None = option(
        "Wake phrase of the device.",
        show_default=f"what the device reports, else the profile's, else {PHRASE!r}",
        metavar="WORDS",
    ),
    places: dict[str, str] = option_group(
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

    On a terminal, without options, the command asks which kind of bench you have. It never overwrites a file. To find
    devices and the options for each, run `harness admin devices discover`. The command asks an ESPHome device, a
    Wyoming satellite or Home Assistant for the wake phrase.
    """
    ctx = click.get_current_context()
    given_needs = [name for name in NEEDS if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if kind is None and not given_needs and sys.stdin.isatty() and sys.stdout.isatty():
        _refuse_existing(folder / f"{name}.yaml" for name in TAKEN)
        setup = ask()
    else:
        kind = kind or _implied_kind(given_needs)
        for name in given_needs:
            if kind not in NEEDS[name]:
                raise InputError(
                    f"--{name.replace('_', '-')} does not apply to --bench-kind {kind}",
                    remedy=f"Remove it, or write --bench-kind {' or '.join(NEEDS[name])}",
                )
        place = places[DEVICES[kind].option] if kind in DEVICES else ""
        name = _check_board(board) if board is not None else NAMES.get(kind, "")
        setup = _ask_device(Setup(kind, name, place, key_env))
        setup = replace(setup, phrase=_checked_phrase(phrase or setup.phrase))
    _write(folder, setup.files())
    click.echo("Next:")
    for line in setup.next_steps(folder):
        click.echo(plain_text(f"  {line}", MAX_LINE_CHARS))


def ask() -> Setup:
    """Asks for the kind of bench and what that kind needs; Enter takes the default."""
    kinds = {str(number): kind for number, kind in enumerate(_ASKED, 1)}
    click.echo("Which bench do you have?")
    for number, kind in kinds.items():
        click.echo(f"  {number}. {_ASKED[kind]}")
    choice = click.Choice(list(kinds))
    kind = kinds[click.prompt(f"Choose 1–{len(kinds)}", type=choice, default="1", show_choices=False)]
    board, address, key_env = "", "", ""
    if kind in NAMES:
        board = click.prompt("Name of the device", default=NAMES[kind], value_proc=_prompt_check(_check_board))
    if kind in DEVICES:
        address = click.prompt(DEVICES[kind].asks, default=DEVICES[kind].default)
    if kind is BenchKind.ESPHOME:
        key_env = click.prompt(
            "Environment variable that holds its key (empty: no key)", default="", show_default=False
        )
    setup = _ask_device(Setup(kind, board, address, key_env))
    if kind not in NAMES:
        return setup
    phrase = click.prompt("Wake phrase", default=setup.phrase, value_proc=_prompt_check(_checked_phrase))
    return replace(setup, phrase=phrase)


def _ask_device(setup: Setup) -> Setup:
    """The setup with what the device reports: the usual phrase of its kind if it is among those, else the first."""
    usual = replace(setup, phrase=(DEVICES[setup.kind].phrase if setup.kind in DEVICES else "") or PHRASE)
    try:
        device_setup = usual.with_reported()
    except HarnessError as error:
        click.echo(plain_text(f"note: {error.what}; check the wake phrase in bench.yaml", MAX_LINE_CHARS), err=True)
        return usual
    advice = device_setup.advice
    if advice is None:
        return device_setup
    if advice.why:
        click.echo(plain_text(f"note: {advice.why}: the bench has {advice.reached}", MAX_LINE_CHARS))
    phrases = [phrase for phrase in advice.wake_phrases if _PHRASE.fullmatch(phrase)]
    if not phrases:
        return device_setup
    usual_phrases = (phrase for phrase in phrases if phrase.casefold() == usual.phrase.casefold())
    phrase = next(usual_phrases, phrases[0])
    others = f" (or {', '.join(other for other in phrases if other != phrase)})" if len(phrases) > 1 else ""
    click.echo(plain_text(f"the device listens for {phrase!r}{others}", MAX_LINE_CHARS))
    return replace(device_setup, phrase=phrase)


def _prompt_check(check: Callable[[str], str]) -> Callable[[str], str]:
    def checked(text: str) -> str:
        try:
            return check(text.strip())
        except InputError as error:
            raise click.UsageError(f"{error.what}. {error.remedy}") from error

    return checked


def _checked_phrase(phrase: str) -> str:
    if _PHRASE.fullmatch(phrase) is None:
        raise InputError(
            f"{plain_text(phrase, 80)!r} cannot be written as a wake phrase",
            remedy="Use words made of letters. For any other phrase, edit the file",
        )
    return phrase


def _check_board(board: str) -> str:
    if NAME.fullmatch(board) is None or board in TAKEN:
        problem = f"{plain_text(board, 80)!r} is not a valid board name"
        remedy = "Use lowercase letters, digits, - and _"
        if board in TAKEN:
            problem, remedy = f"{board}.yaml is the name of another starter file", "Choose another name for the board"
        raise InputError(problem, remedy=remedy)
    return board


def _implied_kind(flags: list[str]) -> BenchKind:
    """The kind of bench that options imply."""
    option_name = next((name for name in flags if name not in ("board", "phrase")), None)
    if option_name is not None:
        return NEEDS[option_name][0]
    return BenchKind.SERIAL if flags else BenchKind.VIRTUAL_LAB


def _quote(value: object) -> str:
    text = str(value)
    return text if isinstance(value, int) or _PLAIN_YAML.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _refuse_existing(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists() or path.is_symlink():
            raise InputError(
                "this file already exists", place=Place(str(path)), remedy="Name another folder: harness init FOLDER"
            )


def _write(folder: Path, texts: dict[str, str]) -> None:
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
            f"the files cannot be written: {error}", place=Place(str(folder)), remedy="Name another folder"
        ) from error
