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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import linear_sum_assignment

Json = dict[str, Any]
Span = tuple[float, float]
Window = tuple[float, float, float]
"""First and last moment of an event, and where it is expected."""
ANSWERED = ("responded", "late")
DECIDED = (*ANSWERED, "misheard", "no_wake", "no_response", "understood")
LINGERS_S, ANSWERS_WITHIN_S = 0.5, 8.0
LONGEST_SPEECH_S = 300.0  # GAP: of speech whose end nobody reports
BORDER = 0.01
"""A sequential test is not judged where its log likelihood ratio is nearer to a boundary."""


class Row(NamedTuple):
    """As in the table `entries`. body: JSON, decoded."""

    seq: int
    run: int
    at_s: float
    wall_s: float
    kind: str
    body: Json

    @property
    def attempt(self) -> tuple[str, int, int]:
        return self.body.get("trial_id") or "", self.body.get("take") or 0, self.body.get("attempt") or 0

    @property
    def seen(self) -> Json:
        return self.body.get("observation") or {}

    @property
    def at(self) -> tuple[float, int]:
        """When it was seen; rows order what has one time."""
        return self.seen["at"]["at_s"], self.seq


@dataclass
class TrialCount:
    """A planned trial. takes: take → outcomes of its trial_finished rows, of which there must be at most one.

    outcome: of the latest finished take. attempts: those of it that were not interrupted. open: more is to be played.
    """

    takes: dict[int, list[str]]
    open: bool
    outcome: str | None = None
    deciding: Json | None = None
    attempts: int = 0
    recognised_at: int | None = None


@dataclass
class DeviceCount:
    """count: mostly as the fields of harness.wake.wake_progress.DeviceWake. speakers: speaker → [missed, wake trials].

    woke: wake trial that counts → whether the device woke.
    """

    count: Counter[str] = field(default_factory=Counter)
    exposure_s: float = 0.0
    unproven_s: float = 0.0
    delays_s: list[float] = field(default_factory=list)
    speakers: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    woke: dict[str, bool] = field(default_factory=dict)


