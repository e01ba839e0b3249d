"""Settings of engines: names, kinds and ranges are checked before any audio is read. An unknown name lists the valid
ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.base.plugins import checked_settings
from harness.model.errors import InputError
from harness.model.offline import OperatingPoint, Setting, SettingKind, SpotRule

LEAD_IN = Setting(
    "min-in-vocab-duration", SettingKind.NUMBER, "1000",
    "lead-in of in-vocabulary files, in ms: detections that end within it are false accepts", low=0, high=60_000,
)  # fmt: skip
OPERATING_POINT = Setting(
    "operating-point", SettingKind.WHOLE, "", "1 (strictest) to 20 (most lenient); 10 is the model's own threshold",
    low=1, high=20,
)  # fmt: skip
THRESHOLD = Setting(
    "threshold", SettingKind.NUMBER, "", "a score above this is a detection; replaces operating-point", low=0, high=1
)
REFRACTORY = Setting(
    "refractory-ms", SettingKind.NUMBER, "1000",
    "shortest gap between two detections, in ms, from the last score above the threshold (without scores: from the "
    "last detection that counts)", low=0, high=60_000,
)  # fmt: skip
SPOT_DURATION = Setting(
    "spot-duration", SettingKind.NUMBER, "800", "assumed length of a detection, in ms before the reported time",
    low=0, high=10_000,
)  # fmt: skip
OF_SCORES = (OPERATING_POINT, THRESHOLD, REFRACTORY, LEAD_IN, SPOT_DURATION)
"""The settings of every wake engine with scores."""
MAX_FILE_BYTES = 1 << 20
"""Largest file, in bytes, that may hold a setting's value."""
POINTS = 20
"""Number of operating points, as in the tool whose command line `harness evaluate` takes."""
OWN_POINT = 10
"""The operating point with the model's own threshold."""


def parse_assignment(text: str) -> tuple[str, str]:
    """Parses `name=value`. Raises InputError for another text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{text!r} is not a setting", remedy="Use -s setting=value, such as -s operating-point=10")
    return name, value


def read_from_file(setting: Setting | None, path: str) -> str:
    """A setting's value from a file: its text without the last line end. For a setting that is a file: its path.

    Raises InputError for a file that cannot be read or is not text. setting: None for an unknown one, which is refused
    later.
    """
    if setting is None or setting.kind is SettingKind.FILE:
        return path
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InputError(
                f"{path} is longer than {MAX_FILE_BYTES:,} bytes",
                remedy=f"Use a file that contains only the value of {setting.name}",
            )
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8"
        if isinstance(error, OSError):
            why = error.strerror or str(error)
        problem = f"{path} cannot be read as the setting {setting.name}: {why}"
        raise InputError(problem, remedy="Use a text file that contains the value") from error


def check_settings(
    known_settings: Sequence[Setting], assignments: Iterable[tuple[str, str]], engine: str
) -> dict[str, str]:
    """The given settings, the last of each name. Raises InputError for an unknown name or an invalid value."""
    settings = checked_settings(known_settings, assignments, engine)
    if THRESHOLD.name in settings and OPERATING_POINT.name in settings:
        raise InputError(
            "threshold and operating-point are both set, but each sets the threshold", remedy="Set only one of the two"
        )
    return settings


def number(settings: Mapping[str, str], setting: Setting) -> float:
    """The value that was given, or the default."""
    return float(settings.get(setting.name, setting.default))


def operating_points(default: float) -> tuple[OperatingPoint, ...]:
    """Twenty operating points around a model's own threshold, evenly spaced in log odds from 0.9999 to 0.0001.

    Point 1 is the strictest. The tenth is exactly `default`, the model's threshold. Raises ValueError unless 0 <
    default < 1.
    """
    if not 0 < default < 1:
        raise ValueError(f"a threshold must be between 0 and 1, not {default}")
    middle, limit = math.log(default / (1 - default)), math.log(0.9999 / 0.0001)
    # At least one unit of log odds on each side, even if the model's own threshold is as extreme as the limits.
    strictest, most_lenient = max(limit, middle + 1), min(-limit, middle - 1)
    points = []
    for point in range(1, POINTS + 1):
        if point < OWN_POINT:
            odds = middle + (strictest - middle) * (OWN_POINT - point) / (OWN_POINT - 1)
        else:
            odds = middle + (most_lenient - middle) * (point - OWN_POINT) / (POINTS - OWN_POINT)
        threshold = default if point == OWN_POINT else 1 / (1 + math.exp(-odds))
        points.append(OperatingPoint(point, threshold))
    return tuple(points)


def spot_rule(settings: Mapping[str, str], model_threshold: float, rate_hz: int) -> tuple[SpotRule, int | None]:
    """The rule for the settings OF_SCORES, and the number of its operating point (None: a threshold was set).

    model_threshold: the model's own threshold, at OWN_POINT.
    """
    point: int | None = None
    if THRESHOLD.name in settings:
        threshold = float(settings[THRESHOLD.name])
    else:
        point = int(settings.get(OPERATING_POINT.name, OWN_POINT))
        threshold = operating_points(model_threshold)[point - 1].threshold
    refractory_samples = round(number(settings, REFRACTORY) / 1000 * rate_hz)
    spot_samples = round(number(settings, SPOT_DURATION) / 1000 * rate_hz)
    return SpotRule(threshold, refractory_samples, spot_samples), point
