"""What a session on boards must have counted, worked out without the harness's counting.

The sounds of the log's attempts are made again from the plan and put behind each other as the board heard them, the
firmware's own spotter (`vh_spot`) is run over the whole, and a plain rule over sample numbers says what each event is.
Everything here is in samples of 16 kHz, counted from the board's boot as the board counts them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from harness.devices.wire.adpcm import encode_adpcm
from harness.model.record import AttemptFinished, AttemptStarted, EngineStarted, Entry
from harness.model.scenario import TrialKind
from harness.model.stimulus import RenderedStimulus, Role
from harness.model.trial import ListeningSpec, Outcome, Trial
from harness.sound.stimuli.renderer import renderer
from tests.conformance.boards import built
from tests.written_sessions import plan_of, records

RATE_HZ = 16_000
Pcm = npt.NDArray[np.int16]


# What they were given


@dataclass(frozen=True, slots=True)
class Given:
    """One attempt's sound as a board heard it: samples start + 1 to start + count since its boot."""

    trial: Trial
    stimulus: RenderedStimulus
    start: int
    count: int
    counts: bool

    @property
    def end(self) -> int:
        return self.start + self.count

    @property
    def listening(self) -> ListeningSpec:
        assert self.trial.listening is not None
        return self.trial.listening

    @property
    def near(self) -> int:
        """Where its event is expected: the end of the phrase, with a command the end of that."""
        return self.start + self.stimulus.parts[-1].end_sample

    @property
    def phrase(self) -> int:
        """Where the wake phrase begins."""
        role = Role.QUERY if self.listening.kind is TrialKind.WAKE else Role.WAKE_PHRASE
        return self.start + next(part.start_sample for part in self.stimulus.parts if part.role is role)

    @property
    def window(self) -> tuple[int, int] | None:
        """First and last sample at which its event may lie."""
        if self.listening.kind is TrialKind.AMBIENT:
            return None
        settings = self.listening.settings
        return (
            self.phrase - round(settings.window_before_s * RATE_HZ),
            self.near + round(settings.window_after_s * RATE_HZ),
        )

    def holds(self, sample: int) -> bool:
        """An event's number is that of samples heard when it was found."""
        return self.start < sample <= self.end


def given(entries: Sequence[Entry], heard: Sequence[int], encoding: str = "pcm16") -> list[Given]:
    """heard: at the end of each run of the engine, all that the board had heard since its boot.

    A stimulus that was cut off by the end of a run is as long as the board says.
    """
    plan, renders = plan_of(entries), renderer()
    attempts = records(entries, AttemptStarted)
    ended = {(row.trial_id, row.take, row.attempt): row.outcome for row in records(entries, AttemptFinished)}
    run_of = {entry.seq: entry.run for entry in entries}
    runs = [run_of[entry.seq] for entry in entries if isinstance(entry.record, AttemptStarted)]
    pieces: list[Given] = []
    sample = 0
    for number, (row, run) in enumerate(zip(attempts, runs, strict=True)):
        stimulus = renders.render(plan[row.trial_id].recipe)
        assert stimulus.sha256 == row.stimulus_sha256
        assert stimulus.waveform.rate_hz == RATE_HZ
        whole = _on_wire(len(stimulus.waveform.samples), encoding)
        counts = ended[row.trial_id, row.take, row.attempt] is Outcome.COUNTED
        last = number + 1 == len(attempts) or runs[number + 1] != run
        count = whole if not last else heard[run - 1] - sample
        assert counts or last, "only the end of a run cuts a stimulus off here"
        assert 0 <= count <= whole
        assert count == whole or not counts, "what counts was heard to its last sample"
        pieces.append(Given(plan[row.trial_id], stimulus, sample, count, counts))
        sample += count
    engines = len(records(entries, EngineStarted))
    assert engines == len(heard)
    assert sample == heard[-1], "the board has heard what was given to it, to the sample"
    return pieces


def _on_wire(count: int, encoding: str) -> int:
    return count + count % 2 if encoding == "adpcm" else count


def as_heard(play: Given, encoding: str) -> Pcm:
    """The samples that reach the spotter."""
    samples = play.stimulus.waveform.samples.astype(np.float64)
    pcm = np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)
    match encoding:
        case "pcm16":
            return pcm[: play.count]
        case "ulaw":
            return _through_ulaw(pcm)[: play.count]
        case _:
            return _through_adpcm(pcm)[: play.count]


def _through_ulaw(pcm: Pcm) -> Pcm:
    """G.711 by its own table: the nearest of 255 levels in the segment of the clipped magnitude."""
    magnitude = np.minimum(np.abs(pcm.astype(np.int64)), 32635) + 132
    shift = np.floor(np.log2(magnitude)).astype(np.int64) - 4  # five bits stay, of which the first is always set
    level = ((magnitude >> shift) << shift) + (1 << (shift - 1)) - 132
    decoded: Pcm = np.where(pcm < 0, -level, level).astype(np.int16)
    return decoded


