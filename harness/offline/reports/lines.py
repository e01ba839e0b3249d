"""The lines that a file's outcome makes in the log."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.offline import FileOutcome, OfflineSpot, RejectReason
from harness.offline.figures.verdicts import Fact, Key, Verdict
from harness.wake.reports.wake_log import Command, Extras, Failure, Happening, ManySpots, Missed, Rejected, Spot, Words
from harness.wake.reports.wake_log_text import quoted


def happenings(outcome: FileOutcome, verdict: Verdict, file: str) -> Iterator[Happening]:
    """The lines of one file, in their order; file: as its list has it."""
    for fact in verdict.facts:
        yield _happening(fact, outcome, verdict, file)


def _happening(fact: Fact, outcome: FileOutcome, verdict: Verdict, file: str) -> Happening:
    spot = fact.spot or OfflineSpot("", 0, 0)
    span = _ms(spot.start, outcome.engine_rate_hz), _ms(spot.end, outcome.engine_rate_hz)
    extras = _score(spot)
    match fact.key:
        case Key.INVTA:
            return Spot("INVTA", file, *span, spot.phrase, extras=extras)
        case Key.INVFA:
            return Spot("INVFA", file, *span, spot.phrase, extras=extras)
        case Key.OOVFA:
            return Spot("OOVFA", file, *span, spot.phrase, extras=extras)
        case Key.CMDTA:
            return Command("CMDTA", file, *span, spot.phrase, fact.reference, extras=extras)
        case Key.CMDSB:
            return Command("CMDSB", file, *span, spot.phrase, fact.reference, extras=extras)
        case Key.STTTA | Key.STTSB:
            return _words(fact, file, span, spot.phrase, extras)
        case Key.INVFR:
            return Missed("INVFR", file)
        case Key.CMDFR:
            return Missed("CMDFR", file, fact.reference)
        case Key.STTFR:
            return Missed("STTFR", file, fact.reference)
        case Key.INVTX:
            return ManySpots(file, fact.spots)
        case Key.ERROR:
            return Failure(f"{quoted(file)}: {fact.text}")
        case Key.REJECT:
            reason = verdict.rejected.value if verdict.rejected else ""
            detail = outcome.detail
            if outcome.rejected is None and verdict.rejected is RejectReason.REFERENCE:
                detail = "it has no words"  # readable, and found to be none only when it was compared
            return Rejected(file, reason, (("x-detail", detail),) if detail else ())


def _words(fact: Fact, file: str, span: tuple[float, float], phrase: str, extras: Extras) -> Words:
    counts = fact.words
    assert counts is not None
    return Words(
        "STTSB" if fact.key is Key.STTSB else "STTTA",
        file,
        *span,
        phrase,
        fact.reference,
        words=counts.words,
        substitutions=counts.substitutions,
        additions=counts.insertions,
        deletions=counts.deletions,
        wer=None if counts.wer is None else 100 * counts.wer,
        extras=extras,
    )


def _ms(samples: int, rate_hz: int) -> float:
    return round(samples * 1000 / rate_hz, 3) if rate_hz else 0.0


def _score(spot: OfflineSpot) -> Extras:
    return () if spot.score is None else (("x-score", f"{spot.score:g}"),)
