"""Recordings with several speakers: pairs the speakers of a hypothesis with those of the reference, and aligns their
words.

cpWER (Watanabe et al., CHiME-6, 2020), tcpWER and ORC-WER (von Neumann et al., MeetEval, 2023), counted as in
meeteval. Every error costs one. Of equally good alignments, the one with a deletion or an insertion is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.model.choices import SpeakerPairing
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Segment, Transcripts
from harness.transcripts.alignment import side_by_side
from harness.transcripts.alignment_tables import walk_back
from harness.transcripts.files.timed import Segments
from harness.transcripts.readings import Words
from harness.transcripts.words import WordRules

COLLAR_S = 5.0
"""The usual collar of tcpWER, as in meeteval."""
TOUCHING_S = 1e-9
"""Words whose times only touch do not overlap. This margin keeps rounding from deciding that."""
MAX_STATES, MAX_STEPS = 300_000_000, 30_000_000_000
"""Limits of ORC-WER: cells that are kept in memory, and cells that are computed."""
_FORBIDDEN_COST = 1 << 30  # Above the costs of any alignment.
Times = NDArray[np.float64]
"""Begin and end of each word in seconds, shape (words, 2)."""


@dataclass(slots=True)
class _SpeakerWords:
    """What one speaker says in one recording.

    - segments: in the order of their starts.
    - utterances: the words of each.
    """

    speaker: str
    utterances: list[Words] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return [word for words in self.utterances for word in words]

    def times(self) -> Times:
        """The time of each word: that of its segment, divided among its words by their numbers of characters."""
        times: list[tuple[float, float]] = []
        for words, segment in zip(self.utterances, self.segments, strict=True):
            if ends := list(accumulate(map(len, words), initial=0)):
                each_s = (segment.end_s - segment.start_s) / max(1, ends[-1])
                times += [
                    (segment.start_s + each_s * begin, segment.start_s + each_s * finish)
                    for begin, finish in pairwise(ends)
                ]
        return np.array(times).reshape(-1, 2)


@frozen
class TalkerPair:
    """A speaker of the reference and their counterpart in the hypothesis, in one recording; None for no counterpart."""

    recording: str
    reference: str | None
    hypothesis: str | None


@frozen
class PairedTalkers:
    """A reference and a hypothesis in which each speaker (with ORC, each stream) is one text.

    - aligned: the words of each row side by side.
    - pairs: the paired speakers; () for ORC, since a stream contains segments of several speakers.
    """

    references: Transcripts
    hypotheses: Transcripts
    aligned: Mapping[int, tuple[AlignedWord, ...]]
    pairs: tuple[TalkerPair, ...]


def pair_talkers(
    reference: Segments, hypothesis: Segments, word_rules: WordRules, by: SpeakerPairing, collar_s: float = COLLAR_S
) -> PairedTalkers:
    """Pairs the speakers of each recording so that there are as few errors as possible.

    Raises InputError for recordings that the reference does not have, and if the computation would be too large.

    reference, hypothesis: segments sorted by their begins.
    CP: a row has the words of one speaker, who is paired with at most one other. TCP: in addition, words may only be
    paired if the middle of the hypothesis's word lies within collar_s of the reference's word. ORC: a row is a stream
    of the hypothesis. Each reference segment goes to the stream with the fewest errors, regardless of its speaker.
    """
    reference_recordings = _words_by_recording(reference, word_rules)
    if not reference_recordings:
        problem = "every segment of the reference is marked to be ignored"
        raise InputError(problem, place=Place(reference.file), remedy="Choose a reference with segments to score")
    hypothesis_recordings = _words_by_recording(hypothesis, word_rules)
    if unknown_recordings := [name for name in hypothesis_recordings if name not in reference_recordings]:
        first = next(segment for segment in hypothesis.segments if segment.file.lower() == unknown_recordings[0])
        problem = f"the reference contains nothing for recording {first.file!r}"
        raise InputError(
            problem,
            place=Place(hypothesis.file, first.line),
            remedy="Spell the recording as in the reference, or remove its segments",
        )
    reference_names = {speaker.speaker for speakers in reference_recordings.values() for speaker in speakers}
    reference_rows: list[tuple[str, str, list[str], int]] = []
    hypotheses: list[list[str] | None] = []
    aligned: dict[int, tuple[AlignedWord, ...]] = {}
    pairs: list[TalkerPair] = []
    for name, speakers in reference_recordings.items():
        other_speakers = hypothesis_recordings.get(name, [])
        recording = speakers[0].segments[0].file
        if by is SpeakerPairing.ORC:
            paired = _assign_streams(speakers, other_speakers, Place(reference.file, speakers[0].segments[0].line))
        else:
            paired, counterparts = _pair_speakers(
                speakers, other_speakers, reference_names, collar_s if by is SpeakerPairing.TCP else None
            )
            pairs += [TalkerPair(recording, *sides) for sides in counterparts]
        for speaker, reference_words, hypothesis_words, path in paired:
            aligned[len(reference_rows)] = side_by_side(reference_words, hypothesis_words or [], path)
            reference_rows.append((f"{recording}-{speaker}", speaker, reference_words, speakers[0].segments[0].line))
            hypotheses.append(hypothesis_words)
    ids, names, texts, lines = zip(*reference_rows, strict=True)
    rows = [row for row, words in enumerate(hypotheses) if words is not None]
    return PairedTalkers(
        Transcripts(reference.file, ids, tuple(map(" ".join, texts)), lines, names, reference.encoding),
        Transcripts(
            hypothesis.file,
            tuple(ids[row] for row in rows),
            tuple(" ".join(hypotheses[row] or ()) for row in rows),
            (0,) * len(rows),
            tuple(names[row] for row in rows),
            hypothesis.encoding,
        ),
        aligned,
        tuple(pairs),
    )


def _words_by_recording(segmentation: Segments, word_rules: WordRules) -> dict[str, list[_SpeakerWords]]:
    """The speakers of each recording, by its name in lower case, in the order of their first segments."""
    rows = [segment for segment in segmentation.segments if not segment.ignored]
    texts = word_rules.texts(
        Transcripts(
            segmentation.file,
            tuple(map(str, range(len(rows)))),
            tuple(segment.text for segment in rows),
            tuple(segment.line for segment in rows),
            ("",) * len(rows),
        )
    )
    recordings: dict[str, dict[str, _SpeakerWords]] = {}
    for segment, text in zip(rows, texts, strict=True):
        speaker_words = recordings.setdefault(segment.file.lower(), {}).setdefault(
            segment.speaker, _SpeakerWords(segment.speaker)
        )
        speaker_words.utterances.append(tuple(text.split()))
        speaker_words.segments.append(segment)
    return {name: list(speakers.values()) for name, speakers in recordings.items()}


_Row = tuple[str, list[str], list[str] | None, str]
"""Name of a speaker, their words, the words of their counterpart (None without one), and the path between them."""


def _pair_speakers(
    speakers: Sequence[_SpeakerWords],
    other_speakers: Sequence[_SpeakerWords],
    reference_names: Set[str],
    collar_s: float | None,
) -> tuple[list[_Row], list[tuple[str | None, str | None]]]:
    """Pairs speakers so that all errors together are fewest. Returns a row for each speaker of the reference, then for
    those of the hypothesis who are left over. Then the names of the two in each row, None for no counterpart.

    reference_names: all speakers of the reference. Somebody else in the hypothesis must not count as one of them.
    """
    from scipy.optimize import linear_sum_assignment  # here, since it takes longer to import than files to score

    nobody = _SpeakerWords("")
    size = max(len(speakers), len(other_speakers))
    row_speakers = [*speakers, *[nobody] * (size - len(speakers))]
    column_speakers = [*other_speakers, *[nobody] * (size - len(other_speakers))]
    codes = _code_words([speaker.words for speaker in (*row_speakers, *column_speakers)])
    text_pairs = [
        [
            _TextPair(codes[row], codes[size + column], _allowed_pairs(speaker, other, collar_s))
            for column, other in enumerate(column_speakers)
        ]
        for row, speaker in enumerate(row_speakers)
    ]
    columns = linear_sum_assignment([[pair.errors() for pair in row] for row in text_pairs])[1].tolist()
    rows: list[_Row] = []
    counterparts: list[tuple[str | None, str | None]] = []
    for speaker, column, row_pairs in zip(row_speakers, columns, text_pairs, strict=True):
        other = column_speakers[column]
        name = speaker.speaker
        if speaker is nobody:
            name = other.speaker if other.speaker not in reference_names else f"{other.speaker} (hypothesis)"
        rows.append((name, speaker.words, None if other is nobody else other.words, row_pairs[column].path()))
        counterparts.append((speaker.speaker or None, other.speaker or None))
    return rows, counterparts


def _allowed_pairs(speaker: _SpeakerWords, other: _SpeakerWords, collar_s: float | None) -> NDArray[np.bool_] | None:
    """Which words may be paired: True or False, shape (words of the speaker, words of the other). None if all may."""
    if collar_s is None:
        return None
    spans, middle = speaker.times(), other.times().mean(axis=1)
    low, high = middle - collar_s + TOUCHING_S, middle + collar_s - TOUCHING_S
    allowed: NDArray[np.bool_] = (spans[:, :1] < high[None]) & (spans[:, 1:] > low[None])
    return allowed


def _code_words(texts: Iterable[Sequence[str]]) -> list[NDArray[np.int64]]:
    """Texts as integers, equal for equal words."""
    codes: dict[str, int] = {}
    return [np.array([codes.setdefault(word, len(codes)) for word in words], np.int64) for words in texts]


@frozen
class _TextPair:
    """Two texts to be aligned, as integers. allowed: which words may be paired, see `_allowed_pairs`."""

    reference: NDArray[np.int64]
    hypothesis: NDArray[np.int64]
    allowed: NDArray[np.bool_] | None

    def errors(self) -> int:
        """The least number of errors."""
        row = self._first_costs()
        for number in range(len(self.reference)):
            row = self._next_costs(row, number)[0]
        return int(row[-1])

    def path(self) -> str:
        """The path of an alignment with the least number of errors, a letter of `Edit` for each step."""
        steps: list[bytes] = []
        row = self._first_costs()
        for number, word in enumerate(self.reference):
            before = row
            row, pairing = self._next_costs(before, number)
            deletion, insertion = before[1:] + 1, row[:-1] + 1
            gap = np.where(deletion < insertion, b"D", b"I")
            pair = np.where(self.hypothesis == word, b"C", b"S")
            steps.append(np.where(pairing < np.minimum(deletion, insertion), pair, gap).tobytes())
        return walk_back(len(self.reference), len(self.hypothesis), lambda i, j: chr(steps[i - 1][j - 1]))

    def _first_costs(self) -> NDArray[np.int64]:
        return np.arange(len(self.hypothesis) + 1)

    def _next_costs(self, row: NDArray[np.int64], number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The costs after word `number` of the reference, from those in `row` before it. Then the costs if that word is
        paired with the word of each column."""
        pairing = row[:-1] + (self.hypothesis != self.reference[number])
        if self.allowed is not None:
            pairing = np.where(self.allowed[number], pairing, _FORBIDDEN_COST)
        row = row + 1
        row[1:] = np.minimum(row[1:], pairing)
        columns = np.arange(len(row))
        return np.minimum.accumulate(row - columns) + columns, pairing


