"""A person reads prompts aloud: each utterance is found in a microphone's sound, checked, and stored as a recording.

A scenario can play the files and their list (`recording,phrase,talker,phrase_end_ms`) as `recordings`.
"""

from __future__ import annotations

import io
import queue
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import soundfile

from harness.base import threads
from harness.base.ports import Clock, Sink
from harness.base.text_file import fault_in, safe_csv
from harness.base.whole_file import write_atomically
from harness.model.errors import InputError, InputProblems, Place, SoundError
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed
from harness.model.observation import LinkLost, Observation, Overrun, SpeechEnded, SpeechStarted
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.level import rms_dbfs

LIST = "list.csv"
COLUMNS = ("recording", "phrase", "talker", "phrase_end_ms")
MARGIN_S = 0.3
"""Length of the sound that is kept before and after the speech."""
PAUSE_S = 0.8
"""A longer pause ends an utterance."""
SETTLE_S = 1.0
"""Sound that the microphone needs before the first prompt, to know the noise floor."""
MAX_UTTERANCE_S = 30.0
CLIPPED = 0.999
"""Peak amplitude from which a recording counts as clipped. Full scale is 1."""
MIN_SNR_DB = 15.0
"""Least level of the speech above the noise."""
MAX_PROMPTS = 10_000
MAX_PROMPT_CHARS = 500
_STEP_S = 0.1
"""Interval at which the clock is checked while the microphone reports nothing."""


@frozen
class SpokenPrompt:
    """The recording of an utterance.

    - phrase_end_s: end of the speech, in seconds from the first sample.
    - level_dbfs: RMS level of the speech.
    - floor_dbfs: RMS level of the noise before it; None if the microphone did not know it.
    """

    sound: Waveform
    phrase_end_s: float
    level_dbfs: float
    floor_dbfs: float | None

    @property
    def snr_db(self) -> float | None:
        """Level of the speech above the noise; None if the noise is not known."""
        return None if self.floor_dbfs is None else self.level_dbfs - self.floor_dbfs


class SpeechMicrophone(Protocol):
    """A microphone that detects speech."""

    def open(self, sink: Sink) -> None: ...
    def close(self) -> None: ...
    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]: ...
    def noise_floor_dbfs(self) -> float | None: ...


class UnusableUtterance(Exception):
    """An utterance cannot be used; the message says why, and what the talker should do."""


def read_prompts(path: Path) -> tuple[str, ...]:
    """The prompts of a text file: one in each line; blank lines and lines that begin with # are skipped."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise InputError(
            f"the prompts cannot be read: {error.strerror}", place=Place(str(path)), remedy="Check the path"
        ) from error
    problems: list[InputError] = []
    prompts: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        place = Place(str(path), number)
        prompt = " ".join(line.split())
        if not prompt or prompt.startswith("#"):
            continue
        if (fault := fault_in(line, place, "utf-8")) is not None:
            problems.append(fault)
        elif len(prompt) > MAX_PROMPT_CHARS:
            problem = f"the prompt has {len(prompt)} characters"
            problems.append(InputError(problem, place=place, remedy=f"Use at most {MAX_PROMPT_CHARS} characters"))
        prompts.append(prompt)
    if problems:
        raise InputProblems(problems)
    if not 1 <= len(prompts) <= MAX_PROMPTS:
        problem = f"the file has {len(prompts)} prompts" if prompts else "the file has no prompts"
        raise InputError(problem, place=Place(str(path)), remedy=f"Use 1 to {MAX_PROMPTS:,} prompts, one on each line")
    return tuple(prompts)


class TalkerFolder:
    """A folder of recordings with their list. An utterance is safe on the disk once `keep` returns.

    extra: further columns of the list → their values for this talker.
    """

    def __init__(self, folder: Path, talker: str, extra: Mapping[str, str]) -> None:
        from harness.scenario.assets import TALKER_NAME, check_columns, read_list  # here: an engine reads no lists

        if not TALKER_NAME.fullmatch(talker):
            raise InputError(f"{talker!r} is not a talker's name", remedy="Use lowercase letters, digits, - and _")
        check_columns([*COLUMNS, *extra], Place("--column"))
        self._folder, self._talker = folder, talker
        self._extra_columns = {name: value.strip() for name, value in extra.items()}  # as a list is read
        self._rows: list[dict[str, str]] = []
        if not (folder / LIST).exists():
            return
        for path, facts, place in read_list(folder / LIST):
            ends_s = facts.phrase_end_s
            end_ms = "" if ends_s is None else fixed(ends_s * 1000, 0)
            row = {"recording": path, **dict(facts.traits), "phrase_end_ms": end_ms}
            if set(row) != {*COLUMNS, *extra}:
                own_columns = ", ".join([*COLUMNS, *extra])
                raise InputError(
                    f"the list has the columns {', '.join(row)}, but this recording has {own_columns}",
                    place=place,
                    remedy="Use another folder, or the same --column options",
                )
            self._rows.append(row)

    def missing(self, prompts: Iterable[str]) -> list[str]:
        """The prompts that this talker has not read with these values of the further columns.

        A prompt that occurs several times is to be read as many times.
        """
        own_columns = {"talker": self._talker, **self._extra_columns}
        recorded = Counter(row["phrase"] for row in self._rows if own_columns.items() <= row.items())
        missing: list[str] = []
        for prompt in prompts:
            recorded[prompt] -= 1
            if recorded[prompt] < 0:
                missing.append(prompt)
        return missing

    def keep(self, prompt: str, utterance: SpokenPrompt) -> str:
        """Stores the recording and then its row; returns the file's name."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = 1 + sum(row["talker"] == self._talker for row in self._rows)
        while (path := self._folder / f"{self._talker}_{number:04d}.wav").exists():
            number += 1
        content = io.BytesIO()
        soundfile.write(content, utterance.sound.samples, utterance.sound.rate_hz, "PCM_24", format="WAV")
        write_atomically(path, content.getvalue())
        end_ms = fixed(utterance.phrase_end_s * 1000, 0)
        row = {"recording": path.name, "phrase": prompt, "talker": self._talker, "phrase_end_ms": end_ms}
        self._rows.append(row | self._extra_columns)
        header = list(self._rows[0])
        rows = ([row[name] for name in header] for row in self._rows)
        write_atomically(self._folder / LIST, safe_csv([header, *rows]).encode())
        return path.name


