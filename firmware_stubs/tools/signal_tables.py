"""Writes core/spotter/vh_spotter_signal.h: window, sine, mel edges and logarithm of the spotter's front end.

python firmware_stubs/tools/signal_tables.py > firmware_stubs/core/spotter/vh_spotter_signal.h
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

RATE_HZ, POINTS, WINDOW, BANDS = 16_000, 512, 400, 16
MIN_HZ, MAX_HZ = 100, 7500
PEAK_FLOOR_DBFS = -55
"""The front end normalises a frame by its loudest band, but not sound that is softer than a sine of this level."""


def mel(hz: float) -> float:
    return 1127 * math.log(1 + hz / 700)


def hertz(mels: float) -> float:
    return 700 * (math.exp(mels / 1127) - 1)


def edges() -> list[int]:
    """The bins at which the triangles begin, peak and end."""
    step = (mel(MAX_HZ) - mel(MIN_HZ)) / (BANDS + 1)
    return [round(hertz(mel(MIN_HZ) + i * step) * POINTS / RATE_HZ) for i in range(BANDS + 2)]


def peak_floor() -> int:
    """PEAK_FLOOR_DBFS in 1/256 of log2 of power, as the front end computes it.

    Its window has a gain of 2^4; it takes four times the power; the bin at the peak of a band has the weight 64.
    """
    amplitude = 32768 * 10 ** (PEAK_FLOOR_DBFS / 20) * 16 * (WINDOW / 2) / 2
    return round(256 * math.log2(4 * amplitude**2 * 64))


def table(c_type: str, name: str, values: Sequence[int]) -> str:
    """A C array, 16 elements in a line."""
    lines = [", ".join(map(str, values[first : first + 16])) for first in range(0, len(values), 16)]
    body = ",\n    ".join(lines)
    return f"static const {c_type} vh_spotter_{name}[{len(values)}] = {{\n    {body},\n}};\n"


def header() -> str:
    hann = [round(32767 * math.sin(math.pi * (n + 0.5) / WINDOW) ** 2) for n in range(WINDOW // 2)]
    sine = [round(32767 * math.sin(2 * math.pi * k / POINTS)) for k in range(POINTS // 4 + 1)]
    log2 = [round(256 * math.log2(1 + i / 64)) for i in range(64)]
    return (
        "/* Made by tools/signal_tables.py. */\n"
        "#ifndef VH_SPOTTER_SIGNAL_H\n#define VH_SPOTTER_SIGNAL_H\n\n#include <stdint.h>\n\n"
        f"#define VH_SPOTTER_PEAK_FLOOR {peak_floor()}\n\n"
        + table("int16_t", "hann", hann)
        + table("int16_t", "sine", sine)
        + table("uint8_t", "edges", edges())
        + table("uint8_t", "log2", log2)
        + "\n#endif\n"
    )


if __name__ == "__main__":
    sys.stdout.write(header())
