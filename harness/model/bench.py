"""The bench: which devices, how they are reached, how the room is set up; and device profiles."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from typing_extensions import TypeAliasType

from harness.model.bench_checks import BenchChecks
from harness.model.calibration import Calibration
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.observation import DeviceState
from harness.model.positioners import Positioner, PowerSwitch

PlainValue = TypeAliasType("PlainValue", "str | int | float | bool | list[PlainValue] | dict[str, PlainValue] | None")
"""A JSON value. A named alias, since pydantic recurses for ever on an unnamed one that refers to itself."""


class ObservationKind(StrEnum):
    """What a mapping of a device profile may turn a message of the device into.

    NOT_UNDERSTOOD: the device heard something, and understood nothing (an intent without a name).
    STATE: a piece of its state (a timer, a list), for effect checks. LISTENING: a proof that it listens (a heartbeat).
    ABOUT: its firmware, its serial number. LOST: lines of it were lost before they reached the harness.
    """

    WAKE = "wake"
    TRANSCRIPT = "transcript"
    INTENT = "intent"
    NOT_UNDERSTOOD = "not_understood"
    RESPONSE = "response"
    STATUS = "status"
    STATE = "state"
    LOG = "log"
    LISTENING = "listening"
    ABOUT = "about"
    LOST = "lost"


@frozen
class MessageMapping:
    """One rule of a profile: messages on `topic` (MQTT filter) become observations of `kind`.

    type, in place of a topic: lines of JSON whose `/type` it fits. `*` stands for any characters, {name} for those of
    that field; the first rule that fits a line takes it.

    fields: field of the observation → JSON pointer into the payload ("" is the whole payload).
    values: the device's word → the harness's (DeviceState, phrase, name of an intent).
    when: JSON pointer → value that must be there. score_scale: the device's score that stands for 1.
    match: a regular expression to search for in a payload that is text, as in a LineMapping. `fields` are then texts
    with {group}, and `when` is not used. "": the payload is JSON.
    of_line: the message is a console line; of such rules, the first that fits takes it.
    """

    topic: str
    kind: ObservationKind
    fields: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    when: tuple[tuple[str, str], ...] = ()
    score_scale: float = 1.0
    match: str = ""
    type: str = ""
    of_line: bool = False


class ClockKind(StrEnum):
    """How the group `time` of a line is read: time since boot, time of day, or position in the audio it heard."""

    NONE = "none"
    S = "s"
    MS = "ms"
    US = "us"
    HMS = "hms"
    AUDIO_S = "audio_s"
    AUDIO_MS = "audio_ms"


@frozen
class ScoreBlock:
    """Lines that give one score for each word; the best one counts, when it reaches `threshold` (0–1).

    A word is reported once, and again only after a block in which its score was below the threshold.
    ignore: words that are not phrases.
    """

    threshold: float
    ignore: tuple[str, ...] = ()


@frozen
class LineMapping:
    """One rule of a profile: a console line becomes an observation of `kind`; the first rule that fits a line takes it.

    match: regular expression to search for in a line. Groups with the name of an observation's field fill it in, as do
    `fields` (field → text with {group}). A pair of groups `slot` and `value` is one slot of an intent.
    values: the device's word → the harness's (DeviceState, phrase, name of an intent).
    when: group → value that it must have. score_scale: the device's score that stands for 1.
    clock: how the group `time` is read.
    more: expressions for lines that follow and belong to the observation, in any order. It is complete at a line that
    matches `until` (if "": when each of `more` was seen), at the latest after within_lines or within_s.
    block: the lines of `more` give scores of words; None: they do not.
    """

    match: str
    kind: ObservationKind
    fields: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    when: tuple[tuple[str, str], ...] = ()
    score_scale: float = 1.0
    clock: ClockKind = ClockKind.NONE
    more: tuple[str, ...] = ()
    until: str = ""
    within_lines: int = 8
    within_s: float = 1.0
    block: ScoreBlock | None = None


@frozen
class LevelState:
    """A state that numbers in lines show, such as the colour of a light.

    ranges: (name of the number, lowest, highest value); None leaves that end open. If the highest value is below the
    lowest, the range wraps around, as of a hue from 350 to 10. A state without ranges applies when no other does.
    min_s: the state counts once it has lasted this long.
    """

    name: str
    ranges: tuple[tuple[str, float | None, float | None], ...]
    min_s: float


@frozen
class Threshold:
    """A rule that turns the numbers in lines into a named state; see wire/thresholds.py.

    match: regular expression with a named group for each number; "": numbers are written as name=number.
    hysteresis: name of a number → how far it may leave the range of the current state without ending that state.
    """

    name: str
    match: str
    states: tuple[LevelState, ...]
    hysteresis: tuple[tuple[str, float], ...] = ()


class Checksum(StrEnum):
    """How a binary frame's checksum is computed: the sum of its bytes (8 or 16 bit, little endian) or their XOR."""

    NONE = "none"
    SUM8 = "sum8"
    SUM16 = "sum16"
    XOR8 = "xor8"