@dataclass(eq=False)
class Play:
    """An attempt as one device heard it. whole: in full. counts: and no later take or attempt replaces it.

    Times are on its line: the device's audio line, or the host's clock.
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
    hit: Event | None = None

    def __post_init__(self) -> None:
        row, settings = self.row, self.trial["listening"]["settings"]
        self.kind: str = self.trial["listening"]["kind"]
        self.injected = self.target["player"] == self.target["connection"]
        self.wire = self.injected and self.begun["audio_s"] is not None
        first = self.begun if self.injected else self.heard or self.begun
        self.start_s: float = first["audio_s"] if self.wire else first["at"]["at_s"]
        took_s = self.ended["at"]["at_s"] - self.begun["at"]["at_s"] if self.ended else math.inf
        long_s = row["duration_s"] if self.wire else min(max(0.0, took_s), row["duration_s"])
        if self.wire and self.ended and self.ended["audio_s"] is not None:
            long_s = max(0.0, self.ended["audio_s"] - self.start_s)
        self.end_s = self.start_s + long_s
        self.rate = long_s / took_s if self.wire and 0 < took_s < math.inf and long_s > 0 else 1.0
        phrases = [] if self.kind == "ambient" else [(row["query_start_s"], row["query_end_s"])]
        before_s, after_s = settings["window_before_s"], settings["window_after_s"]
        windows = [
            (self.start_s + start_s - before_s, self.start_s + end_s + after_s, self.start_s + end_s)
            for start_s, end_s in (*phrases, *row["other_phrases"])
        ]
        self.windows, self.openings = windows[: len(phrases)], windows[len(phrases) :]
        # GAP: an event up to window_after_s past the end of ambient sound lies in its last moment.
        self.from_s = min([self.start_s, *(window[0] for window in windows)])
        self.to_s = max([self.end_s + (0.0 if phrases else after_s), *(window[1] for window in windows)])
        # GAP: where a phrase follows an opening, events may follow each other as fast.
        self.refractory_s: float = 0.0 if self.openings else settings["refractory_s"]

    def place(self, seen: Json) -> float:
        if not self.wire or seen.get("audio_s") is not None:
            return float(seen["audio_s"] if self.wire else seen["at"]["at_s"])
        return float(self.start_s + (seen["at"]["at_s"] - self.begun["at"]["at_s"]) * self.rate)


@dataclass(eq=False)
class Event:
    """A wake event. seen: its report with the least error. stray: shown if it lies in no play.

    home: the play that it belongs to. fate: hit, part (of another event), opening, unmatched; "" if it counts nowhere.
    """

    seq: int
    seen: Json
    reports: list[Json]
    stray: bool
    home: Play | None = None
    place_s: float = 0.0
    fate: str = ""


def best_pairs(windows: Sequence[Window], times: Sequence[float]) -> list[tuple[int, int]]:
    """One to one, as many as possible, with the least total distance from where each event is expected."""
    starts, ends, near = (
        np.array(column).reshape(-1, 1) for column in (zip(*windows, strict=True) if windows else [[]] * 3)
    )
    at_s = np.array(times)
    inside = (starts <= at_s) & (at_s <= ends)
    chosen = zip(*linear_sum_assignment(np.where(inside, np.abs(at_s - near) - 1e5, 0.0)), strict=True)
    return [(int(window), int(event)) for window, event in chosen if inside[window, event]]


def joined(spans: Iterable[Span]) -> list[Span]:
    """The union of intervals."""
    union: list[Span] = []
    for low, high in sorted(spans):
        if union and low <= union[-1][1]:
            union[-1] = union[-1][0], max(union[-1][1], high)
        else:
            union.append((low, high))
    return union


def between(proofs: Iterable[tuple[float, int]], cuts: Iterable[tuple[float, int]], within_s: float) -> list[Span]:
    """Time between neighbouring proofs, unless they are too far apart or a cut lies between. (time, row) each."""
    moments, breaks = sorted(proofs), sorted(cuts)
    spans = [(at_s, at_s) for at_s, _ in moments]
    for first, last in zip(moments, moments[1:], strict=False):
        if last[0] - first[0] <= within_s and bisect_left(breaks, first) == bisect_left(breaks, last):
            spans.append((first[0], last[0]))
    return joined(spans)


class Recount:
    """What the rows amount to: trials, and devices where any listens. decisions: (device, figure) → passed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        kinds = defaultdict[str, list[Row]](list)
        self._of = defaultdict[tuple[str, int, int], list[Row]](list)
        for row in self.rows:
            kinds[row.kind].append(row)
            self._of[row.attempt].append(row)
        self.plan: dict[str, Json] = {
            trial["id"]: trial for row in kinds["session_started"] for trial in row.body["trials"]
        }
        self.trials = {trial_id: self._trial(trial_id) for trial_id in self.plan}
        decided = [row.body for row in kinds["decision_reached"]]
        self.decisions = {(row["device"], row["figure"]): row["passed"] for row in decided}
        self._reviews = {row.body["event_seq"]: row.body["word"] for row in kinds["event_reviewed"]}
        self._engines = [row.seq for row in kinds["engine_started"]]
        self._boots = ["", *(row.body["boot_id"] for row in kinds["engine_started"])]
        self._seen = defaultdict[int, list[Row]](list)
        for row in kinds["observed"]:
            self._seen[self._run(row)].append(row)
        self._listening = {trial_id: trial for trial_id, trial in self.plan.items() if trial["listening"]}
        self._targets = defaultdict[str, list[tuple[Json, Json]]](list)
        for listening in (trial["listening"] for trial in self._listening.values()):
            for target in listening["targets"]:
                self._targets[target["device"]].append((target, listening))
        self._device_of = {
            source: name for name, [(target, _), *_] in self._targets.items() for source in _sources(target)
        }
        self._speech = {boot: list(self._spoken(boot)) for boot in self._boots}
        plays = [self._played(row) for row in kinds["attempt_started"] if row.body["trial_id"] in self._listening]
        self.devices: dict[str, DeviceCount] = {}
        for name in self._targets:
            self.devices[name] = DeviceCount()
            for run in self._seen:
                self._tally(
                    name,
                    run,
                    [play for number, some in plays if number == run for play in some if play.target["device"] == name],
                )

    def _run(self, row: Row) -> int:
        return bisect_right(self._engines, row.seq)

    # Trials

    def _trial(self, trial_id: str) -> TrialCount:
        takes: dict[int, list[Json]] = {}
        verdicts = defaultdict[int, dict[int, Json | None]](dict)
        for (of, take, attempt), rows in self._of.items():
            for row in rows if of == trial_id else ():
                if row.kind in ("trial_started", "rerun_asked", "trial_finished"):
                    takes.setdefault(take, []).extend([row.body] if row.kind == "trial_finished" else [])
                elif row.kind in ("attempt_started", "attempt_finished"):
                    verdicts[take][attempt] = row.body if row.kind == "attempt_finished" else None
        ends = {take: [end["outcome"] for end in rows] for take, rows in sorted(takes.items())}
        trial = TrialCount(ends, not ends or not all(ends.values()))
        if latest := max((take for take, outcomes in ends.items() if outcomes), default=0):
            end = takes[latest][-1]
            trial.outcome, trial.deciding = end["outcome"], verdicts[latest].get(end["deciding_attempt"])
            tested = [number for number, row in verdicts[latest].items() if not row or row["outcome"] != "interrupted"]
            trial.attempts = len(tested)
            if trial.deciding and trial.deciding["recognition"] == "yes":
                trial.recognised_at = 1 + sum(number < end["deciding_attempt"] for number in tested)
        return trial

    def totals(self) -> Json:
        """As harness.session.figures.progress.Totals. A share is (count, total)."""
        ended = [(self.plan[trial_id], trial) for trial_id, trial in self.trials.items() if trial.outcome]
        own = [(plan, trial) for plan, trial in ended if plan["memory"] is None]
        decided = [(plan, trial) for plan, trial in own if trial.outcome in DECIDED and not plan["listening"]]
        by_words = [of for plan, of in decided if not plan["expects"] or plan["reprompt"]["until"] == "recognised"]
        assessed = sum((trial.deciding or {}).get("recognition") != "not_assessed" for trial in by_words)
        needed = Counter(trial.recognised_at for trial in by_words if trial.recognised_at)
        answered = [trial.outcome in ANSWERED for plan, trial in decided if plan["responds"]]
        latencies = [(trial.deciding or {}).get("latency") for _, trial in own if trial.outcome in ANSWERED]
        return {
            "planned": len(self.plan),
            "finished": len(ended),
            "by_outcome": dict(Counter(str(trial.outcome) for _, trial in ended)),
            "recognised": (needed.total(), assessed),
            "first_attempt": (needed[1], assessed),
            "answered": (sum(answered), len(answered)),
            "latencies_s": sorted(latency["value_s"] for latency in latencies if latency),
        }

    # Devices

    def _played(self, start: Row) -> tuple[int, list[Play]]:
        """The run, and what each device heard of an attempt."""
        trial, run, rows = self.plan[start.body["trial_id"]], self._run(start), self._of[start.attempt]
        end = next((row for row in rows if row.kind == "attempt_finished" and self._run(row) == run), None)
        rows = [row for row in rows if start.seq < row.seq < (end.seq if end else math.inf) and self._run(row) == run]
        spoken = [row.body for row in rows if row.kind == "stimulus_spoken"]
        times = {name: spoken[-1][name] for name in ("query_start_s", "query_end_s", "duration_s")} if spoken else {}
        whole = end is not None and self._is_whole(end)
        # Of several takes the latest finished one counts, and of a probe that was repeated the last attempt.
        takes = [row for (of, _, _), some in self._of.items() for row in some if of == trial["id"]]
        replaced = any(
            row.seq > start.seq and row.attempt != start.attempt and self._is_whole(row)
            or row.kind == "trial_finished" and row.body["take"] > start.body["take"] and row.body["outcome"] not in ("counted", "no_wake")
            for row in takes
        )  # fmt: skip
        heard = [row.seen for row in self._seen[run] if row.seen["kind"] == "stimulus_heard"]
        heard = [seen for seen in heard if seen["play_id"] == start.body["play_id"]]
        plays = []
        for target in trial["listening"]["targets"]:
            sound = {row.seen["kind"]: row.seen for row in rows if row.seen.get("source") == target["player"]}
            words = [row.seen for row in rows if row.seen.get("source") in _sources(target)]
            if "stimulus_started" in sound:
                plays.append(Play(
                    trial, target, {**start.body, **times}, sound["stimulus_started"], sound.get("stimulus_ended"),
                    next(iter(heard), None), [seen for seen in words if seen.get("final", seen["kind"] == "intent")],
                    whole, whole and not replaced, end is None and run == len(self._engines),
                ))  # fmt: skip
        return run, plays

    def _is_whole(self, row: Row) -> bool:
        probe = self.plan[row.body["trial_id"]]["listening"]["kind"] == "probe"
        return row.kind == "attempt_finished" and row.body["outcome"] in ("counted", "no_wake" if probe else "")

    def _spoken(self, boot: str) -> Iterator[Span]:
        """When devices spoke, by their reports or a microphone; the clock goes on from run to run of one boot."""
        rows = [row for run, seen in self._seen.items() if self._boots[run] == boot for row in seen]
        woken = sorted(
            row.at[0] for row in rows if row.seen["kind"] == "wake" and row.seen["source"] in self._device_of
        )
        moments = defaultdict[tuple[str, str], list[tuple[tuple[float, int], bool]]](list)
        for row in rows:
            name, kind = self._device_of.get(row.seen["source"]), row.seen["kind"]
            if name and kind in ("status", "link_lost"):  # GAP: speech ends with a lost link
                moments["device", name].append((row.at, row.seen.get("state") == "speaking"))
            elif kind in ("speech_started", "speech_ended"):
                before_s = row.at[0] - ANSWERS_WITHIN_S
                answers = bisect_left(woken, before_s) < bisect_right(woken, row.at[0])
                moments["microphone", row.seen["source"]].append((row.at, kind == "speech_started" and answers))
        for line in map(sorted, moments.values()):
            for number, ((at_s, _), speaks) in enumerate(line, 1):
                if speaks:
                    yield at_s, line[number][0][0] + LINGERS_S if number < len(line) else at_s + LONGEST_SPEECH_S

    def _events(self, name: str, run: int) -> Iterator[Event]:
        """Reports of different sources within the tolerance are one event, source by source."""
        target = self._targets[name][0][0]
        reports = [
            row
            for row in self._seen[run]
            if row.seen["kind"] == "wake" and self._device_of.get(row.seen["source"]) == name
        ]
        groups: list[list[Row]] = []
        for source in _sources(target):
            new = [row for row in reports if row.seen["source"] == source]
            near_s, within_s = [group[0].at[0] for group in groups], target["merge_within_s"]
            pairs = best_pairs(
                [(at_s - within_s, at_s + within_s, at_s) for at_s in near_s], [row.at[0] for row in new]
            )
            for group, row in pairs:
                groups[group].append(new[row])
            paired = {row for _, row in pairs}
            groups += [[row] for number, row in enumerate(new) if number not in paired]
        for group in groups:
            # A place on the audio line is exact.
            errors = [
                (0.0 if row.seen["audio_s"] is not None else row.seen["at"]["error_s"], row.at[0]) for row in group
            ]
            best = group[errors.index(min(errors))].seen
            stray = any(not row.body["trial_id"] or row.body["trial_id"] in self._listening for row in group)
            yield Event(min(row.seq for row in group), best, [row.seen for row in group], stray)

    def _match(self, plays: Sequence[Play], events: Sequence[Event]) -> None:
        for event in events:
            # GAP: each report of an event can place it. Of plays that reach it, the later one is its home …
            for play in plays:
                if any(play.from_s <= play.place(seen) <= play.to_s for seen in (event.seen, *event.reports)):
                    event.home, event.place_s = play, play.place(event.seen)
        for wire in (False, True):
            whole = [play for play in plays if play.whole and play.wire is wire]
            line = [event for event in events if event.home and event.home.wire is wire]
            for play in (play for play in whole if play.openings):
                own = [event for event in line if event.home is play]
                for window, number in best_pairs([*play.windows, *play.openings], [event.place_s for event in own]):
                    own[number].fate = "opening" if window >= len(play.windows) else ""
            for event in line:
                # … but within the window of an earlier one, it belongs to that.
                owners = [play for play in whole for first, last, _ in play.windows if first <= event.place_s <= last]
                event.home = owners[0] if owners and not event.fate else event.home
            line = sorted(
                (event for event in line if event.home in whole and not event.fate), key=lambda event: event.place_s
            )
            starts = sorted((window[0], window[1]) for play in whole for window in (*play.windows, *play.openings))
            separate: list[Event] = []
            for event in line:
                last_s = separate[-1].place_s if separate else -math.inf
                opened = any(last_s < first <= event.place_s <= last for first, last in starts)
                if event.home and event.place_s - last_s < event.home.refractory_s and not opened:
                    event.fate = "part"
                else:
                    event.fate = "unmatched"
                    separate.append(event)
            phrases = [(window, play) for play in whole for window in play.windows]
            for number, index in best_pairs([window for window, _ in phrases], [event.place_s for event in separate]):
                play, event = phrases[number][1], separate[index]
                play.hit, event.home, event.fate = event, play, "hit"

    def _listened(self, name: str, run: int, plays: Sequence[Play]) -> Callable[[Play], list[Span]]:
        """Where on the line of a play the device was known to listen."""
        listenings = [listening for _, listening in self._targets[name]]
        states = {state for target, _ in self._targets[name] for state in target["listening_states"]} - {
            "started",
            "gone",
        }
        every_s = max(listening["probe_every_s"] for listening in listenings)
        rows = [row for row in self._seen[run] if self._device_of.get(row.seen["source"]) == name]
        cuts = [
            row.at for row in rows if row.seen["kind"] == "link_lost" or row.seen.get("state") in ("started", "gone")
        ]
        proofs = [row for row in rows if row.seen["kind"] == "listening_proved" or row.seen.get("state") in states]
        acknowledged = [
            row.seen["audio_s"]
            for row in proofs
            if row.seen.get("proof") == "acknowledged" and row.seen["audio_s"] is not None
        ]
        own = between([row.at for row in proofs], cuts, listenings[0]["settings"]["proof_within_s"])
        # A probe that was repeated in vain. Other devices may have heard it.
        vain = {
            row.body["trial_id"]
            for row in self.rows
            if row.kind == "trial_finished" and row.body["outcome"] == "no_wake"
        }
        last = {
            play.trial["id"]: play for play in plays if play.whole and play.kind == "probe" and play.trial["id"] in vain
        }
        cuts += [(play.begun["at"]["at_s"], 0) for play in last.values() if not play.hit]
        woken = [(play.hit.seen["at"]["at_s"], play.hit.seq) for play in plays if play.hit]
        woken_spans = between(woken, cuts, 2 * every_s + 60.0) if every_s else []

        def spans(play: Play) -> list[Span]:
            exact = play.wire and bool(acknowledged)
            placed = [
                [play.place({"at": {"at_s": at_s}}) for at_s in span]
                for span in (*woken_spans, *([] if exact else own))
            ]
            return joined(
                [*((low, high) for low, high in placed), *([(play.start_s, max(acknowledged))] if exact else [])]
            )

        return spans

    def _tally(self, name: str, run: int, plays: Sequence[Play]) -> None:
        device, events = self.devices[name], list(self._events(name, run))
        self._match(plays, events)
        listened = self._listened(name, run, plays)
        for play in (play for play in plays if play.counts):
            self._tally_play(device, play, [event for event in events if event.home is play], listened(play))
        for event in events:
            play = event.home
            ambient, counts = play is None or play.kind == "ambient", play is not None and play.counts
            if (play.running if play else not event.stray) or (counts and event.fate != "unmatched"):
                continue
            if not (
                counts
                and play
                and (not ambient or any(low <= min(event.place_s, play.end_s) <= high for low, high in listened(play)))
            ):
                device.count["ambient_events_outside" if ambient else "uncounted_events"] += 1
                continue
            device.count["in_vocabulary_events"] += not ambient
            at_s = event.seen["at"]["at_s"]
            self_wake = not play.injected and any(low <= at_s <= high for low, high in self._speech[self._boots[run]])
            if ambient or play.trial["listening"]["settings"]["count_in_vocabulary"]:
                device.count["false_accepts"] += not self_wake
                word = self._reviews.get(event.seq) or ("self_wake" if self_wake else None)
                device.count["after_review"] += word in (None, "false_accept")

    def _tally_play(self, device: DeviceCount, play: Play, own: Sequence[Event], listened: Sequence[Span]) -> None:
        device.count["suppressed"] += sum(event.fate == "part" for event in own)
        device.count["of_openings"] += sum(event.fate == "opening" for event in own)
        long_s, hit = play.end_s - play.start_s, play.hit
        if play.kind == "ambient":
            heard_s = sum(max(0.0, min(high, play.end_s) - max(low, play.start_s)) for low, high in listened)
            device.exposure_s += heard_s
            device.unproven_s += max(0.0, long_s - heard_s)
        elif play.trial["listening"]["settings"]["count_in_vocabulary"]:
            # GAP: the sound of probes counts, too.
            spot_s = max(0.0, hit.place_s - play.start_s - play.row["query_start_s"]) if hit else 0.0
            device.exposure_s += max(0.0, long_s - spot_s)
        if play.kind == "probe":
            device.count.update(probes=1, probes_heard=int(hit is not None))
        elif play.kind == "command":
            # GAP: words count from the first moment of the window, in the order of their rows.
            words = [seen for seen in play.words if play.place(seen) >= play.windows[0][0]]
            words.sort(key=lambda seen: seen["kind"] != "transcript")
            device.count[understood(play.trial, words[0].get("text", words[0].get("name"))) if words else "missed"] += 1
        elif play.kind == "wake":
            device.woke[play.trial["id"]] = hit is not None
            speaker = device.speakers[speaker_of(play.trial)]
            speaker[0], speaker[1] = speaker[0] + (hit is None), speaker[1] + 1
            device.count.update(wake_trials=1, hits=int(hit is not None))
            if hit:
                device.count["double_wakes"] += any(
                    event.place_s >= hit.place_s and event is not hit and event.fate != "opening" for event in own
                )
                recipe = play.trial["recipe"]
                recordings = [
                    sound
                    for sound in (recipe["wake_phrase"], recipe["query"])
                    if sound and sound["kind"] == "recording"
                ]
                if not recordings or recordings[0]["phrase_end_s"] is not None:
                    device.delays_s.append(hit.place_s - play.windows[0][2])


