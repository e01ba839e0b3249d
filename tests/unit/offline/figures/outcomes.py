"""Outcomes of files as tests write them: seconds at 16 kHz."""

from __future__ import annotations

from itertools import count

from harness.model.offline import FileOutcome, ListKind, OfflineSpot, RejectReason, Said

RATE_HZ = 16_000
_numbers = count()


def spot(start_s: float, end_s: float, phrase: str = "alexa", score: float | None = None) -> OfflineSpot:
    return OfflineSpot(phrase, round(start_s * RATE_HZ), round(end_s * RATE_HZ), score)


def said(text: str, start_s: float = 0.0, end_s: float = 3.0) -> Said:
    return Said(text, round(start_s * RATE_HZ), round(end_s * RATE_HZ))


def outcome(
    kind: ListKind,
    *spots: OfflineSpot,
    seconds: float = 4.0,
    said: Said | None = None,
    reference: str = "",
    rejected: RejectReason | None = None,
    error: str = "",
    rate_hz: int = RATE_HZ,
    detail: str = "",
) -> FileOutcome:
    return FileOutcome(
        kind,
        next(_numbers),
        round(seconds * rate_hz),
        rate_hz,
        RATE_HZ,
        spots,
        said,
        reference,
        rejected,
        detail,
        error,
        0.001,
    )
