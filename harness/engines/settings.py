"""Settings of engines: checked by name, kind and range before any audio is read; a wrong name lists those there are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.base.plugins import checked_settings
from harness.model.errors import InputError
from harness.model.offline import OperatingPoint, Setting, SettingKind, SpotRule

LEAD_IN = Setting(
    "min-in-vocab-duration",
    SettingKind.NUMBER,
    "1000",
    "lead-in of in-vocabulary files, ms: spots that end within it are false accepts",
    low=0,
    high=60_000,
)
OPERATING_POINT = Setting(
    "operating-point",
    SettingKind.WHOLE,
    "",
    "1 (strictest) to 20 (most lenient); 10 is the model's own threshold",
    low=1,
    high=20,
)
THRESHOLD = Setting(
    "threshold", SettingKind.NUMBER, "", "spots are scores above it; instead of operating-point", low=0, high=1
)
REFRACTORY = Setting(
    "refractory-ms", SettingKind.NUMBER, "1000", "spots closer than this to the last score above belong to it",
    low=0, high=60_000,
)  # fmt: skip
SPOT_DURATION = Setting(
    "spot-duration", SettingKind.NUMBER, "800", "how long a spot is taken to be, ms back from where it was known",
    low=0, high=10_000,
)  # fmt: skip
OF_SCORES = (OPERATING_POINT, THRESHOLD, REFRACTORY, LEAD_IN, SPOT_DURATION)
"""Settings that every wake engine with scores has."""
LONGEST_FILE = 1 << 20
"""Bytes of a file that holds a setting's value."""
POINTS = 20
OWN_POINT = 10


def assigned(text: str) -> tuple[str, str]:
    """A setting as an option gives it, `name=value`; InputError."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{text!r} sets nothing", remedy="Write -s setting=value, as -s operating-point=10")
    return name, value


def read_from_file(setting: Setting | None, path: str) -> str:
    """A setting's value from a file: its text, without the end of its last line; of a setting that is a file, its path.

    InputError for a file that cannot be read, or is no text. setting: None for an unknown one, which is refused later.
    """
    if setting is None or setting.kind is SettingKind.FILE:
        return path
    try:
        with Path(path).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        if len(content) > LONGEST_FILE:
            raise InputError(f"{path} is longer than {LONGEST_FILE:,} bytes", remedy=f"-f {setting.name} takes a value")
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
        what = f"{path} cannot be read as the setting {setting.name}: {why}"
        raise InputError(what, remedy="Name a text file that holds the value") from error


def checked(known: Sequence[Setting], given: Iterable[tuple[str, str]], engine: str) -> dict[str, str]:
    """Settings that were given, the last of a name; InputError for an unknown name or a wrong value."""
    found = checked_settings(known, given, engine)
    if THRESHOLD.name in found and OPERATING_POINT.name in found:
        raise InputError(
            "threshold and operating-point are both set, and each decides what a spot is", remedy="Set one of them"
        )
    return found


def number(settings: Mapping[str, str], setting: Setting) -> float:
    """The value that was given, or the default."""
    return float(settings.get(setting.name, setting.default))


def operating_points(own: float) -> tuple[OperatingPoint, ...]:
    """Twenty points around a model's own threshold (0–1, the tenth), evenly in log odds from 0.9999 to 0.0001.

    1 is the strictest. `own` is exact; ValueError unless 0 < own < 1.
    """
    if not 0 < own < 1:
        raise ValueError(f"a threshold lies between 0 and 1, not {own}")
    middle, far = math.log(own / (1 - own)), math.log(0.9999 / 0.0001)
    strict, lenient = max(far, middle + 1), min(-far, middle - 1)
    found = []
    for point in range(1, POINTS + 1):
        end, steps = (strict, OWN_POINT - 1) if point < OWN_POINT else (lenient, POINTS - OWN_POINT)
        odds = middle + (end - middle) * abs(point - OWN_POINT) / steps
        threshold = own if point == OWN_POINT else 1 / (1 + math.exp(-odds))
        found.append(OperatingPoint(point, threshold))
    return tuple(found)


def spot_rule(settings: Mapping[str, str], own_threshold: float, rate_hz: int) -> tuple[SpotRule, int | None]:
    """The rule that the settings of OF_SCORES ask for, and the number of its operating point (None: a threshold)."""
    point: int | None = None
    if THRESHOLD.name in settings:
        threshold = float(settings[THRESHOLD.name])
    else:
        point = int(settings.get(OPERATING_POINT.name, OWN_POINT))
        threshold = operating_points(own_threshold)[point - 1].threshold
    refractory = round(number(settings, REFRACTORY) / 1000 * rate_hz)
    return SpotRule(threshold, refractory, round(number(settings, SPOT_DURATION) / 1000 * rate_hz)), point
