"""What the first bytes from a port say of a board that does not answer."""

from __future__ import annotations

from harness.wire.foreign import plain_text

KEPT = 400
_TEXT_SHARE = 0.9


def told(first: bytes, count: int) -> tuple[str, str]:
    """What was seen, and what to do about it. first: at most KEPT of the `count` bytes that came."""
    if not count:
        remedy = (
            "See that it is switched on, that TX and RX are not swapped, and that its firmware speaks docs/framing.md"
        )
        return "nothing came from it", remedy
    readable = sum(byte in b"\t\r\n" or 32 <= byte < 127 for byte in first)
    if readable >= _TEXT_SHARE * len(first):
        lines = [line.strip() for line in first.decode("ascii", "replace").splitlines() if line.strip()]
        shown = plain_text(max(lines, key=len, default=""), 80)
        remedy = "It prints log lines: take a profile for them, or flash firmware that speaks docs/framing.md"
        return f'{count} bytes of text came, such as "{shown}"', remedy
    return (
        f"{count} bytes came that are neither text nor frames",
        "Check `baud` first, then that its firmware speaks docs/framing.md",
    )