def _assign_streams(
    speakers: Sequence[_SpeakerWords], other_speakers: Sequence[_SpeakerWords], place: Place
) -> list[_Row]:
    """A row for each stream of the hypothesis, with the reference segments that fit it best."""
    utterances = sorted(
        (
            (words, segment)
            for speaker in speakers
            for words, segment in zip(speaker.utterances, speaker.segments, strict=True)
            if words
        ),
        key=lambda utterance: (utterance[1].start_s, utterance[1].line),
    )
    streams = other_speakers or [_SpeakerWords("")]
    codes = _code_words([words for words, _ in utterances] + [speaker.words for speaker in streams])
    stream_numbers = _best_streams(codes[: len(utterances)], codes[len(utterances) :], place)
    rows: list[_Row] = []
    for number, stream in enumerate(streams):
        reference_words = [
            word
            for (words, _), stream_number in zip(utterances, stream_numbers, strict=True)
            if stream_number == number
            for word in words
        ]
        hypothesis_words = stream.words
        reference_codes, hypothesis_codes = _code_words([reference_words, hypothesis_words])
        path = _TextPair(reference_codes, hypothesis_codes, None).path()
        rows.append((stream.speaker, reference_words, hypothesis_words if other_speakers else None, path))
    return rows


def _best_streams(
    utterances: Sequence[NDArray[np.int64]], streams: Sequence[NDArray[np.int64]], place: Place
) -> list[int]:
    """The index of the stream for each utterance, so that there are as few errors as possible.

    costs[i, j, …]: the fewest errors of the utterances so far against the first i words of one stream, j of the next, …
    """
    shape = tuple(len(stream) + 1 for stream in streams)
    states, steps = prod(shape), prod(shape) * len(streams) * sum(map(len, utterances))
    if states * len(utterances) > MAX_STATES or steps > MAX_STEPS:
        sizes = ", ".join(str(len(stream)) for stream in streams)
        problem = (
            f"ORC-WER would need too much memory or time for streams of {sizes} words and {len(utterances)} utterances"
        )
        raise InputError(
            problem, place=place, remedy="Use --speakers cp or tcp, or split the recording into shorter ones"
        )
    costs = sum(np.ogrid[tuple(slice(size) for size in shape)], np.zeros(shape, np.int64))
    choices: list[tuple[NDArray[np.int8], NDArray[np.int32]]] = []
    for words in utterances:
        best: NDArray[np.int64] | None = None
        best_streams, begins = np.zeros(shape, np.int8), np.zeros(shape, np.int32)
        for axis, stream in enumerate(streams):
            stream_costs, begin = _costs_through(costs, words, stream, axis)
            better = np.ones(shape, bool) if best is None else stream_costs < best
            best = stream_costs if best is None else np.minimum(stream_costs, best)
            best_streams[better], begins[better] = axis, begin[better]
        assert best is not None
        costs = best
        choices.append((best_streams, begins))
    ends = [size - 1 for size in shape]
    stream_numbers: list[int] = []
    for best_streams, begins in reversed(choices):
        state = tuple(ends)
        stream_numbers.append(int(best_streams[state]))
        ends[stream_numbers[-1]] = int(begins[state])
    return stream_numbers[::-1]


def _costs_through(
    costs: NDArray[np.int64], words: NDArray[np.int64], stream: NDArray[np.int64], axis: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The costs after an utterance that goes to one stream. For each of them, also the place in the stream at which the
    utterance begins. axis: the axis of that stream in `costs`."""
    places = np.arange(len(stream) + 1)
    scale = len(places)
    # Cost and start in one number, so that the least of them carries its start along.
    row = np.moveaxis(costs, axis, -1) * scale + places
    for word in words:
        pairing = row[..., :-1] + scale * (stream != word)
        row = row + scale
        row[..., 1:] = np.minimum(row[..., 1:], pairing)
        row = np.minimum.accumulate(row - scale * places, axis=-1) + scale * places
    return np.moveaxis(row // scale, -1, axis), np.moveaxis(row % scale, -1, axis)
