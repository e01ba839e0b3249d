"""Sessions of a memory probe that a test writes out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from harness.model.observation import ResponseText, Wake
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Observed,
    ResponseFrozen,
    ResponseTranscribed,
    TrialFinished,
    TrialStarted,
)
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, MemoryPart, Outcome, Recognition, Trial
from harness.session.figures.memory import Floats, Pair, find_forgetting_wait, memory_length
from harness.statistics.isotonic import CRITICAL
from tests.known import known
from tests.unit.session.figures.rows import Rows, clip_of, planned

SHOWS, FORGETS = ("sixty one",), ("sorry",)
YES, NO = "56 plus 5 is 61.", "Sorry, I don't know that one."


@dataclass(frozen=True)
class Told:
    """A pair and what came of its follow-up. text: by the device; heard: by our transcription."""

    wait_s: float
    text: str = ""
    heard: str = ""
    waited_s: float | None = None
    outcome: Outcome = Outcome.RESPONDED
    recognition: Recognition = Recognition.YES
    wakes: bool = True
    device: str = "kitchen"
    conditions: tuple[tuple[str, str], ...] = ()
    cause: str = ""
    forgets: tuple[str, ...] = FORGETS


def pair_of(number: int, probe: Told) -> tuple[Trial, Trial]:
    name = f"memory.w{probe.wait_s:g}.r{number}"
    prime = replace(planned(2 * number - 1, "what is seven times eight", f"{name}.prime", probe.device),
                    memory=MemoryPart(), conditions=probe.conditions)  # fmt: skip
    part = MemoryPart(prime.id, probe.wait_s, SHOWS, probe.forgets)
    return prime, replace(
        planned(2 * number, "add five to that", name, probe.device), memory=part, conditions=probe.conditions
    )


def session(*probes: Told) -> Rows:
    """The rows of a whole run, pair after pair."""
    rows = Rows()
    pairs = [(probe, *pair_of(number, probe)) for number, probe in enumerate(probes, 1)]
    rows.start(*(trial for _, *pair in pairs for trial in pair))
    for probe, prime, follow_up in pairs:
        rows.trial(prime.id, clip=clip_of(f"{prime.id}.flac"))
        ask(rows, follow_up, probe)
    return rows


def ask(rows: Rows, follow_up: Trial, probe: Told, take: int = 1) -> None:
    """A take of a follow-up."""
    rows.add(TrialStarted(follow_up.id, take))
    waited_s = probe.wait_s + 0.01 if probe.waited_s is None else probe.waited_s
    rows.add(AttemptStarted(follow_up.id, take, 1, f"p{len(rows.entries)}", "c", 0.8, 1.6, 1.7, waited_s), waited_s)
    observed: list[Wake | ResponseText] = []
    if probe.wakes:
        observed.append(Wake("link", Stamp(rows.at_s + 0.75, 0.01)))
    if probe.text:
        observed.append(ResponseText("link", Stamp(rows.at_s + 3.0, 0.01), probe.text))
    for observation in observed:
        rows.add(Observed(observation, follow_up.id, take, 1))
    clip = clip_of(f"{follow_up.id}.{take}.flac")
    rows.add(ResponseFrozen(follow_up.id, take, 1, clip, Stamp(rows.at_s + 3.0, 0.03), Stamp(rows.at_s + 4.0, 0.04)))
    if probe.heard:
        rows.add(ResponseTranscribed(follow_up.id, take, 1, probe.heard, "ours"))
    rows.add(
        AttemptFinished(
            follow_up.id, take, 1, probe.outcome, probe.recognition, EvidenceSource.DEVICE, cause=probe.cause
        ),
        5.0,
    )
    deciding = None if probe.outcome in (Outcome.SKIPPED, Outcome.INTERRUPTED) else 1
    rows.add(TrialFinished(follow_up.id, take, probe.outcome, 1, deciding, probe.cause))


def clear_cut(length_s: float, waits_s: Iterable[float], repeat: int = 3, device: str = "kitchen") -> list[Told]:
    """What a device answers that remembers for so long, always."""
    return [Told(wait_s, YES if wait_s < length_s else NO, device=device) for wait_s in waits_s for _ in range(repeat)]


@dataclass(frozen=True, slots=True)
class Design:
    """Waits in equal ratios, each tried `repeat` times."""

    shortest_s: float
    longest_s: float
    count: int
    repeat: int

    @property
    def tried_s(self) -> Floats:
        return np.repeat(np.geomspace(self.shortest_s, self.longest_s, self.count), self.repeat)


@dataclass(frozen=True, slots=True)
class Kept:
    """Of `runs`: covered, whose interval holds the length; told, with a wait to recommend; over, whose bound on the
    share at that wait is too low; surer_over, at the longer wait beside it. ratio: median of upper over lower end, of
    intervals that have both.
    """

    runs: int
    covered: int
    told: int
    over: int
    surer_over: int
    ratio: float | None


def remembers(waits_s: Floats, length_s: float, spread: float) -> Floats:
    """The share that remembers after each wait, half of it at length_s. spread: of a logistic in log(s); 0: none."""
    if spread == 0:
        return (waits_s < length_s).astype(np.float64)
    share: Floats = expit((math.log(length_s) - np.log(waits_s)) / spread)
    return share


def kept(random: np.random.Generator, design: Design, spread: float, runs: int, critical: float = CRITICAL) -> Kept:
    """Runs with lengths of 2.5 to 28 s, drawn evenly on a logarithmic scale."""
    tried_s, ratios = design.tried_s, []
    covered = advised = too_short = surer_over = 0
    for _ in range(runs):
        length_s = math.exp(random.uniform(math.log(2.5), math.log(28)))
        share = remembers(tried_s, length_s, spread)
        shown = random.random(len(tried_s)) < share
        pairs = [Pair(float(wait_s), bool(is_shown)) for wait_s, is_shown in zip(tried_s, shown, strict=True)]
        length = known(memory_length(pairs, critical))
        low, high = length.interval
        covered += low <= length_s <= (math.inf if high is None else high)
        if low > 0 and high is not None:
            ratios.append(high / low)
        if (rest := find_forgetting_wait(pairs, length)) is not None:
            advised += 1
            too_short += float(share[tried_s == rest.wait_s][0]) > rest.at_most
            if rest.surer is not None:
                surer_over += float(share[tried_s == rest.surer[0]][0]) > rest.surer[1]
    return Kept(runs, covered, advised, too_short, surer_over, float(np.median(ratios)) if ratios else None)
