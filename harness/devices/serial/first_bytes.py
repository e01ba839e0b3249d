"""What the first bytes from a port say of a board that does not answer."""

from __future__ import annotations

from harness.base.foreign import plain_text
from harness.devices.wire.rates import RATES_IN_WORDS, READABLE, text_share

KEPT = 400


def told(first: bytes, count: int) -> tuple[str, str]:
    """What was seen, and what to do about it. first: at most KEPT of the `count` bytes that came."""
    if not count:
        remedy = (
            "See that it is switched on, that TX and RX are not swapped, and that its firmware speaks docs/framing.md"
        )
        return "nothing came from it", remedy
    if text_share(first) >= READABLE:
        lines = [line.strip() for line in first.decode("ascii", "replace").splitlines() if line.strip()]
        shown = plain_text(max(lines, key=len, default=""), 80)
        remedy = "It prints log lines: take a profile for them, or flash firmware that speaks docs/framing.md"
        return f'{count} bytes of text came, such as "{shown}"', remedy
    remedy = (
        "Check `baud` first, then that its firmware speaks docs/framing.md. `harness devices test PROFILE --port DEV` "
        f"tries the common rates: {RATES_IN_WORDS}"
    )
    return f"{count} bytes came that are neither text nor frames", remedy
