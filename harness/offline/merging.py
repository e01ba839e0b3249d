"""Parts of an evaluation put together: the journal that a run over all of the lists would have left, but for times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.model.errors import InputError
from harness.offline.journal_file import JournalFile, ordered
from harness.offline.journal_header import JournalHeader, differences
from harness.offline.journal_lines import Mark, MarkLine, header_line, mark_line, outcome_line

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
    yield mark_line(MarkLine(Mark.BEGUN, header.started_s))
    for journal in journals:
        yield from (mark_line(replace(mark, duration_s=0.0)) for mark in journal.marks if mark.mark is Mark.LOST)
    count, played_s = 0, 0.0
    for one in ordered(journals):
        count += 1
        played_s += one.outcome.seconds if one.outcome.rejected is None else 0.0
        yield outcome_line(one.outcome, one.listed)
    ending = Mark.COMPLETE if count == header.planned else Mark.PARTIAL
    duration_s = sum(journal.duration_s for journal in journals)
    if untimed_s := sum(journal.untimed_s for journal in journals):
        timed_s = played_s - untimed_s
        duration_s = duration_s * played_s / timed_s if timed_s > ROUNDED_S else 0.0
    yield mark_line(MarkLine(ending, max(journal.ended_s for journal in journals), duration_s))
