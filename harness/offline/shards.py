"""Shards for several machines: `--shard i/n`, each with about the same hours.

The same lists and files give the same shards on every machine. The longest file comes first; each file goes to the
shard with the fewest hours so far. `cut` in the journal identifies the split, so that shards of different splits are
not merged.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.base.lazy_sequence import LazySequence
from harness.model.errors import InputError
from harness.model.offline import ListedFile
from harness.offline.journal import JournalFile, outcomes_in_order
from harness.offline.journal_lines import (
    JournalHeader,
    JournalMark,
    MarkLine,
    Shard,
    WorkerUse,
    differences,
    header_line,
    mark_line,
    outcome_line,
)
from harness.offline.run import MIN_BATCH_S
from harness.sound.sound_stores import rough_seconds


def files_of_shard(files: Sequence[ListedFile], shard: Shard) -> tuple[Sequence[ListedFile], Shard]:
    """The files of one shard in list order, and the shard with its `cut`."""
    shards = _shard_indices(files, shard.of)
    positions = np.flatnonzero(shards == shard.number - 1)
    cut = hashlib.sha256(shards.astype("<u4").tobytes()).hexdigest()[:16]
    return LazySequence(len(positions), lambda index: files[int(positions[index])]), replace(shard, cut=cut)


def _shard_indices(files: Sequence[ListedFile], shard_count: int) -> npt.NDArray[np.uint32]:
    """For each file, the index of its shard (from 0)."""
    lengths = np.fromiter(
        (max(MIN_BATCH_S, rough_seconds(file.path, file.size)) for file in files), np.float64, len(files)
    )
    shards = np.zeros(len(files), np.uint32)
    # (seconds, files, shard): if lengths are unknown, the shard with the fewest files gets the next one.
    loads = [(0.0, 0, shard) for shard in range(shard_count)]
    for position in np.argsort(-lengths, kind="stable"):
        seconds, count, shard = loads[0]
        shards[position] = shard
        heapq.heapreplace(loads, (seconds + float(lengths[position]), count + 1, shard))
    return shards


MIN_TIMED_S = 0.001
"""With less audio of known duration than this, no speed can be computed: it may be a rounding error."""


def demand_one_evaluation(journals: Sequence[JournalFile], *, partial: bool) -> None:
    """Raises InputError unless these are all shards of one evaluation, each once and complete. partial: shards may be
    missing or incomplete, but none may occur twice."""
    first = journals[0]
    for other in journals[1:]:
        display_names = (f"in {first.path.name}", f"in {other.path.name}")
        differs = differences(first.header, other.header, display_names, are_shards=True)
        if differs:
            raise InputError(
                f"{first.path} and {other.path} belong to different evaluations: {'; '.join(differs)}",
                remedy="Merge only shards with the same lists, task, settings and version",
            )
    path_by_number: dict[int, Path] = {}
    for journal in journals:
        shard = journal.header.shard
        if shard is None:
            raise InputError(
                f"{journal.path} is not a shard: it covers whole lists", remedy="Merge logs written with --shard I/N"
            )
        if shard.number in path_by_number:
            raise InputError(f"{path_by_number[shard.number]} and {journal.path} are both shard {shard}")
        path_by_number[shard.number] = journal.path
    if partial:
        return
    shard_count = first.header.shard.of if first.header.shard else 1
    missing = [f"{number}/{shard_count}" for number in range(1, shard_count + 1) if number not in path_by_number]
    if missing:
        raise InputError(
            f"missing: shard {', '.join(missing)}", remedy="Add the missing shards, or merge the others with --partial"
        )
    for journal in journals:
        if not journal.complete:
            raise InputError(
                f"{journal.path} is partial: {len(journal)} of {journal.header.planned} files",
                remedy="Finish this shard with --resume, or merge what it has with --partial",
            )


def merged_header(journals: Sequence[JournalFile], command_line: Sequence[str]) -> JournalHeader:
    """The header of one journal for all shards. command_line: that of the merge."""
    first = journals[0].header
    return replace(
        first,
        shard=None,
        planned=sum(listing.files for listing in first.lists),
        started_s=min(journal.header.started_s for journal in journals),
        command_line=tuple(command_line),
        bases=tuple(dict.fromkeys(base for journal in journals for base in journal.header.bases)),
    )


def merged_lines(journals: Sequence[JournalFile], header: JournalHeader) -> Iterator[bytes]:
    """The lines of one journal for all shards, with outcomes in list order and the sum of the durations. Audio that a
    shard played after it last stored its duration counts as played at the speed of the rest."""
    yield header_line(header)
    yield mark_line(MarkLine(JournalMark.BEGUN, header.started_s))
    for journal in journals:
        yield from (mark_line(replace(mark, duration_s=0.0)) for mark in journal.marks if mark.mark is JournalMark.LOST)
    count = 0
    played_s = 0.0
    for entry in outcomes_in_order(journals):
        count += 1
        if entry.outcome.rejected is None:
            played_s += entry.outcome.seconds
        yield outcome_line(entry.outcome, entry.listed)
    ending = JournalMark.COMPLETE if count == header.planned else JournalMark.PARTIAL
    duration_s = sum(journal.duration_s for journal in journals)
    if untimed_s := sum(journal.untimed_s for journal in journals):
        timed_s = played_s - untimed_s
        duration_s = duration_s * played_s / timed_s if timed_s > MIN_TIMED_S else 0.0
    used = WorkerUse.of_all(journal.used for journal in journals)
    yield mark_line(MarkLine(ending, max(journal.ended_s for journal in journals), duration_s, used=used))
