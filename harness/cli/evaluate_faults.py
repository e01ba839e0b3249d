"""What of an evaluation's files went wrong, in words, and whether its exit status has to say so."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.cells import counted
from harness.model.offline import RejectReason
from harness.offline.figures.counts import Key, OfflineCounts

FAULTS = (
    RejectReason.UNREADABLE,
    RejectReason.REFERENCE,
    RejectReason.ERROR,
    RejectReason.CRASH,
    RejectReason.HANG,
)
"""Rejections for which something is to be mended; the others say what the files are."""


def has_faults(counts: OfflineCounts) -> bool:
    """Whether the engine or a file failed, or no file could be used at all."""
    return bool(
        counts.count(Key.ERROR)
        or any(counts.rejected.get(reason) for reason in FAULTS)
        or not (counts.inv_files or counts.oov_files)
    )


def fault_lines(counts: OfflineCounts, where: str, what: str = "file", *, resampling: bool) -> Iterator[str]:
    """What figures hide. where: what says more of an error ("the log says"); what: a file is called."""
    if counts.rejected_files:
        reasons = ", ".join(f"{count} {reason.value}" for reason, count in sorted(counts.rejected.items()))
        hint = " (--resample takes them)" if counts.rejected.get(RejectReason.RATE) and not resampling else ""
        yield f"{counted(counts.rejected_files, what)} rejected: {reasons}{hint}"
    if errors := counts.count(Key.ERROR):
        yield f"{counted(errors, 'error')}: {where} what went wrong"
