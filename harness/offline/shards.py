"""Parts of an evaluation for several machines: `--shard i/n`, each with about as many hours as the others.

The same lists and files give the same parts on every machine: the longest file first, each to the part that has the
least so far. Where sizes cannot be had cheaply (stores) each part gets as many files as the others. `cut` in the
journal says how it came out, so that parts of another cut are not put together.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.base.told_later import ToldLater
from harness.model.errors import InputError
from harness.model.offline import ListedFile
from harness.offline.journal import JournalFile, ordered
from harness.offline.journal_lines import (
    JournalHeader,
    JournalMark,
    MarkLine,
    Shard,
    differences,
    header_line,
    mark_line,
    outcome_line,
)
from harness.offline.run import LEAST_S
from harness.sound.sound_stores import rough_seconds


def part_of(files: Sequence[ListedFile], shard: Shard) -> tuple[Sequence[ListedFile], Shard]:
    """The files of one part, in list order; and which part it is, with its cut filled in."""
    parts = _parts(files, shard.of)
    places = np.flatnonzero(parts == shard.number - 1)
    cut = hashlib.sha256(parts.astype("<u4").tobytes()).hexdigest()[:16]
    return ToldLater(len(places), lambda at: files[int(places[at])]), replace(shard, cut=cut)


def _parts(files: Sequence[ListedFile], of: int) -> npt.NDArray[np.uint32]:
    """Which part each file goes to, from 0."""
    lengths = np.fromiter((max(LEAST_S, rough_seconds(one.path)) for one in files), np.float64, len(files))
    parts = np.zeros(len(files), np.uint32)
    # (hours, files, part): where lengths are not known, the part with the fewest files is next.
    loads = [(0.0, 0, part) for part in range(of)]
    for place in np.argsort(-lengths, kind="stable"):
        seconds, count, part = loads[0]
        parts[place] = part
        heapq.heapreplace(loads, (seconds + float(lengths[place]), count + 1, part))
    return parts


ROUNDED_S = 0.001


def demand_parts(journals: Sequence[JournalFile], *, partial: bool) -> None:
    """InputError unless these are all parts of one evaluation, each once and to its end.

    partial: parts may be missing, and may have been cut off; each may still be there but once.
    """
    first = journals[0]
    for other in journals[1:]:
        called = (f"in {first.path.name}", f"in {other.path.name}")
        differs = differences(first.header, other.header, called, parts=True)
        if differs:
            raise InputError(
                f"{first.path} and {other.path} are of different evaluations: {'; '.join(differs)}",
                remedy="Merge parts of the same lists, task, settings and version",
            )
    seen: dict[int, Path] = {}
    for journal in journals:
        shard = journal.header.shard
        if shard is None:
            raise InputError(
                f"{journal.path} is no part: it is of whole lists",
                remedy="Merge what was written with --shard i/n",
            )
        if shard.number in seen:
            raise InputError(f"{seen[shard.number]} and {journal.path} are both part {shard}")
        seen[shard.number] = journal.path
    if partial:
        return
    of = first.header.shard.of if first.header.shard else 1
    missing = [f"{number}/{of}" for number in range(1, of + 1) if number not in seen]
    if missing:
        raise InputError(
            f"missing: part {', '.join(missing)}", remedy="Add them, or merge what is there with --partial"
        )
    for journal in journals:
        if not journal.complete:
            raise InputError(
                f"{journal.path} is partial: {len(journal)} of {journal.header.planned} files",
                remedy="Finish it with --resume, or merge what is there with --partial",
            )


def merged_header(journals: Sequence[JournalFile], command_line: Sequence[str]) -> JournalHeader:
    """What the evaluation as a whole is about."""
    first = journals[0].header
    return replace(
        first,
        shard=None,
        planned=sum(one.files for one in first.lists),
        started_s=min(journal.header.started_s for journal in journals),
        command_line=tuple(command_line),
        bases=tuple(dict.fromkeys(base for journal in journals for base in journal.header.bases)),
    )


def merged_lines(journals: Sequence[JournalFile], header: JournalHeader) -> Iterator[bytes]:
    """The lines of the journal of all parts, outcomes in list order. Its duration is that of all parts together; parts
    that were killed before their time was noted are taken to have gone on as fast."""
    yield header_line(header)
    yield mark_line(MarkLine(JournalMark.BEGUN, header.started_s))
    for journal in journals:
        yield from (mark_line(replace(mark, duration_s=0.0)) for mark in journal.marks if mark.mark is JournalMark.LOST)
    count, played_s = 0, 0.0
    for one in ordered(journals):
        count += 1
        played_s += one.outcome.seconds if one.outcome.rejected is None else 0.0
        yield outcome_line(one.outcome, one.listed)
    ending = JournalMark.COMPLETE if count == header.planned else JournalMark.PARTIAL
    duration_s = sum(journal.duration_s for journal in journals)
    if untimed_s := sum(journal.untimed_s for journal in journals):
        timed_s = played_s - untimed_s
        duration_s = duration_s * played_s / timed_s if timed_s > ROUNDED_S else 0.0
    yield mark_line(MarkLine(ending, max(journal.ended_s for journal in journals), duration_s))
