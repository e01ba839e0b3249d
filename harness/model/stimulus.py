"""What is played: voices, texts, recordings, and the waveform that they become."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from harness.model.calibration import Calibration
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed

if TYPE_CHECKING:  # the vocabulary is imported by what never sees a sample
    import numpy as np
    import numpy.typing as npt

Samples: TypeAlias = "npt.NDArray[np.float32]"


AIR_HZ = 48_000  # The rate of the harness's streams: nothing is resampled on its way.
INJECTED_HZ = 16_000
"""Sample rate of stimuli that are sent to the device directly, without a loudspeaker."""
TALKER = "talker"
"""The name of a voice's engine if a person speaks."""


@frozen
class VoiceSpec:
    """Which voice speaks and how; `engine` is an entry point of `harness.voices`, `name` one of that engine's voices.

    - rate_wpm: speed in words per minute.
    - pitch: 0–99, 50 is the voice's own. None: the voice's own.
    - language: BCP 47. If a person speaks, `engine` is TALKER, and `name` is theirs.

    An engine that does not support a field raises an error when it speaks, rather than ignoring the field.
    """

    engine: str = "espeak"
    name: str = "en-us"
    rate_wpm: int | None = None
    pitch: int | None = None
    language: str = "en-US"

    @property
    def is_person(self) -> bool:
        return self.engine == TALKER

    def label(self) -> str:
        """A short name for tables, e.g. `espeak:en-us`."""
        settings = "".join(
            f"/{value}{unit}" for value, unit in ((self.rate_wpm, "wpm"), (self.pitch, "p")) if value is not None
        )
        return f"{self.engine}:{self.name}{settings}"


@frozen
class SpokenText:
    """A text for a voice."""

    text: str
    kind: Literal["text"] = "text"


@frozen
class Recording:
    """A sound file; `path` is absolute and was checked to lie under an allowed root.

    phrase_end_s: where its speech ends, in seconds from the file's first sample, as a list or the file itself states.
    None: unknown.
    """

    path: str
    kind: Literal["recording"] = "recording"
    phrase_end_s: float | None = None


class Role(StrEnum):
    """What a part of a stimulus is for.

    OPENING and CLOSING: the wake phrases of an `Opening`, before and after the trial. REQUEST: the words after them.
    """

    WAKE_PHRASE = "wake_phrase"
    GAP = "gap"
    QUERY = "query"
    OPENING = "opening"
    CLOSING = "closing"
    REQUEST = "request"


@frozen
class Part:
    """Samples [start_sample, end_sample) of a stimulus; for speech, the span of the active speech."""

    role: Role
    start_sample: int
    end_sample: int
    text: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start_sample <= self.end_sample:
            raise ValueError(f"part {self.role} spans {self.start_sample}..{self.end_sample}")


class NoiseKind(StrEnum):
    WHITE = "white"
    PINK = "pink"
    RECORDING = "recording"


@frozen
class RecordingPiece:
    """Part of a sound file: duration_s from offset_s on; `path` is absolute."""

    path: str
    offset_s: float
    duration_s: float


@frozen
class Saying:
    """A text and who speaks it."""

    text: str
    voice: VoiceSpec


@frozen
class Ambience:
    """Sound without a wake phrase, duration_s long, made of exactly one of pieces, noise and sayings.

    - pieces: parts of recordings, played one after another.
    - noise: a kind of noise, generated from `seed`.
    - a_weighting_db: the noise's A-weighted level minus the recipe's level, in dB; None: its level is not weighted.
    - sayings: texts, spoken one after another with pauses, again and again until the time is filled; the last one is
      cut off there.
    """

    duration_s: float
    seed: int = 0
    pieces: tuple[RecordingPiece, ...] = ()
    noise: NoiseKind | None = None
    sayings: tuple[Saying, ...] = ()
    a_weighting_db: float | None = None
    kind: Literal["ambience"] = "ambience"


