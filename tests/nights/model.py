"""A recount of a session from the rows of its log alone, as JSON. It imports nothing of harness/.

It follows docs/explanation/wake-statistics.md, trials.md and docs/how-to/test-wake-words.md, by another method than the
product: the events of a device lie on one line for each run of the engine, windows are matched on the whole line at
once, and time is sets of intervals. "GAP" marks what those pages leave open and the product's code settles.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

Json = dict[str, Any]
Span = tuple[float, float]
Window = tuple[float, float, float]
"""First and last moment of an event, and where it is expected."""
LINGERS_S, ANSWERS_WITHIN_S = 0.5, 8.0
MAX_SPEECH_S = 300.0  # GAP: of speech whose end nobody reports


@dataclass(frozen=True, eq=False)
class Row:
    """As in the table `entries`. body: JSON, decoded."""

    seq: int
    run: int
    at_s: float
    wall_s: float
    kind: str
    body: Json

    @cached_property
    def attempt(self) -> tuple[str, int, int]:
        return self.body.get("trial_id") or "", self.body.get("take") or 0, self.body.get("attempt") or 0

    @cached_property
    def seen(self) -> Json:
        return self.body.get("observation") or {"kind": "", "source": ""}

    @cached_property
    def at(self) -> tuple[float, int]:
        """When it was seen; rows order what has one time."""
        return self.seen["at"]["at_s"], self.seq


@dataclass
class DeviceCount:
    """count: mostly as the fields of harness.wake.wake_progress.DeviceWake. speakers: speaker → [missed, wake trials];
    planned: all of the plan.

    hits: trial with a phrase that counts → row of the event that it caused. unmatched: row of an event that matched no
    stimulus → whether in vocabulary, and whether it fell into what counts.
    """

    count: Counter[str] = field(default_factory=Counter)
    exposure_s: float = 0.0
    unproven_s: float = 0.0
    delays: list[Span] = field(default_factory=list)
    speakers: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    planned: set[str] = field(default_factory=set)
    hits: dict[str, int | None] = field(default_factory=dict)
    unmatched: dict[int, tuple[bool, bool]] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """Whether results are for further voices than those of the plan."""
        return len({*self.speakers, *self.planned}) > 1


@dataclass(eq=False)
class Play:
    """An attempt as one device heard it. whole: in full. counts: and no later take or attempt replaces it.

    Times are on its line: the device's audio line, or the host's clock. stalls: of the host, in its run. listened:
    where the device was known to listen.
    """

    trial: Json
    target: Json
    row: Json
    begun: Json
    ended: Json | None
    heard: Json | None
    words: list[Json]
    whole: bool
    counts: bool
    running: bool
    stalls: Sequence[Json] = ()
    hit: Event | None = None
    listened: Sequence[Span] = ()

    def __post_init__(self) -> None:
        row, settings = self.row, self.trial["listening"]["settings"]
        self.kind: str = self.trial["listening"]["kind"]
        self.injected = self.target["player"] == self.target["connection"]
        self.wire = self.injected and self.begun["audio_s"] is not None
        self.first = first = self.begun if self.injected else self.heard or self.begun
        self.start_s: float = first["audio_s"] if self.wire else first["at"]["at_s"]
        took_s = self.ended["at"]["at_s"] - self.begun["at"]["at_s"] if self.ended else math.inf
        long_s = row["duration_s"] if self.wire else min(max(0.0, took_s), row["duration_s"])
        if self.wire and self.ended and self.ended["audio_s"] is not None:
            long_s = max(0.0, self.ended["audio_s"] - self.start_s)
        self.end_s = self.start_s + long_s
        self.rate = long_s / took_s if self.wire and 0 < took_s < math.inf and long_s > 0 else 1.0
        phrases = [] if self.kind == "ambient" else [(row["query_start_s"], row["query_end_s"])]
        before_s, after_s = self.start_s - settings["window_before_s"], self.start_s + settings["window_after_s"]
        spans = (*phrases, *row["other_phrases"])
        windows = [(before_s + start_s, after_s + end_s, self.start_s + end_s) for start_s, end_s in spans]
        self.windows, self.openings = windows[: len(phrases)], windows[len(phrases) :]
        # GAP: an event up to window_after_s past the end of ambient sound lies in its last moment.
        self.from_s = min([self.start_s, *(window[0] for window in windows)])
        self.to_s = max([self.end_s if phrases else after_s + long_s, *(window[1] for window in windows)])
        # GAP: where a phrase follows an opening, events may follow each other as fast.
        self.refractory_s: float = 0.0 if self.openings else settings["refractory_s"]

    def place(self, observation: Json) -> float:
        if not self.wire or observation.get("audio_s") is not None:
            return float(observation["audio_s"] if self.wire else observation["at"]["at_s"])
        return float(self.start_s + (observation["at"]["at_s"] - self.begun["at"]["at_s"]) * self.rate)


@dataclass(eq=False)
class Event:
    """A wake event. seen: its report with the least error. stray: shown if it lies in no play. spoken: a device spoke.

    home: the play that it belongs to. fate: hit, part (of the event `of`), opening, unmatched; "" if it counts nowhere.
    """

    seq: int
    seen: Json
    reports: list[Json]
    stray: bool
    spoken: bool
    home: Play | None = None
    place_s: float = 0.0
    fate: str = ""
    of: Event | None = None


_Heard = tuple[list[Row], list[Play], list[Event]]
"""What a device reported, heard and did in a run."""


def best_pairs(windows: Sequence[Window], times: Sequence[float]) -> list[tuple[int, int]]:
    """(window, event): as many as possible, with the least total distance from where each event is expected.

    The square settles ties: what comes earlier is matched earlier.
    """
    starts, ends, near = np.array(windows).reshape(-1, 3, 1).transpose(1, 0, 2)
    inside = (starts <= np.array(times)) & (np.array(times) <= ends)
    costs_s = np.abs(times - near)
    chosen = zip(*linear_sum_assignment(np.where(inside, costs_s + 1e-6 * costs_s**2 - 1e5, 0.0)), strict=True)
    return [(int(window), int(event)) for window, event in chosen if inside[window, event]]


def joined(spans: Iterable[Span]) -> list[Span]:
    """The union of intervals."""
    union: list[Span] = []
    for low, high in sorted(spans):
        overlaps = bool(union) and low <= union[-1][1]
        low, high = (union[-1][0], max(union.pop()[1], high)) if overlaps else (low, high)
        union.append((low, high))
    return union


def between(proofs: Iterable[tuple[float, int]], cuts: Iterable[tuple[float, int]], within_s: float) -> list[Span]:
    """Time between neighbouring proofs, unless they are too far apart or a cut lies between. (time, row) each."""
    moments, breaks = sorted(proofs), sorted(cuts)
    near = [(first, last) for first, last in pairwise(moments) if last[0] - first[0] <= within_s]
    whole = [pair for pair in near if bisect_left(breaks, pair[0]) == bisect_left(breaks, pair[1])]
    return joined([*((at_s, at_s) for at_s, _ in moments), *((first[0], last[0]) for first, last in whole)])


def _error_s(observation: Json) -> float:
    """Of its time; a place on the audio line is exact."""
    return float(observation["at"]["error_s"]) if observation["audio_s"] is None else 0.0


def _sources(target: Json) -> list[str]:
    return [source for source in (target["connection"], *target["also"]) if source]


class Recount:
    """What the rows say of the devices that listen. decisions: (device, figure) → passed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self.of = defaultdict[str, list[Row]](list)
        self._of_kind = defaultdict[str, list[Row]](list)
        for row in self.rows:
            self.of[row.attempt[0]].append(row)
            self._of_kind[row.kind].append(row)
        self.plan: dict[str, Json] = {
            trial["id"]: trial for row in self._all("session_started") for trial in row.body["trials"]
        }
        self.decisions = {
            (row.body["device"], row.body["figure"]): row.body["passed"] for row in self._all("decision_reached")
        }
        self._reviews = {row.body["event_seq"]: row.body["word"] for row in self._all("event_reviewed")}
        engines = self._all("engine_started")
        begins = [engine.seq for engine in engines]
        self._run = {row.seq: bisect_right(begins, row.seq) for row in self.rows}
        self._listening = {trial_id: trial for trial_id, trial in self.plan.items() if trial["listening"]}
        targets = [
            (target, trial["listening"])
            for trial in self._listening.values()
            for target in trial["listening"]["targets"]
        ]
        self.devices = {target["device"]: DeviceCount() for target, _ in targets}
        for trial in self._listening.values():
            for target in trial["listening"]["targets"] if trial["listening"]["kind"] == "wake" else ():
                self.devices[target["device"]].planned.add(speaker_of(trial))
        self._device_of = {source: target["device"] for target, _ in reversed(targets) for source in _sources(target)}
        lines = {name: defaultdict[tuple[int, int], list[_Heard]](list) for name in self.devices}
        boot, boots = 0, ["", *(row.body["boot_id"] for row in engines)]
        in_rooms = [row for row in self._all("observed") if row.seen["kind"] == "stimulus_heard"]
        seen_in, starts_in = defaultdict[int, list[Row]](list), defaultdict[int, list[Row]](list)
        for row in self._all("observed"):
            seen_in[self._run[row.seq]].append(row)
        for row in self._all("attempt_started"):
            if row.attempt[0] in self._listening:
                starts_in[self._run[row.seq]].append(row)
        for run in range(len(engines) + 1):
            boot += boots[run] != boots[run - 1]
            run_rows, starts = seen_in[run], starts_in[run]
            spoken = list(self._spoken(run_rows))
            # The microphone may report a sound to a later run of the same start of the host.
            in_room = [row.seen for row in in_rooms if boots[self._run[row.seq]] == boots[run]]
            stalls = [row.seen for row in run_rows if row.seen["kind"] == "host_stalled"]
            plays = [play for row in starts for play in self._plays(row, in_room, stalls, run == len(engines))]
            for name, line in lines.items():
                reports = [row for row in run_rows if self._device_of.get(row.seen["source"]) == name]
                heard = [play for play in plays if play.target["device"] == name]
                target = next(target for target, _ in targets if target["device"] == name)
                # Audio lines begin anew with a run, the host's clock with a start of the host.
                injected = target["player"] == target["connection"]
                line[boot, run if injected else 0].append((reports, heard, list(self._events(reports, target, spoken))))
        for name, line in lines.items():
            roles = [(target, listening) for target, listening in targets if target["device"] == name]
            for heard_in_runs in line.values():
                plays = [play for _, heard, _ in heard_in_runs for play in heard]
                events = [event for _, _, events in heard_in_runs for event in events]
                match(plays, events)
                for reports, heard, _ in heard_in_runs:
                    self._listened(reports, roles, heard)
                self._tally(self.devices[name], plays, events)

    def _all(self, kind: str) -> list[Row]:
        return self._of_kind[kind]

    def _plays(self, start: Row, in_room: Sequence[Json], stalls: list[Json], last_run: bool) -> Iterator[Play]:
        """What each device heard of an attempt."""
        trial = self.plan[start.attempt[0]]
        of_trial, attempt, run = self.of[trial["id"]], start.attempt, self._run[start.seq]
        later = of_trial[bisect_right(of_trial, start.seq, key=attrgetter("seq")) :]
        attempt_rows = [row for row in later if row.attempt == attempt and self._run[row.seq] == run]
        ends = [row for row in attempt_rows if row.kind == "attempt_finished"]
        attempt_rows = [row for row in attempt_rows if not ends or row.seq < ends[0].seq]
        spoken = [row.body for row in attempt_rows if row.kind == "stimulus_spoken"]
        times = {name: spoken[-1][name] for name in ("query_start_s", "query_end_s", "duration_s")} if spoken else {}
        full = ("counted", "no_wake" if trial["listening"]["kind"] == "probe" else "counted")
        whole = any(row.body["outcome"] in full for row in ends[:1])
        # Of several takes the latest finished one counts, and of a probe that was repeated the last attempt.
        replaced = any(
            (row.kind == "attempt_finished" and row.attempt != start.attempt and row.body["outcome"] in full)
            or (
                row.kind == "trial_finished"
                and row.attempt[1] > start.attempt[1]
                and row.body["outcome"] not in ("counted", "no_wake")
            )
            for row in later
        )
        heard = [observation for observation in in_room if observation["play_id"] == start.body["play_id"]]
        for target in trial["listening"]["targets"]:
            sound = {row.seen["kind"]: row.seen for row in attempt_rows if row.seen["source"] == target["player"]}
            reports = [row.seen for row in attempt_rows if row.seen["source"] in _sources(target)]
            if beginning := sound.get("stimulus_started"):
                words = [word for word in reports if word.get("final", word["kind"] == "intent")]
                row, ended, origin = {**start.body, **times}, sound.get("stimulus_ended"), heard[0] if heard else None
                running, counts = not ends and last_run, whole and not replaced
                yield Play(trial, target, row, beginning, ended, origin, words, whole, counts, running, stalls)

    def _spoken(self, rows: Sequence[Row]) -> Iterator[Span]:
        """When devices spoke in a run, by their reports or a microphone. GAP: what another run heard says nothing."""
        entries = [(row, row.seen["kind"], self._device_of.get(row.seen["source"])) for row in rows]
        woken = sorted(row.at[0] for row, kind, name in entries if kind == "wake" and name)
        moments = defaultdict[tuple[str, str], list[tuple[tuple[float, int], bool]]](list)
        for row, kind, name in entries:
            if name and kind in ("status", "link_lost"):  # GAP: speech ends with a lost link
                moments["device", name].append((row.at, row.seen.get("state") == "speaking"))
            elif kind in ("speech_started", "speech_ended"):
                answers = bisect_left(woken, row.at[0] - ANSWERS_WITHIN_S) < bisect_right(woken, row.at[0])
                moments["microphone", row.seen["source"]].append((row.at, kind == "speech_started" and answers))
        for line in map(sorted, moments.values()):
            for number, ((at_s, _), speaks) in enumerate(line, 1):
                if speaks:
                    ends_s = line[number][0][0] + LINGERS_S if number < len(line) else at_s + MAX_SPEECH_S
                    yield at_s, min(ends_s, at_s + MAX_SPEECH_S + LINGERS_S)

    def _events(self, rows: Sequence[Row], target: Json, spoken: Sequence[Span]) -> Iterator[Event]:
        """Reports of different sources within the tolerance are one event, source by source."""
        groups, within_s = list[list[Row]](), target["merge_within_s"]
        for source in _sources(target):
            new = [row for row in rows if row.seen["kind"] == "wake" and row.seen["source"] == source]
            near = [(group[0].at[0] - within_s, group[0].at[0] + within_s, group[0].at[0]) for group in groups]
            pairs = {row: group for group, row in best_pairs(near, [row.at[0] for row in new])}
            for number, row in enumerate(new):
                groups[pairs[number]].append(row) if number in pairs else groups.append([row])
        for group in groups:
            best = min(group, key=lambda row: (_error_s(row.seen), row.at[0]))
            stray = any(not row.attempt[0] or row.attempt[0] in self._listening for row in group)
            over_speech = any(low <= best.at[0] <= high for low, high in spoken)
            yield Event(min(row.seq for row in group), best.seen, [row.seen for row in group], stray, over_speech)

    def _listened(self, rows: Sequence[Row], roles: Sequence[tuple[Json, Json]], plays: Sequence[Play]) -> None:
        """Where on the line of each play of a run the device was known to listen."""
        every_s = max(listening["probe_every_s"] for _, listening in roles)
        states = {state for target, _ in roles for state in target["listening_states"]} - {"started", "gone"}
        cuts = [
            row.at for row in rows if row.seen["kind"] == "link_lost" or row.seen.get("state") in ("started", "gone")
        ]
        proofs = [row for row in rows if row.seen["kind"] == "listening_proved" or row.seen.get("state") in states]
        acknowledged = [row.seen["audio_s"] for row in proofs if row.seen.get("proof") == "acknowledged"]
        to_s = max((audio_s for audio_s in acknowledged if audio_s is not None), default=None)
        spans = between([row.at for row in proofs], cuts, roles[0][1]["settings"]["proof_within_s"])
        # A probe that was repeated in vain. Other devices may have heard it. GAP: its late hit joins nothing.
        vain = {row.attempt[0]: row.seq for row in self._all("trial_finished") if row.body["outcome"] == "no_wake"}
        last = {play.trial["id"]: play for play in plays if play.whole and play.kind == "probe"}
        cuts += [
            (play.begun["at"]["at_s"], 0)
            for trial_id, play in last.items()
            if trial_id in vain and not (play.hit and play.hit.seq < vain[trial_id])
        ]
        hits = [(play.hit.seen["at"]["at_s"], play.hit.seq) for play in plays if play.hit]
        woken = between(hits, cuts, 2 * every_s + 60.0) if every_s else []
        for play in plays:
            exact = [(play.start_s, to_s)] if play.wire and to_s is not None else []
            ends = [
                [play.place({"at": {"at_s": at_s}}) for at_s in span] for span in (*woken, *([] if exact else spans))
            ]
            play.listened = joined([*exact, *((low, high) for low, high in ends)])

    def _tally(self, device: DeviceCount, plays: Sequence[Play], events: Sequence[Event]) -> None:
        for play in (play for play in plays if play.counts):
            tally_play(device, play, [event for event in events if event.home is play], events)
        for event in events:
            home = event.home
            if not event.stray if home is None else home.running or (home.counts and event.fate != "unmatched"):
                continue
            ambient = home is None or home.kind == "ambient"
            heard = home and any(low <= min(event.place_s, home.end_s) <= high for low, high in home.listened)
            exposed = bool(home and home.counts and home.kind != "probe" and (heard or not ambient))
            device.unmatched[event.seq] = not ambient, exposed
            if home and exposed and (ambient or home.trial["listening"]["settings"]["count_in_vocabulary"]):
                self_wake = event.spoken and not home.injected
                word = self._reviews.get(event.seq) or ("self_wake" if self_wake else None)
                device.count.update(false_accepts=int(not self_wake), after_review=int(word in (None, "false_accept")))