@frozen
class BinaryFrames:
    """Binary messages of a device: head · … length … · body · checksum · tail.

    A frame becomes the line `frame: a0 91 …` (its body), which the profile's line rules map. All offsets count from the
    first byte of the head.
    length_at, length_size: offset of the length field, and its size (1 or 2 bytes, little endian).
    length_plus: bytes of a frame that the length field does not count.
    body_from, checksum_from: offsets of the first byte of the body, and of the first that the checksum covers.
    max_bytes: a longer frame is taken for noise.
    """

    head: bytes
    length_at: int
    length_size: int
    length_plus: int
    body_from: int
    tail: bytes = b""
    checksum: Checksum = Checksum.NONE
    checksum_from: int = 0
    max_bytes: int = 256


class Framing(StrEnum):
    """A device's bytes: its own lines (and binary frames), docs/reference/framing.md with lines between, or Wyoming.

    Wyoming: header lines of JSON, each followed by as many bytes as its data_length and payload_length say.
    """

    LINES = "lines"
    VH = "vh"
    WYOMING = "wyoming"


@frozen
class ConsoleSettings:
    """How a device's console is read.

    baud: default bit rate of a serial port. max_line_bytes: a longer line is cut and not mapped.
    time, clock: an expression with the group `time`, tried on every line, and how that group is read.
    log_lines_per_s: how many unmapped lines the session log keeps; the others are counted. topic: MQTT topic whose
    messages are lines of the console.
    """

    framing: Framing = Framing.LINES
    baud: int = 115200  # The rate of most boards' consoles.
    max_line_bytes: int = 65536  # Messages of OVOS have up to 2.3 kB.
    time: str = ""
    clock: ClockKind = ClockKind.NONE
    log_lines_per_s: float = 50.0
    topic: str = ""


class AudioDialogue(StrEnum):
    """How a device accepts sound over its wire: docs/reference/framing.md, TFLM's test_over_serial, or audioFrame.

    HERMES_SPEAKER (playBytes): the device plays the sound, as a loudspeaker at its place, and hears it by microphone.
    DRIVER: in the way that the driver of its connection knows (a transport of another package).
    """

    VH = "vh"
    TFLM = "tflm_test_over_serial"
    HERMES = "hermes_audio_frame"
    HERMES_SPEAKER = "hermes_play_bytes"
    DRIVER = "driver"


@frozen
class AudioInput:
    """How a device takes sound over its connection.

    rate_hz: sample rate that the device expects. topic: MQTT topic of Hermes, with {device} and {id} in it.
    """

    dialogue: AudioDialogue
    rate_hz: int = 16000
    topic: str = ""


@frozen
class Heartbeat:
    """Messages that show that a device is there: once one has matched `rule`, and no other for within_s, it is gone.

    ask, payload: topic and text of the message that the device answers with such a message; "": it sends them unasked.
    """

    rule: MessageMapping
    within_s: float
    ask: str = ""
    payload: str = ""


