"""The lines of a journal: its header, outcomes and marks. One JSON object per line, ASCII.

The last key is `crc`: the CRC-32 (zlib, 8 hexadecimal digits) of the line up to the comma before it. Journals of
earlier versions have none.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, Self

from harness.base.plain_json import from_plain, to_plain
from harness.base.processor import HostFacts
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.offline import (
    CountingRules,
    EngineFacts,
    Evaluation,
    FileOutcome,
    LabelledPhrase,
    ListKind,
    OfflineSpot,
    RejectReason,
    Said,
)


@frozen
class Shard:
    """Shard `number` (from 1) of `of` shards of the lists. cut: a hash that is equal if the lists were split in the
    same way; "" if not known yet."""

    number: int
    of: int
    cut: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"shard {self.number} of {self.of} does not exist")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@frozen
class ListFacts:
    """A list that is played: its name as given, the sha256 of its bytes, its kind, and its number of files."""

    name: str
    sha256: str
    kind: ListKind
    files: int


@frozen
class Talkers:
    """The talker of each file, or the value of another column that clusters them. Labels in long recordings have it
    themselves, as a trait with the name of the column.

    - column: name of the column in the lists; "" if none is used.
    - names: the different values of the column.
    - files: for each kind of list, the index in `names` of the value for each file.
    """

    column: str = ""
    names: tuple[str, ...] = ()
    files: tuple[tuple[ListKind, tuple[int, ...]], ...] = ()

    @classmethod
    def of_column(cls, column: str, labels: Mapping[ListKind, Sequence[str]]) -> Self:
        """The talkers of a column. labels: by kind of list, the value of the column for each file, in list order."""
        indices = {name: index for index, name in enumerate(dict.fromkeys(chain(*labels.values())))}
        files = [(kind, tuple(indices[name] for name in names)) for kind, names in labels.items()]
        return cls(column, tuple(indices), tuple(files))

    def labels(self) -> dict[ListKind, list[str]]:
        """By kind of list, the value of the column for each file: the inverse of `of_column`."""
        return {kind: [self.names[index] for index in indices] for kind, indices in self.files}


@frozen
class JournalHeader:
    """The first line of a journal.

    - evaluation, counting: what decides outcomes, and what decides counts. facts: of the engine that played.
    - lists: the lists that are played, whole even if only a shard of them is.
    - planned: number of files to be played, of this shard if there is one.
    - started_s: start of the first sitting, in seconds of Unix time.
    - versions: (name, version) of programs; ours is `voice-harness`.
    - command_line: the command of the first sitting.
    - shard: None if whole lists are played.
    - bases: folders in which relative paths were found.
    - more: (name, value) of further lines `INFO x-NAME VALUE` in the log.
    - talkers: empty in journals of earlier versions.
    """

    evaluation: Evaluation
    counting: CountingRules
    facts: EngineFacts
    lists: tuple[ListFacts, ...]
    planned: int
    started_s: float
    command_line: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    shard: Shard | None = None
    bases: tuple[str, ...] = ()
    more: tuple[tuple[str, str], ...] = ()
    talkers: Talkers = Talkers()


def differences(
    header: JournalHeader,
    other: JournalHeader,
    display_names: tuple[str, str] = ("then", "now"),
    *,
    are_shards: bool = False,
) -> list[str]:
    """What differs in the settings that decide outcomes, counts or intervals, in words; empty for the same evaluation.

    - display_names: what the texts call the two journals.
    - are_shards: whether they should be different shards of the same split.
    """
    changes: list[str] = []
    first_name, other_name = display_names

    def compare(subject: str, first: object, second: object) -> None:
        if first != second:
            first_text = f"{_setting_text(first)} {first_name}"
            other_text = f"{_setting_text(second)} {other_name}"
            changes.append(f"{subject} {first_text}, {other_text}")

    for name in ("resample", "continuous", "vad", "hashes"):
        compare(f"{name} is", getattr(header.evaluation, name), getattr(other.evaluation, name))
    compare("the task is", header.evaluation.task.name, other.evaluation.task.name)
    compare("settings are", header.evaluation.task.settings, other.evaluation.task.settings)
    for name in ("count_in_vocabulary", "normalise", "words", "lead_in_ms", "lead_in_ref", "tolerance_s"):
        compare(f"{name.replace('_', ' ')} is", getattr(header.counting, name), getattr(other.counting, name))
    compare("the talker column is", header.talkers.column or "none", other.talkers.column or "none")
    # A manifest's sha256 is that of its paths, so another version of it may name other talkers for the same files.
    same_files = header.lists == other.lists and header.talkers.column == other.talkers.column
    if same_files and header.talkers != other.talkers:
        changes.append(f"the column {header.talkers.column} has other values for some files")
    compare("the tail is", f"{exact(header.evaluation.tail_s)} s", f"{exact(other.evaluation.tail_s)} s")
    if header.evaluation.conditions != other.evaluation.conditions:
        compare("conditions are", *_condition_texts(header.evaluation, other.evaluation))
    compare("the engine's fingerprint is", header.facts.fingerprint[:12], other.facts.fingerprint[:12])
    compare("the engine's version is", header.facts.version, other.facts.version)
    if header.facts != other.facts and not changes:
        changes.append("the engine's other facts differ")
    compare(
        "lists have sha256",
        [list_facts.sha256[:12] for list_facts in header.lists],
        [list_facts.sha256[:12] for list_facts in other.lists],
    )
    compare(
        "the numbers of files in the lists are",
        [list_facts.files for list_facts in header.lists],
        [list_facts.files for list_facts in other.lists],
    )
    compare("versions are", header.versions, other.versions)
    if are_shards:
        compare("the number of shards is", header.shard.of if header.shard else 1, other.shard.of if other.shard else 1)
    else:
        compare("the shard is", str(header.shard or "none"), str(other.shard or "none"))
    if header.shard and other.shard and header.shard.cut != other.shard.cut:
        changes.append("file sizes differed, so the lists were split differently")
    return changes


def _condition_texts(first: Evaluation, other: Evaluation) -> tuple[str, str]:
    """The conditions of both in words that differ."""
    first_labels = [condition.label() for condition in first.conditions]
    other_labels = [condition.label() for condition in other.conditions]
    other_text = _differing_labels(other_labels, first_labels)
    if first_labels == other_labels:
        return "different ones with the same names", other_text
    return _differing_labels(first_labels, other_labels), other_text


def _differing_labels(labels: list[str], other_labels: list[str]) -> str:
    """At most three of the labels, in words. Those that are not in other_labels come first."""
    sorted_labels = sorted(labels, key=other_labels.__contains__)
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return "; ".join(sorted_labels[:3]) + more or "none"


def _setting_text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{name}={setting}" for name, setting in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


FORMAT = 1
KINDS = (ListKind.INV, ListKind.REFERENCED, ListKind.OOV, ListKind.LABELLED)
"""The kinds of lists, in the order of their lines in a log."""
COMPACT_JSON = json.JSONEncoder(separators=(",", ":"))
"""One encoder for all lines: `json.dumps` with options makes a new one per call."""
_CHECK = b',"crc":"%08x"}\n'
_CHECK_BYTES = len(_CHECK % 0)
_CHECK_KEY = _CHECK[: _CHECK.index(b"%")]
_OUTCOME = re.compile(rb'\{"k":"(%s)","n":(\d{1,12}),' % b"|".join(kind.value.encode() for kind in KINDS))


class JournalMark(StrEnum):
    """Lines that are not outcomes.

    BEGUN: a sitting begins. SO_FAR: written every 10 s, with the duration up to now. LOST: a worker ended or hung and
    was replaced; `why` says how. COMPLETE: all files have an outcome. PARTIAL: the sitting ended earlier.
    """

    BEGUN = "begun"
    SO_FAR = "so far"
    LOST = "lost"
    COMPLETE = "complete"
    PARTIAL = "partial"


@frozen
class WorkerUse:
    """Resources that a worker has used so far.

    - memory_mb: peak memory, including the programs that it started.
    - programs_cpu_s: processor time of those programs, which `FileOutcome.cpu_s` does not include.
    - cached_s, cached_files: seconds and number of files with stored scores. The engine did not hear them.
    - host: (name, value) facts on each machine that played files; () in journals of earlier versions.
    """

    memory_mb: float = 0.0
    programs_cpu_s: float = 0.0
    cached_s: float = 0.0
    cached_files: int = 0
    host: HostFacts = ()

    @classmethod
    def of_all(cls, used: Iterable[Self]) -> Self:
        """The use of several workers together: the largest peak, the sums of times, and each host once."""
        uses = list(used)
        peak_mb = max((use.memory_mb for use in uses), default=0.0)
        host = tuple(dict.fromkeys(fact for use in uses for fact in use.host))
        return cls(
            peak_mb,
            sum(use.programs_cpu_s for use in uses),
            sum(use.cached_s for use in uses),
            sum(use.cached_files for use in uses),
            host,
        )


@frozen
class MarkLine:
    """A mark.

    - at_s: Unix time.
    - duration_s: duration of the sitting so far.
    - why: the reason, for LOST and PARTIAL.
    - used: resources that the sitting used; only in its last mark.
    """

    mark: JournalMark
    at_s: float
    duration_s: float = 0.0
    why: str = ""
    used: WorkerUse = WorkerUse()


@frozen
class JournalledOutcome:
    """An outcome, and the name of the file in its list. The log uses that name."""

    outcome: FileOutcome
    listed: str


def _line(document: Mapping[str, Any]) -> bytes:
    """A document as a line of a journal, with its CRC."""
    inner = COMPACT_JSON.encode(document)[:-1].encode("ascii")
    return inner + _CHECK % zlib.crc32(inner)


def has_check(line: bytes) -> bool:
    """Whether the line has a CRC. Raises ValueError if it is wrong: the line has changed."""
    if not line.startswith(_CHECK_KEY, -_CHECK_BYTES):
        return False
    if not line.endswith(_CHECK % zlib.crc32(line[:-_CHECK_BYTES])):
        raise ValueError("its CRC does not match")
    return True


def header_line(header: JournalHeader) -> bytes:
    return _line({"journal": FORMAT, **to_plain(header, sparse=True)})


def header_of(line: bytes) -> JournalHeader:
    """The header in a line. Raises ValueError if it is not a journal's header, or has a later format."""
    try:
        document = json.loads(line)
        format_number = document["journal"]
        if format_number != FORMAT:
            raise ValueError(f"its format is {format_number!r}; this version reads {FORMAT}")
        return from_plain(JournalHeader, document)
    except (TypeError, KeyError) as error:
        raise ValueError(f"its first line is not a header: {error}") from error