Utterance = SpokenText | Recording
Sound = Utterance | Ambience


@frozen
class NoiseSpec:
    """Noise under a stimulus, from 0.5 s before its first sample to 0.5 s after its last.

    Exactly one of three fields gives its level, A-weighted if `a_weighted`.

    - snr_db: active speech level minus noise level.
    - level_dbfs: RMS level.
    - level_spl: dB SPL, converted by the calibration of its loudspeaker.
    - path: absolute path of the sound file, which is looped as needed; for RECORDING only.
    - ramp_s: time in which the noise rises before the first word, and falls after the last.
    - positions: positions of the loudspeakers that play it; (): the loudspeaker of the speech plays it.
    - players: ids of those loudspeakers, filled in by the plan, each with its gain in dB. With these gains, they
      together give the level at the device.
    """

    kind: NoiseKind
    snr_db: float | None
    path: str = ""
    a_weighted: bool = False
    ramp_s: float = 0.0
    level_dbfs: float | None = None
    level_spl: float | None = None
    positions: tuple[str, ...] = ()
    players: tuple[tuple[str, float], ...] = ()

    def label(self) -> str:
        """A short name for tables, e.g. `pink 10 dB` (its SNR), `pink 55 dB SPL`, `pink -30 dBFS`."""
        weighting = "(A)" if self.a_weighted else ""
        levels = (
            (self.snr_db, f"dB{weighting}"),
            (self.level_spl, f"dB{weighting} SPL"),
            (self.level_dbfs, f"dBFS{weighting}"),
        )
        level = next((f"{exact(x)} {unit}" for x, unit in levels if x is not None), "of no level")
        ramp = f" ramp {exact(self.ramp_s)} s" if self.ramp_s else ""
        place = f" from {' and '.join(self.positions)}" if self.positions else ""
        return f"{self.path.rsplit('/', 1)[-1] or self.kind.value} {level}{ramp}{place}"

    def gain_db(self, speech_calibration: Calibration, calibration: Calibration) -> float:
        """Gain in dB of one of its loudspeakers, so that all of them together give its level.

        speech_calibration, calibration: of the loudspeaker of the speech, and of this one. 0 if the level is in dBFS.
        """
        if self.level_dbfs is not None:
            return 0.0
        difference_db = speech_calibration.unweighted_spl(0.0) - calibration.unweighted_spl(0.0)
        return difference_db - 10 * math.log10(len(self.positions))  # the powers of all of them add up

    @property
    def before_s(self) -> float:
        """How long before the first word of a query its noise begins, at most, in seconds."""
        return max(NOISE_BEFORE_S, self.ramp_s + 0.1)

    def dbfs(self, speech_dbfs: float) -> float:
        """The noise level in dBFS under speech of level speech_dbfs. A level_spl must have been converted before."""
        if self.level_dbfs is not None:
            return self.level_dbfs
        assert self.snr_db is not None, self
        return speech_dbfs - self.snr_db


@frozen
class Opening:
    """What is said before a trial's phrase, so that the device has just woken, or speaks or plays while it is called.

    - pause_s: from the last word of the opening to the phrase.
    - say: a request that follows the opening's wake phrase; "": the wake phrase alone.
    - then: words said at the end of the trial, after another wake phrase, such as "stop"; "": nothing is said.
    - level_dbfs, voice: level and voice of `say` and `then`, under which there is no noise. voice None: the trial's.
    - level_spl: the level in dB SPL instead, which the plan converts into level_dbfs.
    - sounds: the attempt counts only if the microphone hears the device in the pause.
    """

    pause_s: float
    say: str = ""
    then: str = ""
    level_dbfs: float = -26.0
    sounds: bool = False
    voice: VoiceSpec | None = None
    level_spl: float | None = None

    def label(self) -> str:
        """A short name for tables, e.g. `play some music, 8 s`."""
        return f"{self.say or 'phrase'}, {exact(self.pause_s)} s"