@frozen
class Sample:
    """A test of a profile: what a device sent (console lines, or a message), and the observations expected from it.

    gives: each expected observation as field → value, with `kind`; other fields must be empty.
    line: line of the profile's file in which the sample begins. step_s: time between two of its console lines.
    """

    lines: tuple[bytes, ...] = ()
    topic: str = ""
    payload: bytes = b""
    gives: tuple[Mapping[str, PlainValue], ...] = ()
    line: int = 0
    step_s: float = 0.01


@frozen
class DeviceSetting:
    """A setting of a device.

    value: the current value, as the device reports it; "" if it does not.
    choices: all possible values; () if the setting is a number from low to high.
    """

    name: str
    value: str
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: str) -> bool:
        """Whether the device reports this value. Numbers may differ by 1e-6 of their size, since devices round them."""
        if self.value == value:
            return True
        if self.choices:
            return False
        with contextlib.suppress(ValueError):
            return math.isclose(float(self.value), float(value), rel_tol=1e-6)
        return False

    def refusal(self, value: str) -> str:
        """Why the setting cannot have this value; "" if it can."""
        if self.choices:
            return "" if value in self.choices else "is not an allowed value"
        try:
            number = float(value)
        except ValueError:
            return "is not a number"
        return "" if self.low <= number <= self.high else "is out of range"

    @property
    def remedy(self) -> str:
        """What to write instead of a value that it refuses."""
        if self.choices:
            return f"Use one of: {', '.join(self.choices)}"
        if (self.low, self.high) == (-math.inf, math.inf):
            return "Use a number"
        return f"Use a number from {exact(self.low)} to {exact(self.high)}"


@frozen
class DeviceProfile:
    """One file of devices/: what a kind of device is like, wherever it stands."""

    id: str
    title: str
    path: str
    sha256: str
    wake_phrases: tuple[str, ...]
    language: str = "en-US"
    reports: frozenset[ObservationKind] = frozenset()
    """What its own reports are evidence for, e.g. {TRANSCRIPT, WAKE}."""
    mappings: tuple[MessageMapping, ...] = ()
    context_wait_s: float | None = None
    """Wait before a query is repeated, so that it has forgotten the first one; None: the scenario's."""
    close_dialogue_say: str | None = None
    note: str = ""
    transport: str = "none"
    """The driver that usually reaches it, `log` (lines of another program) or `none` (a black box)."""
    lines: tuple[LineMapping, ...] = ()
    """Rules for console lines that are not JSON, with those of the profiles in lines_of."""
    messages: tuple[MessageMapping, ...] = ()
    """Rules for console lines that are JSON, with those of the profiles in lines_of."""
    console: ConsoleSettings = ConsoleSettings()
    frames: BinaryFrames | None = None
    audio: AudioInput | None = None
    """None when it accepts no sound over its connection."""
    samples: tuple[Sample, ...] = ()
    listening_states: frozenset[DeviceState] = frozenset()
    """States that it reports only while it listens for the wake phrase."""
    responds: bool = True
    """Whether it has a voice. If not, a trial does not wait for a response when other evidence decides."""
    thresholds: tuple[Threshold, ...] = ()
    """Rules that turn numbers in lines into states."""
    heartbeat: Heartbeat | None = None
    lines_of: tuple[DeviceProfile, ...] = ()

    @property
    def files(self) -> tuple[DeviceProfile, ...]:
        """This profile, and those whose line rules it includes; each is a file."""
        return self, *self.lines_of


@frozen
class Equipment:
    """Something on the bench that a driver runs: `driver` is an entry point of `harness.drivers`.

    options: an instance of the driver's own `Options` type, already checked. place: where in the bench file it stands.
    injects: whether it can send sound to its device directly, past the device's microphones.
    sets: whether it can change the settings of its device.
    calibration: for a loudspeaker or microphone; None: its level in the room is not known.
    """

    id: str
    driver: str
    options: object
    place: Place
    position: str = ""
    injects: bool = False
    sets: bool = False
    calibration: Calibration | None = None

    @property
    def sound_device(self) -> str:
        """Name of the sound device of a loudspeaker or microphone; else the name of the driver."""
        return str(getattr(self.options, "sound_device", self.driver))