def match(plays: Sequence[Play], events: Sequence[Event]) -> None:
    """Gives each event its home and its fate."""
    for event in events:
        # GAP: the best report places an event, else another one. Of plays that reach it, the later is its home …
        for report in (*reversed(event.reports), event.seen) if len(event.reports) > 1 else event.reports:
            at_s = report["at"]["at_s"]
            reached = [p for p in reversed(plays) if p.from_s <= (p.place(report) if p.wire else at_s) <= p.to_s]
            # An event at the first sample of a play came before it.
            after = (p for p in reached if not p.wire or report.get("audio_s") is None or report["audio_s"] > p.start_s)
            event.home = next(after, reached[0] if reached else event.home)
        event.place_s = event.home.place(event.seen) if event.home else 0.0
    # GAP: an event stays part of another one, and phrases prove listening, when the attempt is replaced later.
    for wire in (False, True):
        whole = [play for play in plays if play.whole and play.wire is wire]
        line = [event for event in events if event.home and event.home.wire is wire]
        for play in (play for play in whole if play.openings):
            own_events = [event for event in line if event.home is play]
            for window, number in best_pairs([*play.windows, *play.openings], [event.place_s for event in own_events]):
                own_events[number].fate = "opening" if window >= len(play.windows) else ""
        line = sorted((event for event in line if not event.fate), key=lambda event: event.place_s)
        for event in line:
            # … but within the window of an earlier one, it belongs to that.
            owners = (play for play in whole for first, last, _ in play.windows if first <= event.place_s <= last)
            event.home = next(owners, event.home)
        windows = [(window, play) for play in whole for window in play.windows]
        starts = [*(window for window, _ in windows), *(window for play in whole for window in play.openings)]
        last_s, separate = -math.inf, list[Event]()
        for event in (event for event in line if event.home in whole):
            after_start = any(last_s < first <= event.place_s <= last for first, last, _ in starts)
            event.fate = "unmatched"
            if event.home and event.place_s - last_s < event.home.refractory_s and not after_start:
                event.fate, event.of = "part", separate[-1]
            else:
                last_s = event.place_s
                separate.append(event)
        for number, index in best_pairs([window for window, _ in windows], [event.place_s for event in separate]):
            play, event = windows[number][1], separate[index]
            play.hit, event.home, event.fate = event, play, "hit"
        # What lies in no play that was heard in full may still be part of an event in one.
        for event in (event for event in events if not event.fate and event.home not in whole):
            place_s = event.place_s if event.home else event.seen["audio_s"] if wire else event.seen["at"]["at_s"]
            broken = event.home is not None and not event.home.running and event.home.wire is wire
            earlier = [other for other in separate if place_s is not None and other.place_s <= place_s]
            if earlier and (broken if event.home else event.stray):
                home = earlier[-1].home
                if home and place_s - earlier[-1].place_s < home.refractory_s:
                    event.home, event.fate, event.of = home, "part", earlier[-1]


