"""Outcomes of files as tests write them: seconds at 16 kHz."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from harness.model.offline import FileOutcome, ListedFile, ListKind, OfflineSpot, RejectReason, Said

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


def sized(folder: Path, seconds: Sequence[float]) -> list[ListedFile]:
    """Files as large as so much sound, which they do not hold: no block of the disk is used."""
    files = []
    for number, length_s in enumerate(seconds):
        path = folder / f"{number}.wav"
        with path.open("wb") as file:
            file.truncate(round(length_s * 2 * RATE_HZ))
        files.append(ListedFile(ListKind.OOV, number, path.name, str(path)))
    return files