class TalkerSpeech:
    """Finds the first speech that begins after a moment, without I/O and without a clock.

    starts, ends: its start and end, as far as they are known; else None. Pauses of up to PAUSE_S are part of it.
    """

    def __init__(self, since_s: float, wait_s: float) -> None:
        """since_s: that moment. wait_s: time in which the talker must begin to speak."""
        self._begins_s, self._wait_s = since_s, wait_s
        self.starts: Stamp | None = None
        self.ends: Stamp | None = None

    def observe(self, observation: Observation) -> None:
        """Adds what the microphone observed, in order. Raises UnusableUtterance if samples of the speech were lost."""
        match observation:
            case Overrun() if self.starts is not None:
                raise UnusableUtterance("samples were lost, because this computer is too busy. Say the prompt again")
            case SpeechStarted(at=at) if at.at_s >= self._begins_s:
                self.starts, self.ends = self.starts or at, None
            case SpeechEnded(at=at) if self.starts is not None:
                self.ends = at
            case _:
                pass

    @property
    def until_s(self) -> float:
        """When the speech is over, or given up, if nothing more is heard."""
        if self.starts is None:
            return self._begins_s + self._wait_s
        if self.ends is None:
            return self.starts.at_s + MAX_UTTERANCE_S
        return self.ends.at_s + PAUSE_S + MARGIN_S

    def is_over(self, now_s: float) -> bool:
        """Whether all of the speech was heard. Raises UnusableUtterance if none was heard, or if it does not end."""
        if now_s < self.until_s:
            return False
        if self.starts is None:
            raise UnusableUtterance(f"nothing was heard within {exact(self._wait_s)} s")
        if self.ends is None:
            raise UnusableUtterance(f"longer than {exact(MAX_UTTERANCE_S)} s, or too noisy to find its end")
        return True


class Talker:
    """Records one utterance after another. Use as a context manager, which opens and closes the microphone."""

    def __init__(self, microphone: SpeechMicrophone, clock: Clock) -> None:
        self._microphone, self._clock = microphone, clock
        self._observations: queue.SimpleQueue[Observation] = threads.simple_queue()

    def __enter__(self) -> Talker:
        self._microphone.open(self._observations.put)
        threads.sleep(self._clock.real_s(SETTLE_S))
        return self

    def __exit__(self, *_: object) -> None:
        self._microphone.close()

    def utterance(self, wait_s: float) -> SpokenPrompt:
        """Waits for the next speech that begins from now on, and returns its recording.

        wait_s: time in which the talker must begin to speak. Raises UnusableUtterance if the speech cannot be used, and
        SoundError if the microphone is lost.
        """
        since_s = self._clock.now_s()
        floor_dbfs = self._microphone.noise_floor_dbfs()
        start_s, end_s = self._span(since_s, wait_s)
        sound, first_s = self._microphone.cut(start_s - MARGIN_S, end_s + MARGIN_S)
        start_sample, end_sample = (round((at_s - first_s) * sound.rate_hz) for at_s in (start_s, end_s))
        speech = sound.samples[max(0, start_sample) : end_sample]
        if float(np.abs(sound.samples).max(initial=0.0)) >= CLIPPED:
            raise UnusableUtterance("too loud: the sound is clipped. Turn the microphone's gain down, or step back")
        utterance = SpokenPrompt(
            sound, phrase_end_s=end_s - first_s, level_dbfs=rms_dbfs(speech), floor_dbfs=floor_dbfs
        )
        if utterance.snr_db is not None and utterance.snr_db < MIN_SNR_DB:
            raise UnusableUtterance(
                f"too quiet: {fixed(utterance.snr_db, 0)} dB over the noise. Speak up, or step closer"
            )
        return utterance

    def _span(self, since_s: float, wait_s: float) -> tuple[float, float]:
        """Waits for speech. Returns when it began and ended, on the host's clock."""
        speech = TalkerSpeech(since_s, wait_s)
        while not speech.is_over(self._clock.now_s()):
            match self._next():
                case LinkLost(what=problem):
                    raise SoundError(
                        f"the microphone was lost: {problem}",
                        remedy="Reconnect the microphone, then run the command again",
                    )
                case None:
                    pass
                case observation:
                    speech.observe(observation)
        assert speech.starts is not None
        assert speech.ends is not None
        return speech.starts.at_s, speech.ends.at_s

    def _next(self) -> Observation | None:
        """The microphone's next observation; None if there is none within _STEP_S."""
        try:
            return self._observations.get(timeout=_STEP_S)
        except queue.Empty:
            return None