def mark_line(mark: MarkLine) -> bytes:
    return _line({"mark": mark.mark.value, **to_plain(mark, sparse=True)})


def mark_of(line: bytes) -> MarkLine:
    """The mark in a line. Raises ValueError if it is not a mark."""
    try:
        return from_plain(MarkLine, json.loads(line))
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a mark: {error}") from error


def outcome_line(outcome: FileOutcome, file_name: str) -> bytes:
    """The line of an outcome. Empty and zero values are left out."""
    document: dict[str, Any] = {"k": outcome.kind.value, "n": outcome.number, "file": file_name}
    for name in ("samples", "rate_hz", "engine_rate_hz", "reference", "detail", "error", "sha256"):
        value = getattr(outcome, name)
        if value:
            document[name] = value
    if outcome.cpu_s:
        document["cpu_s"] = round(outcome.cpu_s, 6)
    if outcome.spots:
        document["spots"] = [[spot.phrase, spot.start, spot.end, spot.score] for spot in outcome.spots]
    if outcome.said is not None:
        document["said"] = [outcome.said.text, outcome.said.start, outcome.said.end, outcome.said.score]
    if outcome.tail_ms is not None:
        document["tail_ms"] = outcome.tail_ms
    if outcome.silent_labels:
        document["silent_labels"] = outcome.silent_labels
    if outcome.labels:
        document["labels"] = label_rows(outcome.labels)
    if outcome.rejected is not None:
        document["rejected"] = outcome.rejected.value
    return _line(document)