def _sources(target: Json) -> list[str]:
    return [source for source in (target["connection"], *target["also"]) if source]


def speaker_of(trial: Json) -> str:
    """Who speaks: a talker of a list, a recording, or a voice."""
    recipe, voice = trial["recipe"], trial["recipe"]["voice"]
    files = [
        sound["path"] for sound in (recipe["wake_phrase"], recipe["query"]) if sound and sound["kind"] == "recording"
    ]
    named = [voice["engine"], voice["name"], voice["rate_wpm"], voice["pitch"]]
    return str(dict(trial["conditions"]).get("talker") or (files or [named])[0])


def understood(trial: Json, heard: str) -> str:
    """match or substitution; unsure if the words need more than case and punctuation off."""
    texts = [heard, trial["reference"], *trial["alternatives"], *trial["wake_phrases"], trial["listening"]["phrase"]]
    if re.search(r"[^A-Za-z ,.!?]", "".join(texts)) or trial["recognised"]["wer"] or trial["recognised"]["rewriting"]:
        return "unsure"
    words, *others = [re.sub("[,.!?]", " ", text).lower().split() for text in texts]
    references, phrases = others[: 1 + len(trial["alternatives"])], others[1 + len(trial["alternatives"]) :]
    readings = [words, *(words[len(phrase) :] for phrase in phrases if phrase and words[: len(phrase)] == phrase)]
    return "match" if any(reading in references for reading in readings) else "substitution"