NOISE_BEFORE_S = 0.6
"""Noise without a long ramp, under a query, begins at most this long before its phrase."""
NO_OPENING = "none"
"""The label of trials without an opening, in tables."""


QUIET = "quiet"
"""The label of trials without noise, in tables."""


SOUND_M_PER_S = 343.0  # In air of 20 °C.
NEAREST_M = 0.1
"""Least distance of talker and device from each other and from every wall, in metres."""


class Pattern(StrEnum):
    """The directivity of a microphone or a mouth, from equal in all directions to two-sided."""

    OMNI = "omni"
    SUBCARDIOID = "subcardioid"
    CARDIOID = "cardioid"
    HYPERCARDIOID = "hypercardioid"
    FIGURE_EIGHT = "figure_eight"


class LevelAt(StrEnum):
    """Where a stimulus has its level: 1 m in front of the talker, without a room, or at the device in the room."""

    TALKER = "talker"
    DEVICE = "device"


@frozen
class ImpulseResponse:
    """A recorded impulse response from a talker's place to the device.

    - path: absolute path of its file.
    - distance_m, angle_deg: the talker's place, as in `Placement`.
    """

    path: str
    distance_m: float = 1.0
    angle_deg: float = 0.0


@frozen
class ShoeBox:
    """A box-shaped room from (0, 0, 0) to size_m (x, y, z), in metres. Walls, floor and ceiling absorb equally.

    - rt60_s: reverberation time; 0: no reflections.
    - device_m: place of the device, which faces device_faces_deg (0: along x, 90: along y). The talker is turned to the
      device.
    """

    size_m: tuple[float, float, float]
    rt60_s: float
    device_m: tuple[float, float, float]
    device_faces_deg: float = 0.0
    device_pattern: Pattern = Pattern.OMNI
    talker_height_m: float = 1.5
    talker_pattern: Pattern = Pattern.OMNI

    def talker_m(self, distance_m: float, angle_deg: float) -> tuple[float, float, float]:
        """Place of the talker's mouth, in metres.

        - distance_m: from the device, along the floor.
        - angle_deg: from the direction that the device faces, to its left.
        """
        towards = math.radians(self.device_faces_deg + angle_deg)
        x, y, _ = self.device_m
        return x + distance_m * math.cos(towards), y + distance_m * math.sin(towards), self.talker_height_m

    @property
    def absorption(self) -> float:
        """Absorption coefficient of the walls that gives rt60_s by Sabine's formula; 1 or more if none does.

        0 if rt60_s is 0, since there are no reflections then.
        """
        x, y, z = self.size_m
        surface_m2 = 2 * (x * y + y * z + z * x)
        return 24 * math.log(10) / SOUND_M_PER_S * x * y * z / (surface_m2 * self.rt60_s) if self.rt60_s else 0.0


@frozen
class RoomSpec:
    """A simulated room: a box, or recorded impulse responses."""

    id: str
    box: ShoeBox | None = None
    recorded: tuple[ImpulseResponse, ...] = ()
    level_at: LevelAt = LevelAt.TALKER

    def placement(self, distance_m: float, angle_deg: float) -> Placement:
        """The talker at that place in the room, with only the impulse response that was recorded there, if any was.

        `Placement.problem` reports a place from which no sound reaches the device.
        """
        recorded = tuple(
            response
            for response in self.recorded
            if (response.distance_m, response.angle_deg) == (distance_m, angle_deg)
        )
        return Placement(replace(self, recorded=recorded), distance_m, angle_deg)