def label_rows(labels: Iterable[LabelledPhrase]) -> list[list[Any]]:
    """Labels as JSON: start and end in seconds, the phrase, and each trait as name and value."""
    return [[label.start_s, label.end_s, label.phrase, *(list(trait) for trait in label.traits)] for label in labels]


def labels_of(rows: Iterable[Sequence[Any]]) -> tuple[LabelledPhrase, ...]:
    """The inverse of `label_rows`. Raises TypeError or ValueError for anything but labels."""
    return tuple(
        LabelledPhrase(start, end, phrase, tuple((name, value) for name, value in traits))
        for start, end, phrase, *traits in rows
    )


def identity_of(line: bytes) -> tuple[int, int] | None:
    """Kind (its index in KINDS) and number of the file of an outcome, read from the beginning of its line. None for a
    line that is not an outcome."""
    match = _OUTCOME.match(line)
    if match is None or not line.endswith(b"}\n"):
        return None
    return KINDS.index(ListKind(match[1].decode())), int(match[2])


def outcome_of(line: bytes) -> JournalledOutcome:
    """The outcome in a line. Raises ValueError if it is not an outcome, or its CRC is wrong."""
    has_check(line)
    try:
        document = json.loads(line)
        transcript, rejected = document.get("said"), document.get("rejected")
        return JournalledOutcome(
            FileOutcome(
                kind=ListKind(document["k"]),
                number=document["n"],
                samples=document.get("samples", 0),
                rate_hz=document.get("rate_hz", 0),
                engine_rate_hz=document.get("engine_rate_hz", 0),
                spots=tuple(OfflineSpot(*spot) for spot in document.get("spots", ())),
                said=None if transcript is None else Said(*transcript),
                reference=document.get("reference", ""),
                rejected=None if rejected is None else RejectReason(rejected),
                detail=document.get("detail", ""),
                error=document.get("error", ""),
                cpu_s=document.get("cpu_s", 0.0),
                sha256=document.get("sha256", ""),
                labels=labels_of(document.get("labels", ())),
                tail_ms=document.get("tail_ms"),
                silent_labels=tuple(document.get("silent_labels", ())),
            ),
            document["file"],
        )
    except (TypeError, KeyError) as error:
        raise ValueError(f"not an outcome: {error}") from error