# Verdicts


def upper_share(speakers: Iterable[Sequence[int]]) -> float | None:
    """Upper end of the 95 % interval of a share. speakers: (count, total) of each.

    Clopper-Pearson, and over several speakers of as many independent trials as have the same variance (Korn & Graubard).
    GAP: the variance is the delete-one one, and the degrees of freedom those of the effective number of speakers.
    """
    counts, totals = np.array([[*speaker] for speaker in speakers if speaker[1]], float).reshape(-1, 2).T
    count, total = counts.sum(), totals.sum()
    if not total:
        return None
    share, units = count / total, total
    if len(totals) > 1:
        moves = (counts - share * totals) / (total - totals)
        alone = share * (1 - share) / total
        variance = (1 - 1 / len(totals)) * (moves**2).sum()
        quantiles = stats.t.ppf(0.975, [max(1.0, total - 1), max(1.0, total**2 / (totals**2).sum() - 1)])
        units = total / (max(1.0, variance / alone) if alone else 1.0) * (quantiles[0] / quantiles[1]) ** 2
    return 1.0 if count == total else float(stats.beta.ppf(0.975, share * units + 1, (1 - share) * units))


def percentile_95(values: Sequence[float]) -> float | None:
    return sorted(values)[math.ceil(0.95 * len(values) - 1e-9) - 1] if values else None


