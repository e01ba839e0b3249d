"""Rates that serial ports of boards have, the commonest first; and which of them makes text of what comes."""

from __future__ import annotations

RATES = (115200, 9600, 921600, 57600, 460800, 230400, 38400, 19200, 74880, 1500000, 2000000, 1000000)
RATES_IN_WORDS = ", ".join(str(rate) for rate in sorted(RATES))
READABLE = 0.9
_TEXT = frozenset(b"\t\r\n\x1b" + bytes(range(32, 127)))


def text_share(data: bytes) -> float:
    """The share of bytes that stand in text; UTF-8 counts as such."""
    if not data:
        return 0.0
    plain = sum(byte in _TEXT for byte in data)
    letters = data.decode("utf-8", errors="ignore")
    return min(1.0, (plain + sum(len(one.encode()) for one in letters if ord(one) >= 0xA0)) / len(data))
