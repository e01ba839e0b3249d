"""The keys of rooms and channels, which scenario files and condition files have in common."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from harness.base.findings import Keys, Text, enum_validator, optional, preset, validation_error
from harness.model.numbers import exact
from harness.model.stimulus import LevelAt, Pattern

TELEPHONY = ("mulaw", "alaw", "gsm", "adpcm")
_OPUS = re.compile(r"opus ([1-9]\d{0,2})")
_CODEC_REMEDY = f"Use opus with its kbit/s (opus 6 to opus 256), {', '.join(TELEPHONY)}, or null"


def _check_codec(text: str) -> str:
    opus = _OPUS.fullmatch(text)
    if text not in TELEPHONY and not (opus and 6 <= int(opus[1]) <= 256):
        raise validation_error(f"there is no codec {text!r}", _CODEC_REMEDY)
    return text


def _check_band(edges: list[float]) -> list[float]:
    low_hz, high_hz = edges
    if low_hz >= high_hz:
        raise validation_error(
            f"the band begins at {exact(low_hz)} Hz and ends at {exact(high_hz)} Hz", "Write the lower limit first"
        )
    return edges


Speed = Annotated[float, Field(ge=0.5, le=2)]
GainDb = Annotated[float, Field(ge=-80, le=60)]
BandHz = Annotated[
    list[Annotated[float, Field(ge=0, le=96_000)]], Field(min_length=2, max_length=2), AfterValidator(_check_band)
]
ClippingDb = Annotated[float, Field(gt=0, le=60)]
Codec = Annotated[str, AfterValidator(_check_codec)]


class ChannelAxesKeys(Keys):
    """What is done to a sound beside room and noise."""

    speed: list[Speed] | None = optional(
        "Speeds of the talker, relative to the original; pitch changes too.", min_length=1
    )
    gain_db: list[GainDb] | None = optional(
        "Gains after room and noise, dB. Samples beyond full scale are clipped.", min_length=1
    )
    band_hz: list[BandHz | None] | None = optional("Bands, [low, high] in Hz; null: no limits.", min_length=1)
    clipping_db: list[ClippingDb | None] | None = optional(
        "Level below the largest peak at which peaks are clipped, dB; null: no clipping.", min_length=1
    )
    codec: list[Codec | None] | None = optional(
        "Codecs: opus with its kbit/s, such as opus 16, or at 8 kHz mulaw, alaw, gsm or adpcm; null means none.",
        min_length=1,
    )


class ChannelExcludeKeys(Keys):
    """One value of each."""

    speed: Speed | None = optional("One of the axis's speeds.")
    gain_db: GainDb | None = optional("One of the axis's gains.")
    band_hz: BandHz | None = optional("One of the axis's bands; null: no limits.")
    clipping_db: ClippingDb | None = optional("One of the axis's values; null: no clipping.")
    codec: Codec | None = optional("One of the axis's codecs; null means none.")


PathText = Annotated[Text, Field(description="A path in this file's folder, or root:path in a named asset root.")]
DistanceM = Annotated[float, Field(gt=0, le=100)]
AngleDeg = Annotated[float, Field(ge=-180, le=180)]
Metres3 = Annotated[list[Annotated[float, Field(ge=0, le=1000)]], Field(min_length=3, max_length=3)]


class ImpulseResponseKeys(Keys):
    """A recorded impulse response, from a talker's place to the device."""

    recording: PathText = Field(description="Sound file of the response, mono.")
    distance_m: DistanceM = preset(1.0, "Distance of the talker from the device, m.")
    angle_deg: AngleDeg = preset(0.0, "Angle of the talker relative to the device's front, degrees; left is positive.")


class RoomKeys(Keys):
    """A simulated room: a box (size_m, rt60_s, device_m), or recorded impulse responses."""

    size_m: Metres3 | None = optional("Length (x), width (y) and height (z), m.")
    rt60_s: float | None = optional("Reverberation time, s. 0: no reflections.", ge=0, le=5)
    device_m: Metres3 | None = optional("Position of the device in the box: x, y, z, m.")
    device_faces_deg: float = preset(0.0, "Where the device faces: 0 along x, 90 along y, degrees.", ge=-360, le=360)
    device_pattern: Annotated[Pattern, enum_validator(Pattern)] = preset(
        Pattern.OMNI,
        "Directivity of the device's microphone: omni, subcardioid, cardioid, hypercardioid or figure_eight.",
    )
    talker_height_m: float = preset(1.5, "Height of the talker's mouth, m.", gt=0, le=100)
    talker_pattern: Annotated[Pattern, enum_validator(Pattern)] = preset(
        Pattern.OMNI, "Directivity of the talker, who faces the device."
    )
    impulse_responses: list[ImpulseResponseKeys] | None = optional(
        "Recorded impulse responses, instead of a box: one for each position of the talker.", min_length=1
    )
    level_at: Annotated[LevelAt, enum_validator(LevelAt)] | None = optional(
        "Where the level of a stimulus applies: talker (1 m in front of the talker, without the room) or device. "
        "Default: talker; for recorded responses, device."
    )
