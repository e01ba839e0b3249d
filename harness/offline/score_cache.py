"""Scores that were worked out once: any operating point, refractory time or lead-in is then another look at them.

One file an entry, below a folder that many processes and machines may share. Little-endian, in this order: MAGIC, the
version of the format and the length of the head (two uint32), the head (JSON: fingerprint, sha256, samples, rate_hz,
and phrase, first_end, step and length of each track), the scores of all tracks (float32), and the CRC-32 of all that
(uint32). An entry is put in its place whole; one that is damaged, cut off or of another version is told and counts as
a miss, so that it is worked out anew.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.base.whole_file import whole_stream
from harness.model.errors import InputError
from harness.model.offline import ScoreTrack

MAGIC = b"VHSCORES"
VERSION = 1
ENDING = ".scores"
_FRONT = struct.Struct("<8sII")
_SUM = struct.Struct("<I")
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, eq=False)
class CachedScores:
    """An entry. samples, rate_hz: of the file as it is, before resampling."""

    tracks: tuple[ScoreTrack, ...]
    samples: int
    rate_hz: int


@dataclass(frozen=True, slots=True)
class CacheSize:
    """What a cache holds; audio_s is not known without opening every entry, so it is not said."""

    entries: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.entries:,} files' scores, {self.bytes / 1e6:,.1f} MB"


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"harness: {line}\n")


class ScoreCache:
    """Scores by the engine's fingerprint and the sha256 of a file's bytes. Opens nothing until it is asked.

    tell: takes a line for people when an entry is damaged or cannot be written; standard error unless it is given.
    """

    def __init__(self, folder: str | Path, tell: Callable[[str], None] = _to_stderr) -> None:
        self.folder = Path(folder)
        self._tell = tell
        self._refused = False

    def get(self, fingerprint: str, file_sha256: str) -> tuple[ScoreTrack, ...] | None:
        """The tracks of a file, or None where they have to be worked out."""
        found = self.entry(fingerprint, file_sha256)
        return found.tracks if found else None

    def entry(self, fingerprint: str, file_sha256: str) -> CachedScores | None:
        """The tracks of a file and its length, or None."""
        path = self._path(fingerprint, file_sha256)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(f"{path}: cached scores cannot be read ({error.strerror or error}): worked out anew")
            return None
        try:
            return _read(content, fingerprint, file_sha256)
        except ValueError as error:
            self._tell(f"{path}: cached scores are no use ({error}): worked out anew")
            return None

    def put(
        self, fingerprint: str, file_sha256: str, tracks: tuple[ScoreTrack, ...], samples: int, rate_hz: int
    ) -> bool:
        """Keeps the tracks of a file; whether that could be done. A full disk costs time later, no evaluation now.

        Not for a file that an engine did not begin afresh: its scores are of the files before it, too.
        """
        path = self._path(fingerprint, file_sha256)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Not forced to the disk: what a power cut takes is damaged, told, and worked out anew.
            with whole_stream(path, safe=False) as stream:
                for piece in _pieces(fingerprint, file_sha256, tracks, samples, rate_hz):
                    stream.write(piece)
        except OSError as error:
            if not self._refused:
                self._refused = True
                self._tell(f"scores cannot be kept in {self.folder} ({error.strerror or error}): going on without")
            return False
        return True

    def size(self, fingerprint: str = "") -> CacheSize:
        """What is kept, of one engine or of all."""
        top = self.folder / fingerprint if fingerprint else self.folder
        sizes = [path.stat().st_size for path in top.rglob(f"[!.]*{ENDING}")]
        return CacheSize(len(sizes), sum(sizes))

    def _path(self, fingerprint: str, file_sha256: str) -> Path:
        for name, text in (("fingerprint", fingerprint), ("sha256", file_sha256)):
            if not text or not _HEX.issuperset(text):
                raise InputError(f"scores are kept by {name} in hexadecimal digits, not {text!r:.40}")
        # 256 folders: a folder of a million files is slow on many file servers.
        return self.folder / fingerprint / file_sha256[:2] / (file_sha256 + ENDING)


def _pieces(
    fingerprint: str, file_sha256: str, tracks: tuple[ScoreTrack, ...], samples: int, rate_hz: int
) -> Iterator[bytes]:
    head = json.dumps(
        {
            "fingerprint": fingerprint,
            "sha256": file_sha256,
            "samples": samples,
            "rate_hz": rate_hz,
            "tracks": [[one.phrase, int(one.first_end), int(one.step), len(one.scores)] for one in tracks],
        }
    ).encode()
    crc = 0
    parts = [_FRONT.pack(MAGIC, VERSION, len(head)) + head]
    parts += [np.ascontiguousarray(one.scores, "<f4").tobytes() for one in tracks]
    for part in parts:
        crc = zlib.crc32(part, crc)
        yield part
    yield _SUM.pack(crc)


def _read(content: bytes, fingerprint: str, file_sha256: str) -> CachedScores:
    """ValueError, with the reason, for whatever `_pieces` did not make of just this file."""
    if len(content) < _FRONT.size + _SUM.size:
        raise ValueError("cut off")
    magic, version, length = _FRONT.unpack_from(content)
    if magic != MAGIC:
        raise ValueError("no file of scores")
    if version != VERSION:
        raise ValueError(f"format {version}, and this program knows {VERSION}")
    body = memoryview(content)[: -_SUM.size]
    if (zlib.crc32(body),) != _SUM.unpack_from(content, len(body)):
        raise ValueError("its checksum is wrong")
    head = json.loads(bytes(body[_FRONT.size : _FRONT.size + length]))
    if head["fingerprint"] != fingerprint or head["sha256"] != file_sha256:
        raise ValueError("it is of another engine or file")
    at = _FRONT.size + length
    tracks: list[ScoreTrack] = []
    for phrase, first_end, step, count in head["tracks"]:
        scores = np.frombuffer(body[at : at + 4 * count], "<f4").astype(np.float32, copy=False)
        tracks.append(ScoreTrack(phrase, scores, first_end, step))
        at += 4 * count
    if at != len(body):
        raise ValueError("its length is wrong")
    return CachedScores(tuple(tracks), head["samples"], head["rate_hz"])