@frozen
class Placement:
    """A talker in a simulated room.

    - distance_m: from the device, along the floor.
    - angle_deg: from the direction that the device faces; left is positive.
    """

    room: RoomSpec
    distance_m: float = 1.0
    angle_deg: float = 0.0

    def label(self) -> str:
        """A short name, e.g. `living_room 2 m 45°`."""
        return f"{self.room.id} {exact(self.distance_m)} m {exact(self.angle_deg)}°"

    @property
    def direct_gain_db(self) -> float:
        """Level of the direct sound at the device minus that of the stimulus; 0 where the device has that level."""
        box = self.room.box
        if box is None or self.room.level_at is LevelAt.DEVICE:
            return 0.0
        return -20 * math.log10(max(math.dist(box.talker_m(self.distance_m, self.angle_deg), box.device_m), NEAREST_M))

    @property
    def problem(self) -> str:
        """Why no sound reaches the device from there; "" if it does."""
        box = self.room.box
        if box is None:
            return "" if self.room.recorded else "no impulse response was recorded from that place"
        talker = box.talker_m(self.distance_m, self.angle_deg)
        for name, position_m in (("device", box.device_m), ("talker", talker)):
            if not all(NEAREST_M <= x <= size - NEAREST_M for x, size in zip(position_m, box.size_m, strict=True)):
                place = ", ".join(fixed(x, 2) for x in position_m)
                return f"the {name} would be at ({place}) m, outside the room or too close to a wall"
        if math.dist(talker, box.device_m) < NEAREST_M:
            return f"the talker would be less than {exact(NEAREST_M)} m from the device"
        if box.absorption >= 1:
            shortest = fixed(box.rt60_s * box.absorption, 2)
            return f"`rt60_s` is too short for a room of this size: the shortest possible is {shortest} s"
        return ""


@frozen
class Band:
    """A frequency band, in Hz; low_hz 0: no lower limit."""

    low_hz: float
    high_hz: float

    def label(self) -> str:
        """A short name for tables, e.g. `300-3400 Hz`."""
        return f"{exact(self.low_hz)}-{exact(self.high_hz)} Hz"


@frozen
class Channel:
    """What else is done to a sound, beside room and noise.

    - speed: factor by which the talker speaks faster; the pitch rises with it.
    - gain_db: gain of everything, with room and noise.
    - band: frequency band to which the sound is limited; None: not limited.
    - clipping_db: how far below the largest peak all peaks are cut off; 0: no clipping.
    - codec: `opus 16` (in kbit/s), mulaw, alaw, gsm or adpcm; "" for none.
    """

    speed: float = 1.0
    gain_db: float = 0.0
    band: Band | None = None
    clipping_db: float = 0.0
    codec: str = ""


@frozen
class SoundCondition:
    """A condition in which recordings are evaluated: the noise, the place in a room, the channel.

    - axes: (name of an axis of the matrix, label of its value).
    - seed: seed of the noise.
    - files_sha256: hashes of the files of noise and impulse response, so that a changed file makes another condition.
    """

    axes: tuple[tuple[str, str], ...] = ()
    noise: NoiseSpec | None = None
    placement: Placement | None = None
    channel: Channel = Channel()
    seed: int = 0
    files_sha256: tuple[str, ...] = ()

    @property
    def is_unaltered(self) -> bool:
        """Whether recordings are played unaltered."""
        return self.noise is None and self.placement is None and self.channel == Channel()

    def label(self) -> str:
        """A short name for tables, e.g. `pink 10 dB, living_room 2 m 0°, opus 16`."""
        channel = self.channel
        parts = (
            "" if self.noise is None else self.noise.label(),
            "" if self.placement is None else self.placement.label(),
            "" if channel.speed == 1.0 else f"speed {exact(channel.speed)}",
            f"gain {exact(channel.gain_db)} dB" if channel.gain_db else "",
            "" if channel.band is None else channel.band.label(),
            f"clipping {exact(channel.clipping_db)} dB" if channel.clipping_db else "",
            channel.codec,
        )
        return ", ".join(filter(None, parts)) or AS_IT_IS

    def recipe(self, path: str, rate_hz: int) -> StimulusRecipe:
        """The stimulus of a recording: as in a scenario with `as_recorded`, without lead-in and tail."""
        return StimulusRecipe(
            Recording(path), None, VoiceSpec(), rate_hz=rate_hz, noise=self.noise, variant=self.seed, as_recorded=True,
            placement=self.placement, channel=self.channel, whole=True,
        )  # fmt: skip