def recordings_of(recipe: Json) -> list[Json]:
    return [sound for sound in (recipe["wake_phrase"], recipe["query"]) if sound and sound["kind"] == "recording"]


def speaker_of(trial: Json) -> str:
    """The talker or the voice; "" for all recordings that name no talker."""
    voice = [trial["recipe"]["voice"][name] for name in ("engine", "name", "rate_wpm", "pitch")]
    return dict(trial["conditions"]).get("talker") or ("" if recordings_of(trial["recipe"]) else str(voice))


def tally_play(device: DeviceCount, play: Play, events: Sequence[Event], every: Sequence[Event]) -> None:
    count, hit, recipe = device.count, play.hit, play.trial["recipe"]
    count["suppressed"] += sum(event.fate == "part" for event in events)
    count["of_openings"] += sum(event.fate == "opening" for event in events)
    recordings = recordings_of(recipe)
    long_s = play.end_s - play.start_s
    if play.kind == "ambient":
        heard_s = sum(max(0.0, min(high, play.end_s) - max(low, play.start_s)) for low, high in play.listened)
        device.exposure_s += heard_s
        device.unproven_s += max(0.0, long_s - heard_s)
    elif play.kind != "probe" and play.trial["listening"]["settings"]["count_in_vocabulary"]:
        spot_s = max(0.0, hit.place_s - play.start_s - play.row["query_start_s"]) if hit else 0.0
        device.exposure_s += max(0.0, long_s - spot_s)
    if play.kind != "ambient":
        device.hits[play.trial["id"]] = hit.seq if hit else None
    if play.kind == "probe":
        count.update(probes=1, probes_heard=int(hit is not None))
    elif play.kind == "command":
        # GAP: words count from the first moment of the window, in the order of their rows.
        words = [observation for observation in play.words if play.place(observation) >= play.windows[0][0]]
        words.sort(key=lambda observation: observation["kind"] != "transcript")
        count[understood(play.trial, str(words[0].get("text", words[0].get("name")))) if words else "missed"] += 1
    elif play.kind == "wake":
        speaker = speaker_of(play.trial)
        misses, plays = device.speakers[speaker]
        device.speakers[speaker] = [misses if hit else misses + 1, plays + 1]
        count.update(wake_trials=1, hits=int(hit is not None))
        if hit:
            further = [event for event in events if event is not hit and event.fate != "opening"]
            count["double_wakes"] += any(
                [*(event.place_s >= hit.place_s for event in further), *(event.of is hit for event in every)]
            )
            if not recordings or recordings[0]["phrase_end_s"] is not None:
                exact = play.wire and hit.seen["audio_s"] is not None
                ends_s = play.first["at"]["at_s"] + play.row["query_end_s"] / play.rate
                stalled_s = sum(
                    stall["lasted_s"]
                    for stall in play.stalls
                    if stall["at"]["at_s"] <= hit.seen["at"]["at_s"]
                    and ends_s <= stall["at"]["at_s"] + stall["lasted_s"]
                )
                error_s = 0.0 if exact else hit.seen["at"]["error_s"] + play.first["at"]["error_s"] + stalled_s
                device.delays.append((hit.place_s - play.windows[0][2], error_s))


def understood(trial: Json, heard: str) -> str:
    """match or substitution; unsure if the words need more than case and punctuation off."""
    texts = [heard, trial["reference"], *trial["alternatives"], *trial["wake_phrases"], trial["listening"]["phrase"]]
    if re.search(r"[^A-Za-z ,.!?]", "".join(texts)) or trial["recognised"]["wer"] or trial["recognised"]["rewriting"]:
        return "unsure"
    words, *others = [re.sub("[,.!?]", " ", text).lower().split() for text in texts]
    references, phrases = others[: 1 + len(trial["alternatives"])], others[1 + len(trial["alternatives"]) :]
    readings = [words, *(words[len(phrase) :] for phrase in phrases if phrase and words[: len(phrase)] == phrase)]
    return "match" if any(reading in references for reading in readings) else "substitution"
