"""Counts of an offline evaluation, which add up: over files, over shards, over machines. Whole samples, no seconds."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from harness.model.offline import Counting, FileOutcome, ListKind, OfflineSpot, RejectReason
from harness.model.transcript import WordCounts
from harness.offline.figures.verdicts import ACCEPTED, MISSED, MISTAKEN, Key, Verdict, judged

Samples = Mapping[int, int]
"""Samples by their rate in Hz: whole numbers, so that sums do not depend on their order."""


@dataclass(frozen=True, slots=True)
class OfflineCounts:
    """What the lines of a log come to, and the sound that they speak of.

    lines: how many of each key. rejected: files by reason. inv_files, oov_files: without rejected ones; files with a
    reference are in-vocabulary. inv, oov: their samples. accepted: samples of the spots of true accepts. words: of STT
    lines. cpu_s: processor time.
    """

    lines: Mapping[Key, int] = field(default_factory=dict)
    rejected: Mapping[RejectReason, int] = field(default_factory=dict)
    inv_files: int = 0
    oov_files: int = 0
    inv: Samples = field(default_factory=dict)
    oov: Samples = field(default_factory=dict)
    accepted: Samples = field(default_factory=dict)
    words: WordCounts = field(default_factory=WordCounts)
    cpu_s: float = 0.0

    def __add__(self, other: OfflineCounts) -> OfflineCounts:
        return OfflineCounts(
            dict(Counter(self.lines) + Counter(other.lines)),
            dict(Counter(self.rejected) + Counter(other.rejected)),
            self.inv_files + other.inv_files,
            self.oov_files + other.oov_files,
            dict(Counter(self.inv) + Counter(other.inv)),
            dict(Counter(self.oov) + Counter(other.oov)),
            dict(Counter(self.accepted) + Counter(other.accepted)),
            self.words + other.words,
            self.cpu_s + other.cpu_s,
        )

    def count(self, *keys: Key) -> int:
        """Lines of these keys."""
        return sum(self.lines.get(key, 0) for key in keys)

    @property
    def true_accepts(self) -> int:
        return self.count(*ACCEPTED)

    @property
    def false_rejects(self) -> int:
        """Files of which nothing was understood, or without a spot of their own."""
        return self.count(*MISSED)

    @property
    def rejects_and_substitutions(self) -> int:
        return self.count(*MISSED, *MISTAKEN)

    @property
    def rejected_files(self) -> int:
        return sum(self.rejected.values())

    @property
    def has_references(self) -> bool:
        """Are there lines of commands or texts?"""
        return any(key.startswith(("CMD", "STT")) and count for key, count in self.lines.items())

    @property
    def has_words(self) -> bool:
        return self.count(Key.STTTA, Key.STTSB, Key.STTFR) > 0

    def false_accepts(self, counting: Counting) -> int:
        """Those of the rate's numerator: in-vocabulary ones with -u only."""
        return self.count(Key.OOVFA, Key.INVFA) if counting.count_in_vocabulary else self.count(Key.OOVFA)

    @property
    def inv_ms(self) -> int:
        """Milliseconds of in-vocabulary sound: the unit of the log, rounded once."""
        return _thousandths(_seconds(self.inv))

    @property
    def oov_ms(self) -> int:
        return _thousandths(_seconds(self.oov))

    @property
    def inv_oov_ms(self) -> int:
        """In-vocabulary sound that is no true accept's spot."""
        return _thousandths(_seconds(self.inv) - _seconds(self.accepted))

    def exposure_hours(self, counting: Counting) -> float:
        """The false-accept rate's hours: of out-of-vocabulary sound, with -u also of what is left of the other."""
        return (self.oov_ms + (self.inv_oov_ms if counting.count_in_vocabulary else 0)) / 3_600_000


class Tally:
    """Counts of files that come one by one, each with what the spread of events over files needs; few bytes a file."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._lines: Counter[Key] = Counter()
        self._rejected: Counter[RejectReason] = Counter()
        self._files = dict.fromkeys(ListKind, 0)
        self._samples: dict[ListKind, Counter[int]] = {kind: Counter() for kind in ListKind}
        self._accepted: Counter[int] = Counter()
        self._words = WordCounts()
        self._cpu_s = 0.0
        self.false_accepts, self.exposure_s = array("I"), array("d")
        """Of each file of the false-accept rate: its false accepts, and its part of the exposure."""
        self.word_errors, self.words = array("I"), array("I")
        """Of each file with STT lines."""

    def add(self, outcome: FileOutcome) -> Verdict:
        """Counts a file; what it came to."""
        verdict = judged(outcome, self._counting)
        self._cpu_s += outcome.cpu_s
        for fact in verdict.facts:
            self._lines[fact.key] += 1
            if fact.words is not None:
                self._words += fact.words
                self.word_errors.append(fact.words.errors)
                self.words.append(fact.words.words)
        if verdict.rejected is not None:
            self._rejected[verdict.rejected] += 1
            return verdict
        self._files[outcome.kind] += 1
        self._samples[outcome.kind][outcome.rate_hz] += outcome.samples
        spot = 0 if verdict.accepted is None else within(verdict.accepted, outcome)
        if spot:
            self._accepted[outcome.engine_rate_hz] += spot
        self._spread(outcome, verdict, spot)
        return verdict

    def _spread(self, outcome: FileOutcome, verdict: Verdict, spot: int) -> None:
        if outcome.kind is ListKind.OOV:
            key, seconds = Key.OOVFA, outcome.seconds
        elif self._counting.count_in_vocabulary:
            key, seconds = Key.INVFA, outcome.seconds - (spot / outcome.engine_rate_hz if spot else 0.0)
        else:
            return
        self.false_accepts.append(sum(fact.key is key for fact in verdict.facts))
        self.exposure_s.append(seconds)

    @property
    def counts(self) -> OfflineCounts:
        """Of all files so far."""
        inv = self._samples[ListKind.INV] + self._samples[ListKind.REFERENCED]
        return OfflineCounts(
            dict(self._lines),
            dict(self._rejected),
            self._files[ListKind.INV] + self._files[ListKind.REFERENCED],
            self._files[ListKind.OOV],
            dict(inv),
            dict(self._samples[ListKind.OOV]),
            dict(self._accepted),
            self._words,
            self._cpu_s,
        )


def within(spot: OfflineSpot, outcome: FileOutcome) -> int:
    """Samples of a spot, at the engine's rate, that lie in the file: the flush at its end may end one behind it."""
    last = outcome.samples * outcome.engine_rate_hz // outcome.rate_hz
    return max(0, min(spot.end, last) - min(spot.start, last))


def _seconds(samples: Samples) -> Fraction:
    return sum((Fraction(count, rate) for rate, count in samples.items()), Fraction(0))


def _thousandths(seconds: Fraction) -> int:
    return round(seconds * 1000)
