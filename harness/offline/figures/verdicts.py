"""What an outcome of a file counts as: the facts that its lines in the log state.

Source of the keys: seed snsr-eval-batch, log file format; docs/evaluate.md says how each is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.offline import Counting, FileOutcome, LeadInRef, ListKind, OfflineSpot, RejectReason
from harness.model.transcript import Normalisation, WordCounts
from harness.transcripts.words import normalise, word_counts
from harness.wake import wake_totals


class Key(StrEnum):
    """What a line of the log states; the values are the log's keys."""

    INVTA = "INVTA"
    INVFA = "INVFA"
    INVFR = "INVFR"
    INVTX = "INVTX"
    OOVFA = "OOVFA"
    CMDTA = "CMDTA"
    CMDSB = "CMDSB"
    CMDFR = "CMDFR"
    STTTA = "STTTA"
    STTSB = "STTSB"
    STTFR = "STTFR"
    REJECT = "REJECT"
    ERROR = "ERROR"


ACCEPTED = tuple(map(Key, wake_totals.ACCEPTED))
MISSED = tuple(map(Key, wake_totals.MISSED))
MISTAKEN = tuple(map(Key, wake_totals.MISTAKEN))


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the log. spot: positions at the engine's rate; its phrase and `reference` are as they were compared.

    words: of STTTA, STTSB and STTFR. spots: of INVTX, all of them. text: of ERROR.
    """

    key: Key
    spot: OfflineSpot | None = None
    reference: str = ""
    words: WordCounts | None = None
    spots: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The facts of one file, in the order of their lines.

    rejected: the file is out of every count; else it is one file of its list. accepted: the spot of its true accept.
    """

    facts: tuple[Fact, ...]
    rejected: RejectReason | None = None
    accepted: OfflineSpot | None = None


def judged(outcome: FileOutcome, counting: Counting) -> Verdict:
    """What the outcome of a file counts as.

    An in-vocabulary file that is shorter than the lead-in is rejected here, since the lead-in is a matter of counting.
    """
    errors = (Fact(Key.ERROR, text=outcome.error),) if outcome.error else ()
    reason = _rejected(outcome, counting)
    if reason is not None:
        return Verdict((*errors, Fact(Key.REJECT)), reason)
    match outcome.kind:
        case ListKind.OOV:
            return Verdict((*errors, *(Fact(Key.OOVFA, spot) for spot in _in_time(outcome.spots))))
        case ListKind.REFERENCED if counting.words:
            found = _words(outcome, counting)
        case ListKind.REFERENCED | ListKind.INV:
            found = _spots(outcome, counting)
    return Verdict((*errors, *found.facts), accepted=found.accepted) if errors else found


def _rejected(outcome: FileOutcome, counting: Counting) -> RejectReason | None:
    if outcome.rejected is not None:
        return outcome.rejected
    if outcome.rate_hz <= 0 or outcome.samples <= 0:
        return RejectReason.EMPTY
    if outcome.kind is ListKind.OOV:
        return None
    if outcome.samples * 1000 < counting.lead_in_ms * outcome.rate_hz:
        return RejectReason.SHORT
    if outcome.kind is ListKind.REFERENCED and not counting.words and not as_compared(outcome.reference, counting):
        return RejectReason.REFERENCE  # it names no command; for words it is a silence that must stay one
    return None


def as_compared(text: str, counting: Counting) -> tuple[str, ...]:
    """The words of a text as they are compared: with -n in lower case and without punctuation."""
    return normalise(text, Normalisation.PLAIN if counting.normalise else Normalisation.VERBATIM)


def _spots(outcome: FileOutcome, counting: Counting) -> Verdict:
    """The first spot after the lead-in is the file's own, every other one a false accept."""
    commands = outcome.kind is ListKind.REFERENCED
    spots = _in_time(outcome.spots)
    if commands and not spots and outcome.said is not None and as_compared(outcome.said.text, counting):
        said = outcome.said
        spots = (OfflineSpot(said.text, said.start, said.end, said.score),)
    facts: list[Fact] = []
    own: OfflineSpot | None = None
    accepted: OfflineSpot | None = None
    for spot in spots:
        if own is not None or _in_lead_in(spot, outcome.engine_rate_hz, counting):
            facts.append(Fact(Key.INVFA, spot))
            continue
        own = spot
        fact = _command(spot, outcome.reference, counting) if commands else Fact(Key.INVTA, spot)
        accepted = spot if fact.key in ACCEPTED else None
        facts.append(fact)
    if own is None and commands:
        facts.append(Fact(Key.CMDFR, reference=" ".join(as_compared(outcome.reference, counting))))
    elif own is None:
        facts.append(Fact(Key.INVFR))
    if len(spots) > 1:
        facts.append(Fact(Key.INVTX, spots=len(spots)))
    return Verdict(tuple(facts), accepted=accepted)


def _command(spot: OfflineSpot, reference: str, counting: Counting) -> Fact:
    wanted, found = as_compared(reference, counting), as_compared(spot.phrase, counting)
    compared = OfflineSpot(" ".join(found), spot.start, spot.end, spot.score)
    return Fact(Key.CMDTA if wanted == found else Key.CMDSB, compared, " ".join(wanted))


def _words(outcome: FileOutcome, counting: Counting) -> Verdict:
    """A transcript against its reference; of what was not understood every word is a deletion."""
    wanted = as_compared(outcome.reference, counting)
    said = outcome.said
    found = as_compared(said.text, counting) if said is not None else ()
    reference = " ".join(wanted)
    counts = word_counts(wanted, found)
    if said is None or not found:
        if wanted:
            return Verdict((Fact(Key.STTFR, reference=reference, words=counts),))
        return Verdict((Fact(Key.STTTA, OfflineSpot("", 0, 0), reference, counts),))  # silence, and heard as one
    spot = OfflineSpot(" ".join(found), said.start, said.end, said.score)
    if counts.errors:
        return Verdict((Fact(Key.STTSB, spot, reference, counts),))
    return Verdict((Fact(Key.STTTA, spot, reference, counts),), accepted=spot)


def _in_time(spots: tuple[OfflineSpot, ...]) -> tuple[OfflineSpot, ...]:
    """In the order in which they were known, whichever of several phrases' detectors is asked first."""
    if len(spots) < 2:
        return spots
    return tuple(sorted(spots, key=lambda spot: (spot.end, spot.start, spot.phrase)))


def _in_lead_in(spot: OfflineSpot, rate_hz: int, counting: Counting) -> bool:
    """Does it lie before the end of the lead-in; one exactly there does not."""
    at = spot.end if counting.lead_in_ref is LeadInRef.END else spot.start
    return at * 1000 < counting.lead_in_ms * rate_hz