MERGE_WITHIN_MS = 1000.0
"""Reports of one wake event by several sources lie at most this far apart. A log line, a light and a chime usually
follow a wake within half a second. Nobody says a wake phrase twice within one second."""

EARCON_THRESHOLD = 0.65
"""Least score of a chime's detection. benchmarks/bench_earcons.py measures how often speech and noise reach it."""
EARCON = "earcon"
"""Name of the source whose reports are a device's chimes."""


@frozen
class FurtherSource:
    """A further source of reports about a device. name: unique for this device; its equipment's id is `device.name`."""

    name: str
    equipment: Equipment
    profile: DeviceProfile


class EarconMeaning(StrEnum):
    """What a device's chime means: it woke, it has stopped listening, or it did not understand."""

    WAKE = "wake"
    DONE = "done"
    ERROR = "error"


@frozen
class EarconSound:
    """A learned chime. path, sha256: its WAV file, and the hash of that."""

    meaning: EarconMeaning
    path: str
    sha256: str


@frozen
class Earcons:
    """A device's chimes, as read from their file `path` unless they are learned anew. threshold: least score, 0–1."""

    path: str
    sha256: str = ""
    sounds: tuple[EarconSound, ...] = ()
    threshold: float = EARCON_THRESHOLD


@frozen
class Device:
    """A device under test: its profile, and its connection when it has one (a black box has none).

    also: further sources of reports about it. Wake events of different sources within merge_within_ms are one event.
    earcons: its learned chimes. The bench's microphone detects them; they are a source of their own, `device.earcon`.
    """

    id: str
    profile: DeviceProfile
    connection: Equipment | None = None
    position: str = ""
    also: tuple[FurtherSource, ...] = ()
    merge_within_ms: float = MERGE_WITHIN_MS
    earcons: Earcons | None = None

    @property
    def equipment(self) -> tuple[tuple[Equipment, DeviceProfile], ...]:
        """The equipment that reports about it, each with the profile for those reports; the connection first."""
        first = ((self.connection, self.profile),) if self.connection is not None else ()
        return (*first, *((source.equipment, source.profile) for source in self.also))

    @property
    def sources(self) -> tuple[str, ...]:
        """Ids of the sources of its observations; the connection first."""
        ids = tuple(equipment.id for equipment, _ in self.equipment)
        return ids if self.earcons is None else (*ids, self.earcon_source)

    @property
    def earcon_source(self) -> str:
        """Id of the source whose reports are its chimes."""
        return f"{self.id}.{EARCON}"

    @property
    def reports(self) -> frozenset[ObservationKind]:
        """Everything that its sources report; empty for a black box."""
        kinds = {kind for _, profile in self.equipment for kind in profile.reports}
        if self.earcons is not None and any(sound.meaning is EarconMeaning.WAKE for sound in self.earcons.sounds):
            kinds.add(ObservationKind.WAKE)
        return frozenset(kinds)


class OperatorPresence(StrEnum):
    """AUTO: present while an attended client (the dashboard) is connected."""

    AUTO = "auto"
    PRESENT = "present"
    ABSENT = "absent"


class AfterRetries(StrEnum):
    """END: the run ends and can be resumed. SKIP: the trial stays interrupted, and the run goes on."""

    END = "end"
    SKIP = "skip"


@frozen
class OnFault:
    """What a run does about a fault: it pauses, and tries again after retry_after_s, at most `retries` times.

    power_cycles: maximum number of power cycles of a failing or silent device without a successful trial between them.
    """

    retry_after_s: float = 60.0
    retries: int = 10
    then: AfterRetries = AfterRetries.END
    power_cycles: int = 0

    @property
    def longest_s(self) -> float:
        """How long a run without an operator waits in all."""
        return self.retry_after_s * self.retries