@cache
def boundaries(good: float, bad: float, alpha: float, beta: float, rate: bool) -> Span:
    """Log likelihood ratios at which a device passes and fails."""
    passes, fails = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    chance = _good_passes(good, bad, passes, fails, rate)
    if 1 - chance > alpha:  # GAP: another boundary if Wald's does not keep alpha
        fails = -math.log(alpha)
        chance = _good_passes(good, bad, passes, fails, rate)
    return math.log(beta / max(chance, 1 - alpha)), fails


def _good_passes(good: float, bad: float, passes: float, fails: float, rate: bool) -> float:
    """The exact probability that a good device passes.

    After each step or time the states are numbers of events. A rate is worked out from one time to the next at which a
    number of events passes or no longer fails.
    """
    up, down = math.log(bad / good), bad - good if rate else math.log((1 - good) / (1 - bad))
    alive, passed, now = {0: 1.0}, 0.0, 0.0
    up += 0.0 if rate else down
    while sum(alive.values()) > 1e-10:
        most = math.ceil((fails + down * now) / up - 1e-12) - 1  # at `now`
        if rate:
            later = min((min(alive) * up - passes) / down, ((most + 1) * up - fails) / down)
            mean, after = good * (later - now), defaultdict[int, float](float)
            for count, likely in alive.items():
                for more in range(most - count + 1):
                    after[count + more] += likely * math.exp(-mean) * mean**more / math.factorial(more)
        else:
            later, after = now + 1, defaultdict[int, float](float)
            most = math.ceil((fails + down * later) / up - 1e-12) - 1
            for count, likely in alive.items():
                after[count] += likely * (1 - good)
                after[count + 1] += likely * good if count < most else 0.0
        passed += sum(likely for count, likely in after.items() if count * up - down * later <= passes + 1e-12)
        alive = {count: likely for count, likely in after.items() if count * up - down * later > passes + 1e-12}
        now = later
    return passed


