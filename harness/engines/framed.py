"""Shared code of engines that take sound in frames of one size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError, Place
from harness.model.offline import OfflineSpot

Pcm = npt.NDArray[np.int16]


class FrameCutter:
    """Cuts sound into frames of one size.

    - taken: number of samples in the frames so far.
    - rest: the samples after the last frame.
    """

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self.rest: Pcm = np.zeros(0, np.int16)
        self.taken = 0

    def cut(self, samples: Pcm) -> Iterator[Pcm]:
        """The complete frames; the samples after them wait for more."""
        sound = np.concatenate([self.rest, samples])
        end = len(sound) // self._samples * self._samples
        self.rest = sound[end:]
        for first in range(0, end, self._samples):
            self.taken += self._samples
            yield sound[first : first + self._samples]


class FrameSpotStream:
    """A stream of an engine that reports which phrases end with a frame.

    - spot_samples: assumed length of a phrase.
    - phrases_in: takes a frame, and returns the phrases that end with it.
    - phrases_at_end: takes the samples after the last frame at the end of a file, and also returns phrases; None
      ignores them.
    """

    def __init__(
        self,
        frame_samples: int,
        spot_samples: int,
        phrases_in: Callable[[Pcm], Iterable[str]],
        phrases_at_end: Callable[[Pcm], Iterable[str]] | None = None,
    ) -> None:
        self._frames, self._spot_samples = FrameCutter(frame_samples), spot_samples
        self._phrases_in, self._phrases_at_end = phrases_in, phrases_at_end
        self._spots: list[OfflineSpot] = []

    def feed(self, samples: Pcm) -> None:
        for frame in self._frames.cut(samples):
            self._add_spots(self._phrases_in(frame), self._frames.taken)

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        """The spots since the last take. flush: whether the file has ended."""
        if flush and self._phrases_at_end is not None:
            rest = self._frames.rest
            self._add_spots(self._phrases_at_end(rest), self._frames.taken + len(rest))
            self._phrases_at_end = None  # a file ends once
        spots, self._spots = tuple(self._spots), []
        return spots

    def _add_spots(self, phrases: Iterable[str], end: int) -> None:
        self._spots += (OfflineSpot(phrase, max(0, end - self._spot_samples), end) for phrase in phrases)


def sha256_of(*files: Path) -> str:
    """The SHA-256 over the content of model files. Raises InputError if one cannot be read."""
    digest = hashlib.sha256()
    for path in files:
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise InputError(f"the model file cannot be read: {error.strerror}", place=Place(str(path))) from error
    return digest.hexdigest()


def model_folder(model: str, engine: str, file_names: Iterable[str]) -> Path:
    """The folder of a model, with a file for each pattern.

    Raises InputError, which names what is missing, for another folder.
    """
    folder = Path(model)
    if not model or not folder.is_dir():
        problem = f"{engine} needs a model folder"
        if model:
            problem += f", but {model!r} is not a folder"
        raise InputError(problem, remedy=f"Download a model, unpack it, and pass its folder: -t {engine}:FOLDER")
    missing = [pattern for pattern in file_names if not any(folder.glob(pattern))]
    if missing:
        problem = f"this is not a {engine} model: it has no {', '.join(missing)}"
        raise InputError(problem, place=Place(str(folder)), remedy="Use the folder that contains these files")
    return folder