class NotifyOn(StrEnum):
    """What a run reports. FAULT: a fault or a lost link. LIMIT_BROKEN: at the end, or by a sequential test."""

    PAUSED = "paused"
    RESUMED = "resumed"
    FAULT = "fault"
    LIMIT_BROKEN = "limit_broken"
    FINISHED = "finished"


class NotifyInput(StrEnum):
    """What a program reads: the whole message as one JSON object, or its text."""

    JSON = "json"
    TEXT = "text"


@frozen
class Notify:
    """Where a run sends messages: exactly one of a program, an HTTP address and a broker. Keys as in the bench file.

    command: program and arguments. webhook_env, token_env, password_env: names of environment variables that hold the
    address, the token and the password. Raises InputError if the keys do not fit together.
    """

    on: tuple[NotifyOn, ...] = tuple(NotifyOn)
    command: tuple[str, ...] = ()
    input: NotifyInput = NotifyInput.JSON
    webhook: str = ""
    webhook_env: str = ""
    token_env: str = ""
    mqtt: str = ""
    topic: str = ""
    username: str = ""
    password_env: str = ""
    tls: bool = False
    ca_file: str = ""

    def __post_init__(self) -> None:
        destinations = (self.command, self.webhook, self.webhook_env, self.mqtt)
        if len([destination for destination in destinations if destination]) != 1:
            raise InputError(
                "a message needs exactly one destination",
                remedy="Use exactly one of `command`, `webhook`, `webhook_env` and `mqtt`",
            )
        if self.webhook and not self.webhook.startswith(("http://", "https://")):
            raise InputError(f"{self.webhook!r} is not an HTTP address", remedy="Use `https://…`")
        if self.mqtt and (not self.topic or set(self.topic) & set("+#")):
            raise InputError("`mqtt` needs a topic without + and #", remedy="Set a topic, such as `topic: lab/nights`")
        mqtt_values = {key: getattr(self, key) for key in ("topic", "username", "password_env", "tls", "ca_file")}
        for main_key, is_used, dependent_values in (
            ("command", bool(self.command), {"input": self.input is not NotifyInput.JSON}),
            ("webhook", bool(self.webhook or self.webhook_env), {"token_env": self.token_env}),
            ("mqtt", bool(self.mqtt), mqtt_values),
        ):
            for key, value in dependent_values.items():
                if value and not is_used:
                    raise InputError(f"`{key}` belongs to `{main_key}`", remedy=f"Remove `{key}`")


@frozen
class Bench:
    """One bench file. sound_server: `system`, or `virtual_lab`.

    loudspeakers: the first is the default; the axis `position` of a matrix chooses among them by their position.
    level_tolerance_db: largest difference between requested and heard level; above it, an attempt is repeated.
    monitor: headphones at the bench for replays, which the device under test does not hear.
    actuators: the equipment that executes the orders to the stands and power switches.
    """

    id: str
    title: str
    path: str
    sha256: str
    devices: tuple[Device, ...]
    loudspeakers: tuple[Equipment, ...] = ()
    microphone: Equipment | None = None
    monitor: Equipment | None = None
    sound_server: str = "system"
    room: str = ""
    operator: OperatorPresence = OperatorPresence.AUTO
    labels: Mapping[str, str] = field(default_factory=dict)
    on_fault: OnFault | None = None
    notify: tuple[Notify, ...] = ()
    min_free_gb: float = 0.0
    level_tolerance_db: float | None = None
    max_noise_floor_dbfs: float | None = None
    checks: BenchChecks | None = None
    actuators: tuple[Equipment, ...] = ()
    stands: tuple[Positioner, ...] = ()
    power: tuple[PowerSwitch, ...] = ()

    def device(self, device_id: str) -> Device:
        """The device of that id; KeyError when there is none."""
        for device in self.devices:
            if device.id == device_id:
                return device
        raise KeyError(device_id)
