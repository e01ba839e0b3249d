"""Counts of an offline evaluation: they add up over files, shards and machines.

Lengths are kept in whole samples, not seconds, so that sums are exact.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from harness.model.frozen import frozen
from harness.model.offline import (
    CountingRules,
    FileOutcome,
    LabelledPhrase,
    LeadInRef,
    ListKind,
    OfflineSpot,
    RejectReason,
    file_number,
)
from harness.model.transcript import Normalisation, WordCounts
from harness.offline import wake_log
from harness.offline.figures.phrase_matching import counting_labels, match_labels, silent_labels


class LogKey(StrEnum):
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


ACCEPTED = tuple(map(LogKey, wake_log.ACCEPTED))
MISSED = tuple(map(LogKey, wake_log.MISSED))
SUBSTITUTED = tuple(map(LogKey, wake_log.SUBSTITUTED))
NEEDED_TAIL_MS = 500
"""Sound that is needed after a phrase. Engines detect a phrase up to 0.4 s after its end, and never if the sound ends
sooner."""
TARGETS = frozenset({*ACCEPTED, *MISSED, *SUBSTITUTED})
"""The log has exactly one line with one of these keys for each phrase or file that should be detected."""


@frozen
class Fact:
    """One line of the log. Which fields are set depends on the key.

    - spot: the detection, in samples at the engine's rate.
    - reference: the expected text, as compared.
    - words: word errors (STTTA, STTSB, STTFR).
    - spots: number of detections in the file (INVTX).
    - text: message of the engine (ERROR).
    - label: the labelled phrase (long recordings).
    - label_index: index of the label among those of the file, -1 without a label. Unlike the label's times, the index
      is the same in all conditions.
    """

    key: LogKey
    spot: OfflineSpot | None = None
    reference: str = ""
    words: WordCounts | None = None
    spots: int = 0
    text: str = ""
    label: LabelledPhrase | None = None
    label_index: int = -1


@frozen
class FileVerdict:
    """The facts of one file, in the order of their lines in the log.

    - rejected: why the file is in no count, or None.
    - accepted: the detection that is the true accept; None without one, and in long recordings.
    """

    facts: tuple[Fact, ...]
    rejected: RejectReason | None = None
    accepted: OfflineSpot | None = None


def judge_file(outcome: FileOutcome, counting: CountingRules) -> FileVerdict:
    """Turns the outcome of a file into facts. An in-vocabulary file that is shorter than the lead-in is rejected here,
    since the lead-in is a rule of counting."""
    errors: tuple[Fact, ...] = ()
    if outcome.error:
        errors = (Fact(LogKey.ERROR, text=outcome.error),)
    reason = _reject_reason(outcome, counting)
    if reason is not None:
        return FileVerdict((*errors, Fact(LogKey.REJECT)), reason)
    match outcome.kind:
        case ListKind.OOV:
            return FileVerdict((*errors, *(Fact(LogKey.OOVFA, spot) for spot in _sort_spots(outcome.spots))))
        case ListKind.LABELLED:
            return FileVerdict((*errors, *_judge_labelled(outcome, counting)))
        case ListKind.REFERENCED if counting.words:
            verdict = _judge_words(outcome, counting)
        case ListKind.REFERENCED | ListKind.INV:
            verdict = _judge_spots(outcome, counting)
    if not errors:
        return verdict
    return FileVerdict((*errors, *verdict.facts), accepted=verdict.accepted)


def _reject_reason(outcome: FileOutcome, counting: CountingRules) -> RejectReason | None:
    """Why a file counts nowhere, by its outcome or by the rules of counting; None if it counts."""
    if outcome.rejected is not None:
        return outcome.rejected
    if outcome.rate_hz <= 0 or outcome.samples <= 0:
        return RejectReason.EMPTY
    if outcome.kind in (ListKind.OOV, ListKind.LABELLED):
        return None
    if outcome.samples * 1000 < counting.lead_in_ms * outcome.rate_hz:
        return RejectReason.SHORT
    if outcome.kind is ListKind.REFERENCED and not counting.words and not comparable_words(outcome.reference, counting):
        return RejectReason.REFERENCE  # it names no command; with words it could mean silence
    return None


def comparable_words(text: str, counting: CountingRules) -> tuple[str, ...]:
    """The words of a text, normalised for comparison: with -n in lower case and without punctuation, else unchanged."""
    from harness.transcripts.words import normalise  # imported here, since it takes long and wake words need no texts

    return normalise(text, Normalisation.PLAIN if counting.normalise else Normalisation.VERBATIM)


def _judge_spots(outcome: FileOutcome, counting: CountingRules) -> FileVerdict:
    """The first spot after the lead-in is the true accept; every other spot is a false accept."""
    has_command = outcome.kind is ListKind.REFERENCED
    spots = _sort_spots(outcome.spots)
    if has_command and not spots and outcome.said is not None and comparable_words(outcome.said.text, counting):
        transcript = outcome.said  # all that a recogniser wrote counts as one spot
        spots = (OfflineSpot(transcript.text, transcript.start, transcript.end, transcript.score),)
    facts: list[Fact] = []
    first_spot: OfflineSpot | None = None
    accepted: OfflineSpot | None = None
    for spot in spots:
        if first_spot is not None or _in_lead_in(spot, outcome.engine_rate_hz, counting):
            facts.append(Fact(LogKey.INVFA, spot))
            continue
        first_spot = spot
        fact = _command_fact(spot, outcome.reference, counting) if has_command else Fact(LogKey.INVTA, spot)
        accepted = spot if fact.key in ACCEPTED else None
        facts.append(fact)
    if first_spot is None and has_command:
        facts.append(Fact(LogKey.CMDFR, reference=" ".join(comparable_words(outcome.reference, counting))))
    elif first_spot is None:
        facts.append(Fact(LogKey.INVFR))
    if len(spots) > 1:
        facts.append(Fact(LogKey.INVTX, spots=len(spots)))
    return FileVerdict(tuple(facts), accepted=accepted)


def _judge_labelled(outcome: FileOutcome, counting: CountingRules) -> tuple[Fact, ...]:
    """True accepts, misses and false accepts of a long recording, in order of time."""
    labels, spots = counting_labels(outcome, counting), _sort_spots(outcome.spots)
    pairs = match_labels([*labels.values()], spots, outcome.engine_rate_hz, counting.tolerance_s)
    label_indices = [*labels]
    label_of_spot = {spot_index: label_indices[row] for row, spot_index in pairs}
    timed_facts: list[tuple[float, Fact]] = []
    for spot_index, spot in enumerate(spots):
        index = label_of_spot.get(spot_index)
        if index is None:
            fact = Fact(LogKey.OOVFA, spot)
        else:
            fact = Fact(LogKey.INVTA, spot, label=labels[index], label_index=index)
        timed_facts.append((spot.end / outcome.engine_rate_hz, fact))
    for index in sorted(labels.keys() - label_of_spot.values()):
        timed_facts.append((labels[index].end_s, Fact(LogKey.INVFR, label=labels[index], label_index=index)))
    return tuple(fact for _, fact in sorted(timed_facts, key=lambda timed_fact: timed_fact[0]))


def _command_fact(spot: OfflineSpot, reference: str, counting: CountingRules) -> Fact:
    """Whether a spot is the expected command, with both texts as compared."""
    expected, words = comparable_words(reference, counting), comparable_words(spot.phrase, counting)
    key = LogKey.CMDTA if expected == words else LogKey.CMDSB
    return Fact(key, OfflineSpot(" ".join(words), spot.start, spot.end, spot.score), " ".join(expected))


def _judge_words(outcome: FileOutcome, counting: CountingRules) -> FileVerdict:
    """A transcript against its reference. Without a transcript every word is a deletion."""
    from harness.transcripts.words import word_counts

    expected = comparable_words(outcome.reference, counting)
    transcript = outcome.said
    words = comparable_words(transcript.text, counting) if transcript is not None else ()
    reference = " ".join(expected)
    counts = word_counts(expected, words)
    if transcript is None or not words:
        if expected:
            return FileVerdict((Fact(LogKey.STTFR, reference=reference, words=counts),))
        return FileVerdict((Fact(LogKey.STTTA, OfflineSpot("", 0, 0), reference, counts),))  # silence, as it should be
    spot = OfflineSpot(" ".join(words), transcript.start, transcript.end, transcript.score)
    if counts.errors:
        return FileVerdict((Fact(LogKey.STTSB, spot, reference, counts),))
    return FileVerdict((Fact(LogKey.STTTA, spot, reference, counts),), accepted=spot)


def _sort_spots(spots: tuple[OfflineSpot, ...]) -> tuple[OfflineSpot, ...]:
    """The spots in the order in which the engine detected them, whatever their phrases."""
    if len(spots) < 2:
        return spots
    return tuple(sorted(spots, key=lambda spot: (spot.end, spot.start, spot.phrase)))


def _in_lead_in(spot: OfflineSpot, rate_hz: int, counting: CountingRules) -> bool:
    """Whether the spot lies in the lead-in. A spot exactly at the end of the lead-in does not."""
    position = spot.end if counting.lead_in_ref is LeadInRef.END else spot.start
    return position * 1000 < counting.lead_in_ms * rate_hz


FAULT_REASONS = (
    RejectReason.UNREADABLE, RejectReason.REFERENCE, RejectReason.ERROR, RejectReason.CRASH, RejectReason.HANG,
    RejectReason.EMPTY, RejectReason.RATE, RejectReason.CHANNELS, RejectReason.ENCODING,
)  # fmt: skip
"""Reasons for a rejection that call for a repair or an option. All other reasons only describe the files."""
MAX_HASHES_KEPT = 10_000
"""The names of this many files are kept, so that later copies of them can be reported by name."""
MAX_REJECTS_NAMED = 3


@dataclass(slots=True)
class OfflineCounts:
    """Sums over the lines of a log and over the sound of its files, so far."""

    lines: Counter[LogKey] = field(default_factory=Counter)
    rejected: Counter[RejectReason] = field(default_factory=Counter)
    rejected_names: list[str] = field(default_factory=list)
    """Names of the first MAX_REJECTS_NAMED rejected files."""
    first_rejected: tuple[str, str] | None = None
    """Name of the first rejected file, and the reason in words."""
    first_error: tuple[str, str] | None = None
    """Name of the first file with an error of the engine, and the error."""
    first_copy: tuple[str, str] | None = None
    """Name of the first file that has the same bytes as an earlier one, and the name of the earlier one."""
    inv_files: int = 0
    """Number of usable files in vocabulary. Files with a reference count as such."""
    oov_files: int = 0
    """Number of usable files out of vocabulary. Long recordings with labels count as such."""
    phrases: int = 0
    """Number of labelled phrases that count."""
    inv_samples: Counter[int] = field(default_factory=Counter)
    """Samples of the files in vocabulary, by rate in Hz. As integers, they add up to the same sum in any order."""
    oov_samples: Counter[int] = field(default_factory=Counter)
    """Samples of the files out of vocabulary, by rate in Hz."""
    accepted_samples: Counter[int] = field(default_factory=Counter)
    """Samples of the detections that are true accepts, by the engine's rate in Hz."""
    words: WordCounts = field(default_factory=WordCounts)
    """Word errors of the STT lines."""
    cpu_s: float = 0.0
    missed_tails: Counter[int] = field(default_factory=Counter)
    """Number of falsely rejected files without any detection, by the quiet at their end in ms."""
    heard_tails: Counter[int] = field(default_factory=Counter)
    """The same for a sample of files with a true accept."""
    wrong_lengths: int = 0
    """Number of files whose header states another length than they have."""
    silent_phrases: int = 0
    """Number of labelled phrases whose recording has no sound there. No other number includes them."""

    def count(self, *keys: LogKey) -> int:
        return sum(self.lines[key] for key in keys)

    @property
    def true_accepts(self) -> int:
        return self.count(*ACCEPTED)

    @property
    def false_rejects(self) -> int:
        """Files or phrases without a detection that could be a true accept, or without words."""
        return self.count(*MISSED)

    @property
    def rejects_and_substitutions(self) -> int:
        """Files or phrases without a true accept. For wake words, these are the false rejects."""
        return self.count(*MISSED, *SUBSTITUTED)

    @property
    def rejected_files(self) -> int:
        return sum(self.rejected.values())

    @property
    def without_tail(self) -> int:
        """False rejects in files that end less than NEEDED_TAIL_MS after their last loud sound.

        0 if short ends do not explain the misses, since they are common among true accepts too. They are common if the
        share of true accepts that end as early as the median of these files is over half that of misses.
        """
        short = sorted(tail for tail in self.missed_tails.elements() if tail < NEEDED_TAIL_MS)
        if not short:
            return 0
        median = short[len(short) // 2]

        def early_share(tails: Counter[int]) -> float:
            return sum(count for tail, count in tails.items() if tail <= median) / max(1, tails.total())

        return len(short) if early_share(self.missed_tails) >= 2 * early_share(self.heard_tails) else 0

    @property
    def has_faults(self) -> bool:
        """Whether the engine or a file failed, or no file could be used."""
        failed = self.count(LogKey.ERROR) or any(self.rejected[reason] for reason in FAULT_REASONS)
        return bool(failed or not (self.inv_files or self.oov_files))

    @property
    def has_references(self) -> bool:
        return any(key.startswith(("CMD", "STT")) and count for key, count in self.lines.items())

    @property
    def has_words(self) -> bool:
        return self.count(LogKey.STTTA, LogKey.STTSB, LogKey.STTFR) > 0

    def false_accepts(self, counting: CountingRules) -> int:
        """Number of false accepts that the rate per hour counts: with -u, also those in in-vocabulary files."""
        if counting.count_in_vocabulary:
            return self.count(LogKey.OOVFA, LogKey.INVFA)
        return self.count(LogKey.OOVFA)

    @property
    def inv_ms(self) -> int:
        """Milliseconds of in-vocabulary sound, the unit of the log, rounded once."""
        return rounded_ms(exact_seconds(self.inv_samples))

    @property
    def oov_ms(self) -> int:
        """Milliseconds of out-of-vocabulary sound, rounded once."""
        return rounded_ms(exact_seconds(self.oov_samples))

    @property
    def inv_oov_ms(self) -> int:
        """Milliseconds of in-vocabulary sound outside true accepts, rounded once."""
        return rounded_ms(exact_seconds(self.inv_samples) - exact_seconds(self.accepted_samples))

    def exposure_hours(self, counting: CountingRules) -> float:
        """The hours by which the false-accept rate divides: out-of-vocabulary sound, and with -u also in-vocabulary
        sound outside true accepts."""
        exposure_ms = self.oov_ms
        if counting.count_in_vocabulary:
            exposure_ms += self.inv_oov_ms
        return exposure_ms / 3_600_000


TalkerOf = Callable[[ListKind, int, LabelledPhrase | None], str]
"""The talker of a phrase; "" if not known. Arguments: kind and number of the file, and the label of a labelled
phrase."""


@dataclass(slots=True, order=True)
class PhraseCounts:
    """Phrases or files that should be detected: how many were missed, how many substituted, and how many there are."""

    missed: int = 0
    substituted: int = 0
    total: int = 0

    def add(self, key: LogKey) -> None:
        self.missed += key in MISSED
        self.substituted += key in SUBSTITUTED
        self.total += 1


class Tally:
    """Counts files one by one. Keeps a few bytes per file, from which intervals over files or talkers are computed.

    - conditions: number of conditions in which each file is played, one after the other; 0 for none. All plays of a
      file are one cluster.
    - talker_of: the talker of a phrase, "" if unknown. All phrases of a talker are one cluster, and so are all phrases
      of unknown talkers together.
    """

    def __init__(self, counting: CountingRules, conditions: int = 0, talker_of: TalkerOf | None = None) -> None:
        self._counting, self._conditions, self._talker_of = counting, conditions, talker_of
        self._last: dict[str, tuple[ListKind, int]] = {}
        self.counts = OfflineCounts()
        self._by_talker: defaultdict[str, PhraseCounts] = defaultdict(PhraseCounts)
        self._by_file: defaultdict[tuple[ListKind, int, int], PhraseCounts] = defaultdict(PhraseCounts)
        """Keys: kind and number of the file, and index of the labelled phrase. Empty without several conditions."""
        self.false_accepts, self.exposure_s = array("I"), array("d")
        """For each file that the false-accept rate includes: its number of false accepts, and its seconds of
        exposure."""
        self.word_errors, self.words = array("I"), array("I")
        """For each file with STT lines: its number of word errors, and the number of words in its reference."""
        self.content_hashes = array("Q")
        """The first 64 bits of each file's sha256, where it was computed."""
        self._name_by_hash: dict[int, str] = {}

    @property
    def talkers(self) -> dict[str, PhraseCounts]:
        """The counts of each talker, and of all unknown talkers together (""); {} if no talker is known."""
        return dict(self._by_talker) if any(self._by_talker) else {}

    @property
    def counts_by_file(self) -> list[PhraseCounts]:
        """The counts of each file or labelled phrase over all its conditions; [] if each is played only once."""
        return list(self._by_file.values())

    def add(self, outcome: FileOutcome, name: str = "") -> FileVerdict:
        """Counts a file; returns its verdict. name: the name of the file in the list."""
        verdict, counts = judge_file(outcome, self._counting), self.counts
        counts.cpu_s += outcome.cpu_s
        file = outcome.kind, file_number(outcome.number, self._conditions)
        for fact in verdict.facts:
            counts.lines[fact.key] += 1
            if fact.label is not None:
                counts.phrases += 1
            if fact.key in TARGETS:
                self._add_phrase(fact, outcome, file)
            if fact.words is not None:
                self._add_words(fact.words, file)
        if verdict.rejected is not None:
            self._add_rejected(verdict.rejected, outcome, name)
            return verdict
        if outcome.detail:
            counts.wrong_lengths += 1
        if outcome.sha256:
            self._add_content(outcome.sha256, name)
        if outcome.silent_labels:
            counts.silent_phrases += len(silent_labels(outcome, self._counting))
        if outcome.tail_ms is not None and any(fact.key in TARGETS for fact in verdict.facts):
            if verdict.accepted is not None:
                counts.heard_tails[outcome.tail_ms] += 1
            elif not outcome.spots:
                counts.missed_tails[outcome.tail_ms] += 1
        self._add_sound(outcome, verdict, file)
        return verdict

    def _add_phrase(self, fact: Fact, outcome: FileOutcome, file: tuple[ListKind, int]) -> None:
        if self._talker_of:
            self._by_talker[self._talker_of(outcome.kind, outcome.number, fact.label)].add(fact.key)
        if self._conditions > 1:
            self._by_file[(*file, fact.label_index)].add(fact.key)

    def _add_words(self, words: WordCounts, file: tuple[ListKind, int]) -> None:
        self.counts.words += words
        self._begin_cluster("words", file, self.word_errors, self.words)
        self.word_errors[-1] += words.errors
        self.words[-1] += words.words

    def _add_rejected(self, reason: RejectReason, outcome: FileOutcome, name: str) -> None:
        counts = self.counts
        counts.rejected[reason] += 1
        if name and len(counts.rejected_names) < MAX_REJECTS_NAMED:
            counts.rejected_names.append(name)
        if outcome.error:
            counts.first_error = counts.first_error or (name, outcome.error)
        elif outcome.rejected is not None:
            counts.first_rejected = counts.first_rejected or (name, outcome.detail or outcome.rejected.value)

    def _add_content(self, sha256: str, name: str) -> None:
        content = int(sha256[:16], 16)  # 64 bits, as many as the array holds
        self.content_hashes.append(content)
        if earlier := self._name_by_hash.get(content):
            self.counts.first_copy = self.counts.first_copy or (name, earlier)
        elif len(self._name_by_hash) < MAX_HASHES_KEPT:
            self._name_by_hash[content] = name

    def _add_sound(self, outcome: FileOutcome, verdict: FileVerdict, file: tuple[ListKind, int]) -> None:
        """Adds the length of a file, and its share of the false-accept rate."""
        counts = self.counts
        accepted_samples = 0 if verdict.accepted is None else samples_in_file(verdict.accepted, outcome)
        if accepted_samples:
            counts.accepted_samples[outcome.engine_rate_hz] += accepted_samples
        key = LogKey.INVFA if self._counting.count_in_vocabulary else None
        if outcome.kind in (ListKind.OOV, ListKind.LABELLED):
            key = LogKey.OOVFA
            counts.oov_files += 1
            counts.oov_samples[outcome.rate_hz] += outcome.samples
        else:
            counts.inv_files += 1
            counts.inv_samples[outcome.rate_hz] += outcome.samples
        if key is not None:
            self._begin_cluster("accepts", file, self.false_accepts, self.exposure_s)
            self.false_accepts[-1] += sum(fact.key is key for fact in verdict.facts)
            accepted_s = accepted_samples / outcome.engine_rate_hz if accepted_samples else 0.0
            self.exposure_s[-1] += outcome.seconds - accepted_s

    def _begin_cluster(self, kind: str, file: tuple[ListKind, int], *columns: array[int] | array[float]) -> None:
        """Appends a 0 to each column for a new file. If the last number of this kind belongs to the same file in
        another condition, nothing is appended, and that number counts for both."""
        if self._conditions < 2 or self._last.get(kind) != file:
            for column in columns:
                column.append(0)
        self._last[kind] = file


def samples_in_file(spot: OfflineSpot, outcome: FileOutcome) -> int:
    """Number of samples of a spot, at the engine's rate, that lie in the file: the last spot may end beyond it."""
    last = outcome.samples * outcome.engine_rate_hz // outcome.rate_hz
    return max(0, min(spot.end, last) - min(spot.start, last))


def exact_seconds(samples: Counter[int]) -> Fraction:
    """Seconds of sound, exactly. samples: number of samples by sample rate in Hz."""
    return sum((Fraction(count, rate) for rate, count in samples.items()), Fraction(0))


def rounded_ms(seconds: Fraction) -> int:
    return round(seconds * 1000)
