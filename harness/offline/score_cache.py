"""Stored scores. With them, results at another operating point, refractory time or lead-in need no sound.

One file per entry, in a folder that processes and machines may share. Little-endian:

    "VHSCORES" | version u32 | bytes of the head u32 | head | scores of each track, f32 | CRC-32 of all before, u32

The head is JSON: fingerprint, sha256, samples, rate_hz, and for each track phrase, first_end, step, count of scores.

A damaged entry counts as a miss.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.base.whole_file import atomic_stream
from harness.model.errors import InputError
from harness.model.numbers import counted, fixed
from harness.model.offline import EngineFacts, ScoreTrack

MAGIC = b"VHSCORES"
VERSION = 1
ENDING = ".scores"
_PREAMBLE = struct.Struct("<8sII")
_CRC = struct.Struct("<I")
_HEX_DIGITS = frozenset("0123456789abcdef")


class ScoreCache:
    """Scores by engine fingerprint and sha256 of the file's bytes. Opens nothing before the first access.

    report_line: takes a line for people if an entry is damaged or cannot be written.
    """

    def __init__(self, folder: str | Path, report_line: Callable[[str], None]) -> None:
        self.folder = Path(folder)
        self._report_line = report_line
        self._storing_failed = False

    def get(self, fingerprint: str, file_sha256: str) -> tuple[ScoreTrack, ...] | None:
        """The scores of a file, one track per phrase; None if they must be computed."""
        path = self._path(fingerprint, file_sha256)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report_line(
                f"{path}: cached scores cannot be read ({error.strerror or error}) and are computed again"
            )
            return None
        try:
            return _decode(content, fingerprint, file_sha256)
        except ValueError as error:
            self._report_line(f"{path}: cached scores are invalid ({error}) and are computed again")
            return None

    def tracks(self, facts: EngineFacts, file_sha256: str) -> tuple[ScoreTrack, ...] | None:
        """As `get`, with the engine's present name of its phrase if it has only one. A setting or the name of a model
        file may have renamed it since the scores were stored."""
        tracks = self.get(facts.fingerprint, file_sha256)
        if tracks is not None and len(tracks) == len(facts.phrases) == 1:
            return (replace(tracks[0], phrase=facts.phrases[0]),)
        return tracks

    def length(self, fingerprint: str, file_sha256: str) -> int | None:
        """Length in samples of the sound of an entry, read from its head; None without an entry."""
        try:
            with self._path(fingerprint, file_sha256).open("rb") as file:
                magic, version, length = _PREAMBLE.unpack(file.read(_PREAMBLE.size))
                head = json.loads(file.read(length)) if (magic, version) == (MAGIC, VERSION) else {}
        except (OSError, ValueError, struct.error):
            return None  # reported by `get`
        samples = head.get("samples")
        return samples if isinstance(samples, int) else None

    def put(
        self, fingerprint: str, file_sha256: str, tracks: tuple[ScoreTrack, ...], samples: int, rate_hz: int
    ) -> bool:
        """Stores the scores of a file of `samples` samples at rate_hz. Returns False if that fails, which only makes
        later evaluations slower.

        Not for `--continuous`, where scores also depend on previous files.
        """
        path = self._path(fingerprint, file_sha256)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Not synced to disk: an entry that a power cut damages is reported and computed again.
            with atomic_stream(path, durable=False) as stream:
                for piece in _pieces(fingerprint, file_sha256, tracks, samples, rate_hz):
                    stream.write(piece)
        except OSError as error:
            if not self._storing_failed:  # report only the first failure
                self._storing_failed = True
                self._report_line(
                    f"scores cannot be stored in {self.folder} ({error.strerror or error}); continuing without a cache"
                )
            return False
        return True

    def size(self, fingerprint: str) -> str:
        """Number and size of the entries of an engine, such as `12 files, 3.4 MB`."""
        sizes = [path.stat().st_size for path in (self.folder / fingerprint).rglob(f"[!.]*{ENDING}")]
        return f"{counted(len(sizes), 'file')}, {fixed(sum(sizes) / 1e6, 1, 'MB')}"

    def _path(self, fingerprint: str, file_sha256: str) -> Path:
        for name, text in (("fingerprint", fingerprint), ("sha256", file_sha256)):
            if not text or not _HEX_DIGITS.issuperset(text):
                raise InputError(f"scores are kept by {name} in hexadecimal digits, not {text[:40]!r}")
        # 256 folders, since a folder of a million files is slow on many file servers.
        return self.folder / fingerprint / file_sha256[:2] / (file_sha256 + ENDING)


def _pieces(
    fingerprint: str, file_sha256: str, tracks: tuple[ScoreTrack, ...], samples: int, rate_hz: int
) -> Iterator[bytes]:
    """The bytes of an entry, in pieces; see the module."""
    head = json.dumps(
        {
            "fingerprint": fingerprint,
            "sha256": file_sha256,
            "samples": samples,
            "rate_hz": rate_hz,
            "tracks": [[track.phrase, int(track.first_end), int(track.step), len(track.scores)] for track in tracks],
        }
    ).encode()
    crc = 0
    sections = [_PREAMBLE.pack(MAGIC, VERSION, len(head)) + head]
    sections += [np.ascontiguousarray(track.scores, "<f4").tobytes() for track in tracks]
    for section in sections:
        crc = zlib.crc32(section, crc)
        yield section
    yield _CRC.pack(crc)


def _decode(content: bytes, fingerprint: str, file_sha256: str) -> tuple[ScoreTrack, ...]:
    """The tracks in an entry. Raises ValueError, with the reason, unless `_pieces` made the entry for this file."""
    if len(content) < _PREAMBLE.size + _CRC.size:
        raise ValueError("cut off")
    magic, version, length = _PREAMBLE.unpack_from(content)
    if magic != MAGIC:
        raise ValueError("not a score file")
    if version != VERSION:
        raise ValueError(f"it has format {version}; this version reads {VERSION}")
    body = memoryview(content)[: -_CRC.size]
    (crc,) = _CRC.unpack_from(content, len(body))
    if zlib.crc32(body) != crc:
        raise ValueError("its checksum is wrong")
    offset = _PREAMBLE.size + length
    head = json.loads(bytes(body[_PREAMBLE.size : offset]))
    if head["fingerprint"] != fingerprint or head["sha256"] != file_sha256:
        raise ValueError("it belongs to another engine or file")
    tracks: list[ScoreTrack] = []
    for phrase, first_end, step, count in head["tracks"]:
        scores = np.frombuffer(body[offset : offset + 4 * count], "<f4").astype(np.float32, copy=False)
        tracks.append(ScoreTrack(phrase, scores, first_end, step))
        offset += 4 * count
    if offset != len(body):
        raise ValueError("its length is wrong")
    return tuple(tracks)