def _through_adpcm(pcm: Pcm) -> Pcm:
    """What the firmware's decoder makes of the frames, all frames at once (source: IMA, 1992)."""
    frames = encode_adpcm(np.append(pcm, np.int16(0)) if len(pcm) % 2 else pcm)
    data = np.zeros((len(frames), max(map(len, frames))), np.uint8)
    for number, frame in enumerate(frames):
        data[number, : len(frame)] = np.frombuffer(frame, np.uint8)
    level = data[:, :2].copy().view("<i2")[:, 0].astype(np.int64)
    index = data[:, 2].astype(np.int64)
    steps = _adpcm_steps()
    decoded = np.empty((len(frames), 2 * (data.shape[1] - 4)), np.int16)
    for column in range(decoded.shape[1]):
        nibble = (data[:, 4 + column // 2] >> (4 * (column % 2))) & 15
        step = steps[index]
        change = (step >> 3) + sum(np.where(nibble & bit, step >> shift, 0) for bit, shift in ((4, 0), (2, 1), (1, 2)))
        level = np.clip(np.where(nibble & 8, level - change, level + change), -32768, 32767)
        index = np.clip(index + np.array([-1, -1, -1, -1, 2, 4, 6, 8])[nibble & 7], 0, 88)
        decoded[:, column] = level
    flat: Pcm = decoded.reshape(-1)
    return flat[: len(pcm) + len(pcm) % 2]


@cache
def _adpcm_steps() -> npt.NDArray[np.int64]:
    """The table that the firmware is built with."""
    source = (built("posix").parents[1] / "core" / "vh_codecs.c").read_text(encoding="ascii")
    table = source.partition("steps[89] = {")[2].partition("}")[0]
    return np.array([int(number) for number in table.split(",")], np.int64)


# What is true of it


@dataclass(frozen=True, slots=True)
class Spotted:
    """An event of the spotter: its sample on the board's line, and within the stimulus."""

    sample: int
    offset: int
    score: float
    play: Given


@dataclass
class Truth:
    """hits: wake trial → its event, None: missed. extra: further events in trials that count, in their order.

    merged: within the refractory time of another one; outside: in sound that was cut off. exposure: ambient trial →
    samples. rest: wake or command trial → samples without those from the phrase's first to its event.
    """

    hits: dict[str, Spotted | None] = field(default_factory=dict)
    extra: list[Spotted] = field(default_factory=list)
    merged: list[Spotted] = field(default_factory=list)
    outside: list[Spotted] = field(default_factory=list)
    exposure: dict[str, int] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    rest: dict[str, int] = field(default_factory=dict)
    count_in_vocabulary: bool = False

    def in_ambience(self) -> list[Spotted]:
        return [event for event in self.extra if event.play.listening.kind is TrialKind.AMBIENT]

    def false_accepts(self) -> list[Spotted]:
        return self.extra if self.count_in_vocabulary else self.in_ambience()

    def exposed(self) -> int:
        """Samples over which false accepts are counted."""
        return sum(self.exposure.values()) + (sum(self.rest.values()) if self.count_in_vocabulary else 0)

    @property
    def missed(self) -> list[str]:
        return [trial for trial, hit in self.hits.items() if hit is None]

    def delays(self) -> dict[str, int]:
        """Wake and command trials: samples from the end of the phrase to the event."""
        return {trial: hit.sample - hit.play.near for trial, hit in self.hits.items() if hit is not None}


def spotted(plays: Sequence[Given], encoding: str = "pcm16") -> list[Spotted]:
    """What the firmware's spotter finds in all that it heard since its boot."""
    sound = b"".join(as_heard(play, encoding).astype("<i2").tobytes() for play in plays)
    result = subprocess.run([built("host") / "vh_spot", "-"], input=sound, capture_output=True, check=True)
    events = []
    for line in result.stdout.decode().splitlines():
        sample, score, phrase = line.split()
        assert phrase == "alexa"
        play = next(candidate for candidate in plays if candidate.holds(int(sample)))
        events.append(Spotted(int(sample), int(sample) - play.start, float(score), play))
    return events


def truth(plays: Sequence[Given], events: Sequence[Spotted]) -> Truth:
    """The rules of docs/explanation/wake-statistics.md by plain search.

    Events in sound that was cut off are struck out first: they count nowhere and hide none.
    """
    counting = [play for play in plays if play.counts]
    for play in counting:  # so that an event can be the stimulus's only in which it lies
        window = play.window
        assert window is None or (play.start <= window[0] and window[1] <= play.end)
    settings = counting[0].listening.settings
    result = Truth(count_in_vocabulary=settings.count_in_vocabulary)
    result.outside = [event for event in events if not event.play.counts]
    refractory = round(settings.refractory_s * RATE_HZ)
    standing: list[Spotted] = []
    for event in events:
        if not event.play.counts:
            continue
        window = event.play.window
        opens = window is not None and window[0] <= event.sample <= window[1]
        if standing and event.sample - standing[-1].sample < refractory:
            before = window is not None and standing[-1].sample < window[0]
            if not (opens and before):
                result.merged.append(event)
                continue
        standing.append(event)
    matched: set[int] = set()
    for play in counting:
        window = play.window
        if window is None:
            result.exposure[play.trial.id] = play.count
            continue
        if play.listening.kind is TrialKind.COMMAND:
            result.commands.append(play.trial.id)
        inside = [event for event in standing if window[0] <= event.sample <= window[1]]
        hit = min(inside, key=lambda event: abs(event.sample - play.near), default=None)
        if play.listening.kind is TrialKind.WAKE:
            result.hits[play.trial.id] = hit
        spot = 0
        if hit is not None:
            matched.add(hit.sample)
            spot = max(0, hit.sample - play.phrase)
        result.rest[play.trial.id] = play.count - spot
    result.extra = [event for event in standing if event.sample not in matched]
    return result