AS_IT_IS = "as it is"


@frozen
class StimulusRecipe:
    """Everything that decides how a stimulus sounds."""

    query: Sound
    """The query's sound; in a wake trial the phrase itself, in an ambient trial the ambient sound."""
    wake_phrase: Utterance | None
    """Spoken before the query by the same voice, or None; a recording of it may be named instead."""
    voice: VoiceSpec
    gap_ms: int = 250
    """Silence between wake phrase and query."""
    level_dbfs: float = -26.0
    """Active speech level of the whole, relative to a full-scale square wave (so a full-scale sine is −3.01 dBFS); RMS
    level of generated noise."""
    rate_hz: int = 48000
    noise: NoiseSpec | None = None
    lead_in_s: float = 0.0
    tail_s: float = 0.0
    """Sound before the first and after the last active speech. It is a very low noise floor, or `noise`. 0: as much as
    a query has."""
    variant: int = 0
    """Number of the random draw of noise and noise floor, so that repetitions do not have the same samples."""
    as_recorded: bool = False
    """Recordings keep their level and are not cut to their speech; level_dbfs then has no effect."""
    placement: Placement | None = None
    """Where the talker is in a simulated room; the noise is added at the device. None: no room."""
    opening: Opening | None = None
    """What is said before all of this, in the same room."""
    channel: Channel = Channel()
    """Applied after room and noise."""
    whole: bool = False
    """The recording is used from its first sample to its last, with nothing before or after it. If it would clip with
    its noise, all of it is turned down; other stimuli that clip are refused."""

    @property
    def spoken_by(self) -> Recording | VoiceSpec:
        """What says the phrase: a recording, or the voice."""
        for phrase in (self.wake_phrase, self.query):
            if isinstance(phrase, Recording):
                return phrase
        return self.voice


@dataclass(frozen=True, slots=True, eq=False)
class Waveform:
    """Mono samples, float32 in [−1, 1], shape (n,), at rate_hz."""

    samples: Samples
    rate_hz: int

    def __post_init__(self) -> None:
        if self.samples.ndim != 1 or self.samples.dtype != "float32":
            raise ValueError(f"a waveform must be float32 (n,), not {self.samples.dtype} {self.samples.shape}")
        if self.rate_hz <= 0:
            raise ValueError(f"a sample rate must be positive, not {self.rate_hz}")

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.rate_hz


@frozen
class Clip:
    """A FLAC file in the session's clips/ folder.

    - name: file name.
    - samples: number of samples.
    - start_s: time of the first sample, on the host's monotonic clock.
    """

    name: str
    sha256: str
    rate_hz: int
    samples: int
    start_s: float

    def __post_init__(self) -> None:
        if self.rate_hz <= 0 or self.samples < 0:
            raise ValueError(f"a clip cannot have {self.samples} samples at {self.rate_hz} Hz")

    @property
    def duration_s(self) -> float:
        return self.samples / self.rate_hz


@dataclass(frozen=True, slots=True, eq=False)
class RenderedStimulus:
    """A waveform with the sample positions of its parts and a content hash (hex SHA-256 of recipe and samples).

    - beside: id of a loudspeaker → noise that it plays at the same time, as long as the waveform.
    - as_heard: waveform and noise together, as the device hears them; None if no other loudspeaker plays noise.
    """

    waveform: Waveform
    parts: tuple[Part, ...]
    sha256: str
    beside: Mapping[str, Waveform] = field(default_factory=dict)
    as_heard: Waveform | None = None

    def span_s(self, role: Role) -> tuple[float, float] | None:
        """Start and end of the part with that role, in seconds from the first sample; None when there is none."""
        for part in self.parts:
            if part.role is role:
                rate = self.waveform.rate_hz
                return part.start_sample / rate, part.end_sample / rate
        return None
