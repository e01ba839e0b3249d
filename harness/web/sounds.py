"""Sounds for a browser: WAV with ranges, and a picture of their loudness."""

from __future__ import annotations

import io
import re
import threading
import wave
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from starlette.exceptions import HTTPException
from starlette.responses import Response

from harness.model.errors import HarnessError, SoundGone
from harness.model.stimulus import Waveform

MAX_CACHED_BYTES = 48_000_000
BAR_COUNT = 180
PICTURE_HEIGHT = 48  # in units of the SVG, as are the other sizes of the picture
BAR_STEP, BAR_WIDTH = 4, 3
COLOUR = "#4d86c6"  # legible on a light and on a dark page

_RANGE = re.compile(r"bytes=([0-9]{0,12})-([0-9]{0,12})")


def to_wav(sound: Waveform) -> bytes:
    """A sound as WAV: 16 bits, mono, without metadata."""
    samples = np.clip(np.rint(sound.samples * 32767.0), -32768, 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sound.rate_hz)
        file.writeframes(samples.tobytes())
    return buffer.getvalue()


def draw_picture(content: bytes) -> bytes:
    """The picture of a WAV file, as SVG with `BAR_COUNT` bars.

    Each bar stands for an equal span of time. Its height is that of its loudest sample, relative to the whole sound's.
    """
    with wave.open(io.BytesIO(content)) as file:
        samples = np.abs(np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(np.int32))
    loudest = max(1, int(samples.max(initial=1)))
    spans = np.array_split(samples, BAR_COUNT)
    bars = []
    for number, span in enumerate(spans):
        height = max(1.0, (PICTURE_HEIGHT - 4) * float(span.max(initial=0)) / loudest)
        top = (PICTURE_HEIGHT - height) / 2
        bars.append(f'<rect x="{number * BAR_STEP}" y="{top:.1f}" width="{BAR_WIDTH}" height="{height:.1f}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {BAR_COUNT * BAR_STEP} {PICTURE_HEIGHT}" '
        f'preserveAspectRatio="none">'
        f'<g fill="{COLOUR}">{"".join(bars)}</g></svg>'
    ).encode()


def serve_range(content: bytes, media_type: str, range_header: str | None) -> Response:
    """A response with the content, or with the range that a Range header requests (RFC 9110, 14)."""
    headers = {"accept-ranges": "bytes"}
    match = _RANGE.fullmatch(range_header.strip()) if range_header else None
    if match is None or match.groups() == ("", ""):
        # For several ranges, other units and invalid values, the response may be the whole content.
        return Response(content, media_type=media_type, headers=headers)
    first, last = match.groups()
    length = len(content)
    start = int(first) if first else max(0, length - int(last))
    end = min(length - 1, int(last)) if first and last else length - 1
    if first and last and int(last) < int(first):
        return Response(content, media_type=media_type, headers=headers)
    if start >= length or (not first and int(last) == 0):
        return Response(b"", 416, media_type=media_type, headers={**headers, "content-range": f"bytes */{length}"})
    headers["content-range"] = f"bytes {start}-{end}/{length}"
    return Response(content[start : end + 1], 206, media_type=media_type, headers=headers)


def clip_version(path: Path) -> str:
    """A text that differs once the file of a clip has been redacted or removed. Part of the name of a cached sound."""
    try:
        stat = path.stat()
    except OSError:
        return ""
    return f"{stat.st_ino}.{stat.st_mtime_ns}"


class SoundCache:
    """A cache of the sounds used last, by name, with at most MAX_CACHED_BYTES or one sound; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sounds: OrderedDict[tuple[str, ...], bytes] = OrderedDict()

    def get(self, name: tuple[str, ...], make: Callable[[], Waveform], fault: str) -> bytes:
        """A WAV from the cache, or from `make`.

        If `make` fails, raises HTTPException: 410 if the sound was removed, else 503 with the text `fault`.
        """
        with self._lock:
            if name in self._sounds:
                self._sounds.move_to_end(name)
                return self._sounds[name]
        try:
            content = to_wav(make())
        except SoundGone as error:
            raise HTTPException(410, f"{error.what[0].upper()}{error.what[1:]}.") from error
        except HarnessError as error:
            raise HTTPException(503, fault) from error
        # The lock was free meanwhile, since making takes long: two requests may have made the same sound.
        with self._lock:
            self._sounds[name] = content
            while len(self._sounds) > 1 and sum(map(len, self._sounds.values())) > MAX_CACHED_BYTES:
                self._sounds.popitem(last=False)
        return content