def tests(device: DeviceCount, stopping: Json) -> dict[str, bool | None]:
    """What sequential tests have decided: false_accepts, false_rejects → passed. None: too near to a boundary."""
    decided: dict[str, bool | None] = {}
    missed = device.count["wake_trials"] - device.count["hits"]
    for figure, count, more in (
        ("false_accepts", device.count["after_review"], device.exposure_s / 3600),
        ("false_rejects", missed, device.count["hits"]),
    ):
        if test := stopping.get(figure):
            good, bad = test["good"], test["bad"]
            rate = figure == "false_accepts"
            passes, fails = boundaries(good, bad, test.get("alpha", 0.05), test.get("beta", 0.05), rate)
            ratio = count * math.log(bad / good) - more * (bad - good if rate else math.log((1 - good) / (1 - bad)))
            if min(abs(ratio - passes), abs(ratio - fails)) < BORDER:
                decided[figure] = None
            elif not passes < ratio < fails:
                decided[figure] = ratio <= passes
    return decided


def due_decisions(rows: Sequence[Row], stopping: Json) -> dict[tuple[str, str], tuple[int, bool | None]]:
    """(device, figure) → row after which its decision is due, and whether it passed.

    Asked for when a run begins, and after each wake, command and ambient trial that was played.
    """
    due: dict[tuple[str, str], tuple[int, bool | None]] = {}
    plan = {trial["id"]: trial for row in rows if row.kind == "session_started" for trial in row.body["trials"]}
    for number, row in enumerate(rows, 1):
        listening = plan.get(row.attempt[0], {}).get("listening")
        played = (
            row.kind == "trial_finished"
            and listening
            and row.body["attempts"]
            and not row.body["cause"].startswith("needless")
        )
        if played or row.kind == "engine_started":
            for name, device in Recount(rows[:number]).devices.items():
                for figure, passed in tests(device, stopping).items():
                    due.setdefault((name, figure), (row.seq, passed))
    return due


