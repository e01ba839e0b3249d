"""Counts the wake events of a night anew, from its rows alone, by the rules of docs/explanation/wake-statistics.md.

Knows nothing of the product but the form of its rows. Each device hears the room; times are of the simulated host.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Key = tuple[str, int, int]
Span = tuple[float, float]


@dataclass
class Play:
    """An attempt as one device heard it. state: running, counted or outside."""

    trial: Row
    body: Row
    start_s: float | None = None
    heard_s: float | None = None
    end_s: float | None = None
    state: str = "running"
    events: list[tuple[float, int]] = field(default_factory=list)
    hit: int | None = None
    doubled: bool = False
    same: int = 0
    unmatched: list[tuple[float, int]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return str(self.trial["listening"]["kind"])

    @property
    def settings(self) -> Row:
        settings: Row = self.trial["listening"]["settings"]
        return settings

    @property
    def from_s(self) -> float:
        return self.heard_s if self.heard_s is not None else self.start_s if self.start_s is not None else 0.0

    @property
    def to_s(self) -> float:
        """End of its sound."""
        if self.end_s is None or self.start_s is None:
            return self.from_s + float(self.body["duration_s"])
        return self.from_s + min(max(0.0, self.end_s - self.start_s), self.body["duration_s"])

    @property
    def window(self) -> Span | None:
        if self.kind == "ambient":
            return None
        low_s = self.from_s + self.body["query_start_s"] - self.settings["window_before_s"]
        return low_s, self.from_s + self.body["query_end_s"] + self.settings["window_after_s"]

    @property
    def reach_s(self) -> float:
        window = self.window
        return self.to_s + self.settings["window_after_s"] if window is None else max(self.to_s, window[1])


@dataclass
class Counts:
    """Of one device. unmatched: row of each event without a stimulus → whether in vocabulary, and whether exposed."""

    hits: dict[str, int | None] = field(default_factory=dict)
    probes: dict[str, int | None] = field(default_factory=dict)
    doubled: int = 0
    same: int = 0
    exposure_s: float = 0.0
    unproven_s: float = 0.0
    unmatched: dict[int, tuple[bool, bool]] = field(default_factory=dict)


@dataclass
class Proofs:
    """Times at which a device proved that it listened, as spans."""

    within_s: float
    spans: list[list[float]] = field(default_factory=list)
    broken: bool = True

    def add(self, at_s: float) -> None:
        last_s = self.spans[-1][1] if self.spans else -math.inf
        if at_s < last_s:
            return
        if self.broken or at_s - last_s > self.within_s:
            self.spans.append([at_s, at_s])
        else:
            self.spans[-1][1] = at_s
        self.broken = False


class Device:
    """What one device did, row by row."""

    def __init__(self, name: str, settings: Row) -> None:
        self.name = name
        self.plays: list[Play] = []
        self.stray: list[tuple[float, int, bool]] = []
        self.own = Proofs(settings["proof_within_s"])
        self.woken: Proofs | None = None

    def break_proof(self) -> None:
        self.own.broken = True
        if self.woken is not None:
            self.woken.broken = True

    def wakes(self, at_s: float, seq: int, counts_alone: bool) -> None:
        play = next((play for play in reversed(self.plays[-16:])
                     if play.start_s is not None and play.from_s <= at_s <= play.reach_s), None)  # fmt: skip
        if play is None:
            if counts_alone:
                self.stray.append((at_s, seq, False))
            return
        play.events.append((at_s, seq))
        play.events.sort()
        if play.state == "counted":
            self.settle(play)

    def settle(self, play: Play) -> None:
        """Merges the events of a play, and finds that of its phrase."""
        number = self.plays.index(play)
        before = self.plays[number - 1] if number else None
        earlier_s = -math.inf
        if before is not None and before.state == "counted":
            earlier_s = max([at_s for at_s, seq in before.events
                             if seq == before.hit or (at_s, seq) in before.unmatched], default=-math.inf)  # fmt: skip
        window, refractory_s = play.window, play.settings["refractory_s"]
        if earlier_s >= min(play.from_s, window[0] if window else math.inf):
            earlier_s = -math.inf
        kept: list[tuple[float, int]] = []
        last_s = earlier_s
        for at_s, seq in play.events:
            opens = window is not None and last_s < window[0] <= at_s <= window[1]
            if at_s - last_s < refractory_s and not opens:
                continue
            kept.append((at_s, seq))
            last_s = at_s
        near_s = play.from_s + play.body["query_end_s"]
        inside = [event for event in kept if window is not None and window[0] <= event[0] <= window[1]]
        hit = min(inside, key=lambda event: abs(event[0] - near_s), default=None)
        play.hit = None if hit is None else hit[1]
        play.unmatched = [event for event in kept if event != hit]
        play.same = len(play.events) - len(kept)
        play.doubled = hit is not None and any(event > hit for event in play.events)
        if hit is not None and self.woken is not None and not (self.woken.spans and hit[0] <= self.woken.spans[-1][1]):
            self.woken.add(hit[0])

    def counts(self) -> Counts:
        found = Counts(unmatched={seq: (False, False) for _, seq, _ in self.stray})
        spans = _merged([*self.own.spans, *(self.woken.spans if self.woken else [])])
        for play in self.plays:
            vocabulary = play.kind != "ambient"
            if play.state != "counted":
                found.unmatched.update({seq: (vocabulary, False) for _, seq in play.events})
                continue
            found.same += play.same
            for at_s, seq in play.unmatched:
                shown = vocabulary or any(low <= min(at_s, play.to_s) <= high for low, high in spans)
                found.unmatched[seq] = vocabulary, shown
            if play.kind == "ambient":
                heard_s = sum(max(0.0, min(high, play.to_s) - max(low, play.from_s)) for low, high in spans)
                found.exposure_s += heard_s
                found.unproven_s += max(0.0, play.to_s - play.from_s - heard_s)
            elif play.kind == "wake":
                found.hits[play.trial["id"]] = play.hit
                found.doubled += play.doubled
            elif play.kind == "probe":
                found.probes[play.trial["id"]] = play.hit
        return found


def recount(rows: Iterable[Row], plan: list[Row]) -> dict[str, Counts]:
    """By device; of all rows that are given, in their order."""
    trials = {trial["id"]: trial for trial in plan if trial["listening"] is not None}
    devices: dict[str, Device] = {}
    sources: dict[str, Device] = {}
    for trial in trials.values():
        listening = trial["listening"]
        for target in listening["targets"]:
            device = devices.setdefault(target["device"], Device(target["device"], listening["settings"]))
            sources.update(dict.fromkeys([target["connection"], *target["also"]], device))
            if every_s := listening["probe_every_s"]:
                device.woken = device.woken or Proofs(0.0)
                device.woken.within_s = max(device.woken.within_s, 2 * every_s + 60)
    running: dict[Key, dict[str, Play]] = {}
    last: dict[Key, dict[str, Play]] = {}
    counting: dict[str, tuple[int, dict[str, Play]]] = {}

    def leave(plays: dict[str, Play]) -> None:
        for play in plays.values():
            play.state, play.hit, play.unmatched = "outside", None, []

    for row in rows:
        body, kind = row["body"], row["kind"]
        if kind == "engine_started":
            for plays in running.values():
                leave(plays)
            running.clear()
            for device in devices.values():
                device.break_proof()
        elif kind == "attempt_started" and body["trial_id"] in trials:
            trial = trials[body["trial_id"]]
            running[_key(body)] = {}
            for target in trial["listening"]["targets"]:
                play = running[_key(body)][target["device"]] = Play(trial, body)
                devices[target["device"]].plays.append(play)
        elif kind == "attempt_finished" and _key(body) in running:
            ended = running.pop(_key(body))
            last = {_key(body): ended}
            listening = trials[body["trial_id"]]["listening"]
            missed_probe = listening["kind"] == "probe" and body["outcome"] == "no_wake"
            if body["outcome"] == "counted" or missed_probe:
                if body["trial_id"] in counting:
                    leave(counting[body["trial_id"]][1])
                counting[body["trial_id"]] = body["take"], ended
            for name, play in ended.items():
                if body["outcome"] != "counted" and not missed_probe:
                    leave({name: play})
                elif play.start_s is None:
                    play.state = "outside"
                else:
                    play.state = "counted"
                    devices[name].settle(play)
        elif kind == "trial_finished" and body["trial_id"] in counting:
            take, plays = counting[body["trial_id"]]
            if body["outcome"] == "no_wake":
                for name, play in plays.items():
                    woken = devices[name].woken
                    if play.kind == "probe" and play.hit is None and woken is not None:
                        woken.broken = True
            elif body["outcome"] != "counted" and take < body["take"]:
                leave(counting.pop(body["trial_id"])[1])
        elif kind == "observed":
            _observe(row, sources, running.get(_key(body)) or last.get(_key(body)) or {}, trials)
    return {name: device.counts() for name, device in devices.items()}


def _observe(row: Row, sources: dict[str, Device], plays: dict[str, Play], trials: dict[str, Row]) -> None:
    body, seen = row["body"], row["body"]["observation"]
    at_s = seen["at"]["at_s"]
    device = sources.get(seen["source"])
    match seen["kind"]:
        case "stimulus_started" | "stimulus_ended":
            for play in plays.values():
                if play.state == "running" and seen["kind"] == "stimulus_started":
                    play.start_s = at_s
                elif play.state == "running":
                    play.end_s = at_s
        case "stimulus_heard":
            for play in plays.values():
                if play.body["play_id"] == seen["play_id"] and play.heard_s is None:
                    play.heard_s = at_s
        case "wake" if device is not None:
            device.wakes(at_s, row["seq"], body["trial_id"] is None or body["trial_id"] in trials)
        case "listening_proved" if device is not None:
            device.own.add(at_s)
        case "link_lost" if device is not None:
            device.break_proof()
        case "status" if device is not None and seen["state"] in ("started", "gone"):
            device.break_proof()


def _merged(spans: Iterable[list[float]]) -> list[Span]:
    merged: list[Span] = []
    for low, high in sorted(map(tuple, spans)):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def _key(body: Row) -> Key:
    return body.get("trial_id") or "", body.get("take") or 0, body.get("attempt") or 0
