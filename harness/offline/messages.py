"""Messages between a run and its worker processes: kind (one letter), length (u32, little endian), then the bytes.

    run ─► worker   EVALUATION; then FILES in batches, and END_OF_SEQUENCE where a sequence ends
    worker ─► run   READY or REFUSED; then OUTCOMES, one per file in order, with USED and LINE in between

The run closes the pipe when there are no more files. The worker then exits.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Self

from harness.base.child_process import descendants, descendants_cpu_s
from harness.base.processor import HostFacts
from harness.model.frozen import frozen
from harness.model.offline import FileOutcome, ListedFile, ListKind, RejectReason
from harness.offline.journal_lines import COMPACT_JSON, WorkerUse, has_check, label_rows, labels_of, outcome_line

_HEAD = struct.Struct("<cI")
MAX_MESSAGE_BYTES = 1 << 28
"""Most bytes of a message. If a header states more, the stream is out of step."""
BEGUN = struct.Struct("<Q")
"""Format of the memory shared by worker and run: the number of files that the worker has begun."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Environment variables that set the number of threads of numerical libraries. Each worker uses one."""


class WorkerFrame(Enum):
    """Kinds of messages.

    To a worker: EVALUATION (once, first), FILES, END_OF_SEQUENCE. From a worker: READY (the facts of its engine),
    REFUSED (an error that ends it), OUTCOMES, USED (its WorkerUse), LINE (a line for people).
    """

    EVALUATION = b"E"
    FILES = b"F"
    END_OF_SEQUENCE = b"S"
    READY = b"R"
    REFUSED = b"X"
    OUTCOMES = b"O"
    USED = b"U"
    LINE = b"T"


def resource_use(cached_s: float, cached_files: int, host: HostFacts) -> WorkerUse:
    """What this worker has used: peak memory of its process and of the programs that run for it, and the processor time
    of those programs. cached_s, cached_files, host: see WorkerUse. Source: proc(5)."""
    peak_kb, own_pid = 0, os.getpid()
    for pid in (own_pid, *descendants(own_pid)):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            peak_kb += int(status.partition("VmHWM:")[2].split()[0])
        except (OSError, IndexError):  # the process has just ended
            continue
    return WorkerUse(round(peak_kb / 1024, 1), round(descendants_cpu_s(), 3), round(cached_s, 3), cached_files, host)


def encode_frame(kind: WorkerFrame, content: bytes = b"") -> bytes:
    return _HEAD.pack(kind.value, len(content)) + content


class WorkerFrames:
    """Splits a stream of bytes into frames (kind and content). Raises ValueError for invalid frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[WorkerFrame, bytes]]:
        """Adds bytes of any number. Yields each frame that is now complete."""
        self._rest += piece
        start = 0
        while len(self._rest) - start >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest, start)
            if length > MAX_MESSAGE_BYTES:
                raise ValueError(f"a frame of {length} bytes")
            end = start + _HEAD.size + length
            if len(self._rest) < end:
                break
            frame = WorkerFrame(kind), bytes(self._rest[start + _HEAD.size : end])
            start = end
            yield frame
        del self._rest[:start]


@frozen
class FileAnswer:
    """The line for the journal of one file's outcome. The other fields repeat what the run needs from it.

    - seconds: length of the audio.
    - rejected: None if the file is not rejected.
    - error: whether the engine reported one.
    """

    line: bytes
    seconds: float
    rejected: RejectReason | None
    error: bool

    @classmethod
    def of(cls, outcome: FileOutcome, name: str) -> Self:
        return cls(outcome_line(outcome, name), outcome.seconds, outcome.rejected, bool(outcome.error))


def encode_answers(answers: Sequence[FileAnswer]) -> bytes:
    """The content of an OUTCOMES message: the fields of all answers as JSON on the first line, then the lines for the
    journal."""
    fields = [[answer.seconds, answer.rejected, answer.error] for answer in answers]
    return b"\n".join([json.dumps(fields).encode("ascii"), b"".join(answer.line for answer in answers)])


def decode_answers(content: bytes) -> list[FileAnswer]:
    """The inverse of `encode_answers`. Raises ValueError for anything else, also for a line with a wrong CRC."""
    head, *lines = content.splitlines(keepends=True)
    if not all(map(has_check, lines)):
        raise ValueError("a line without its CRC")
    try:
        return [
            FileAnswer(line, float(seconds), None if rejected is None else RejectReason(rejected), bool(error))
            for line, (seconds, rejected, error) in zip(lines, json.loads(head), strict=True)
        ]
    except TypeError as error:
        raise ValueError(f"no answers: {error}") from error


def encode_files(files: Iterable[ListedFile]) -> bytes:
    """The content of a FILES message: the fields of each file as JSON, except its size."""
    return COMPACT_JSON.encode(
        [
            [
                file.kind,
                file.number,
                file.listed,
                file.path,
                file.line,
                file.reference,
                file.rejected,
                label_rows(file.labels),
            ]
            for file in files
        ]
    ).encode("ascii")


def decode_files(content: bytes) -> list[ListedFile]:
    return [
        ListedFile(
            kind=ListKind(kind),
            number=number,
            listed=name,
            path=path,
            line=line,
            reference=reference,
            rejected=None if reason is None else RejectReason(reason),
            labels=labels_of(labels),
        )
        for kind, number, name, path, line, reference, reason, labels in json.loads(content)
    ]