def limit_verdicts(recount: Recount, limits: Json, stopping: Json) -> dict[str, bool]:
    """Declared limits → held, by the names of harness.session.figures.progress. Those on words, intents and effects are
    left out."""
    totals = recount.totals()

    def share(pair: Sequence[float]) -> float | None:
        return pair[0] / pair[1] if pair[1] else None

    def ms(value_s: float | None) -> float | None:
        return None if value_s is None else value_s * 1000

    values: dict[str, float | None] = {
        "min_recognised_share": share(totals["recognised"]),
        "min_first_attempt_share": share(totals["first_attempt"]),
        "max_latency_p95_ms": ms(percentile_95(totals["latencies_s"])),
        "max_inconclusive": totals["by_outcome"].get("inconclusive", 0),
        "max_interrupted": totals["by_outcome"].get("interrupted", 0),
    }
    found = {}
    for name, device in recount.devices.items():
        count, hours = device.count, device.exposure_s / 3600
        accepts, missed = count["after_review"], count["wake_trials"] - count["hits"]
        values |= {
            f"max_false_reject_share[{name}]": share((missed, count["wake_trials"])),
            f"max_false_reject_upper[{name}]": upper_share(device.speakers.values()),
            f"max_false_accepts_per_hour[{name}]": share((accepts, hours)),
            f"max_false_accepts_upper_per_hour[{name}]": share((stats.chi2.ppf(0.975, 2 * accepts + 2) / 2, hours)),
            f"min_exposure_hours[{name}]": hours,
            f"min_command_share[{name}]": share(
                (count["match"], count["match"] + count["substitution"] + count["missed"])
            ),
            f"max_wake_delay_p95_ms[{name}]": ms(percentile_95(device.delays_s)),
        }
        for figure in ("false_accepts", "false_rejects"):
            passed = recount.decisions.get((name, figure))
            if passed is not None or stopping.get(figure):
                found[f"{figure}_test[{name}]"] = stopping.get("on_undecided") == "pass" if passed is None else passed
    for name, value in values.items():
        wanted = limits.get(name.partition("[")[0])
        if wanted is not None:
            found[name] = value is not None and (value >= wanted if name.startswith("min") else value <= wanted)
    return found
