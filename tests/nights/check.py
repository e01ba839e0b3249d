"""Holds the rows of a night against what really happened. Knows nothing of the product but the form of its rows.

What lies nearer to a border than the stated errors is left open. Where a device could not be heard of, it must not be
held against it. Times are of the simulated host.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.nights.evidence import EVIDENCE, signs_of
from tests.nights.rows import Row, Rows
from tests.nights.verdicts import differences, figures
from tests.nights.wire_checks import VAGUE, WIRES

MARGIN_S = 0.06
"""Beyond the stated errors: what a driver needs to start a sound."""
BEFORE_S, AFTER_S, REFRACTORY_S, PROOF_S = 0.1, 1.0, 2.0, 15.0
START_S = 3.0
"""How far the stated time of a start may lie from its moment, and its report after that."""
EDGE_S = 0.006
"""Of samples: what lies nearer to the edge of a window is left open."""
ONSET_S = 0.12
"""Speech from so long before a moment may be taken for speech after it."""
MAX_SPEECH_S = 5.0
UNSEEN_HANG_S = PROOF_S + 4.5
"""A hang up to here may lie between two signs of life."""


def broken(night: Any) -> list[str]:
    """What is wrong with a night; empty if nothing is."""
    rows = Rows(night.rows)
    problems: list[str] = []
    for check in CHECKS:
        problems += [f"{check.__name__}: {problem}" for problem in check(rows, night)]
    return problems


def order_of_rows(rows: Rows, night: Any) -> Iterator[str]:
    """seq without a gap, runs and times that never go back."""
    last_s, last_run = -math.inf, 0
    for number, row in enumerate(rows.all, 1):
        if row["seq"] != number:
            yield f"row {number} has seq {row['seq']}"
        if row["run"] < last_run or row["at_s"] < last_s:
            yield f"row {number} goes back: run {row['run']}, {row['at_s']}"
        last_s, last_run = row["at_s"], row["run"]


def acknowledged_rows(rows: Rows, night: Any) -> Iterator[str]:
    kinds = {row["seq"]: row["kind"] for row in rows.all}
    for seq, kind in night.truth.acknowledged:
        if kinds.get(seq) != kind:
            yield f"row {seq} ({kind}) was acknowledged and is {kinds.get(seq)}"


def replays(rows: Rows, night: Any) -> Iterator[str]:
    yield from night.truth.replayed


def observations_once(rows: Rows, night: Any) -> Iterator[str]:
    """What a driver reports is in the log at most as often."""
    arrived = Counter(arrival for life in night.truth.arrived for arrival in life)
    counts: Counter[str] = Counter()
    for row in rows.seen:
        observation = row["body"]["observation"]
        text = f"{sorted(observation.items())}"
        counts[text] += 1
        kind, source, at_s = observation["kind"], observation["source"], observation["at"]["at_s"]
        often = max(1, arrived[kind, source, at_s])
        if counts[text] > often:
            yield f"row {row['seq']} says again: {kind} of {source} at {at_s:.3f}"


def attempts(rows: Rows, night: Any) -> Iterator[str]:
    """Attempts are numbered without a gap, end once begun, and none follows the end of its take."""
    numbers: dict[tuple[str, int], int] = Counter()
    closed: set[tuple[str, int]] = set()
    for row in rows.all:
        body = row["body"]
        if row["kind"] == "attempt_started":
            take = (body["trial_id"], body["take"])
            if take in closed:
                yield f"{take} goes on after its end, in row {row['seq']}"
            numbers[take] += 1
            if body["attempt"] != numbers[take]:
                yield f"{take} has attempt {body['attempt']} after {numbers[take] - 1}"
        elif row["kind"] == "trial_finished":
            take = (body["trial_id"], body["take"])
            if take in closed:
                yield f"{take} ends twice"
            closed.add(take)
            if body["attempts"] != numbers[take] and body["outcome"] not in ("skipped", "aborted"):
                yield f"{take} ends after {body['attempts']} attempts, {numbers[take]} were begun"
    for key in rows.started.keys() - rows.ended.keys():
        yield f"{key} was begun and has no end"
    for key in rows.ended.keys() - rows.started.keys():
        yield f"{key} has an end and was never begun"
    play_ids = {row["body"]["play_id"] for row in rows.started.values()}
    if len(play_ids) != len(rows.started):
        yield "two attempts have one play"


def every_trial_ends(rows: Rows, night: Any) -> Iterator[str]:
    for trial in rows.plan:
        takes = rows.takes.get(trial["id"], [])
        numbers = sorted(take["take"] for take in takes)
        if night.reason == "completed" and numbers != list(range(1, len(takes) + 1)):
            yield f"{trial['id']} has takes {numbers}"
        if night.reason == "completed" and not takes:
            yield f"{trial['id']} never ended"


def plan_in_order(rows: Rows, night: Any) -> Iterator[str]:
    """First takes end in the order of the plan: a run that is resumed goes on where it was cut off."""
    order = [trial["id"] for trial in rows.plan]
    ends = [
        row["body"]["trial_id"]
        for row in rows.of["trial_finished"]
        if row["body"]["take"] == 1 and row["body"]["trial_id"] in rows.trials
    ]
    if ends != order[: len(ends)]:
        place = next(number for number, pair in enumerate(zip(ends, order, strict=False)) if pair[0] != pair[1])
        yield f"{ends[place]} ended where {order[place]} was planned"


def commands_kept(rows: Rows, night: Any) -> Iterator[str]:
    """What was acknowledged to a person is a row."""
    for command, kind in (("write_note", "note_written"), ("set_mark", "mark_set"), ("rerun", "rerun_asked")):
        answered = sum(ok for id_, (ok, _) in night.answers.items() if night.truth.commands.get(id_) == command)
        count = sum(row["body"]["by"].startswith("person") for row in rows.of[kind])
        if count < answered:
            yield f"{answered} × {command} were acknowledged, and {count} are written"


def wake_trials(rows: Rows, night: Any) -> Iterator[str]:
    """Hits and misses are what the devices did."""
    spans = _windows(rows, night)
    for device, product in night.figures["devices"].items():
        if device in _wired(night):
            yield from _wired_trials(rows, night, device)
            continue
        events = [event for event in night.truth.wakes if event["device"] == device]
        signs = [sign for sign in signs_of(rows, device) if sign["what"] != "run"]
        for trial, attempt in _phrases(rows):
            if device not in {target["device"] for target in trial["listening"]["targets"]}:
                continue
            asked_s = rows.started[trial["id"], attempt["take"], attempt["attempt"]]["at_s"]
            ends_s = rows.ended[trial["id"], attempt["take"], attempt["attempt"]]["at_s"]
            if not attempt["stimulus_sha256"] and any(asked_s < start_s < ends_s for start_s in night.truth.speech):
                continue  # nobody can tell whose voice it is that a microphone hears when a talker was asked to speak
            play = night.truth.plays.get(attempt["play_id"])
            if play is None:
                yield f"{trial['id']} counts, and {attempt['play_id']} was never played"
                continue
            if not play["complete"]:
                yield f"{trial['id']} counts, and its sound was cut"
            window = from_s, to_s = _window(play, attempt)
            close = [event for event in events if from_s - 0.3 <= event["stated_s"] <= to_s + 0.3]
            woke = product["woke"].get(trial["id"], "unknown")
            gaps = _gaps(night, device, window)
            if woke == "unknown":
                yield f"{trial['id']} counts, and not for {device}"
            elif woke is not None:
                if not close:
                    yield f"{trial['id']}: {device} did not wake, and it counts as a hit"
            elif gaps and night.settings["life_check_after"] and night.reason == "completed":
                said_s = play["start_s"] + attempt["query_end_s"]
                run = rows.run_at(play["start_s"])
                gap = next((gap for gap in gaps if _shows(gap, signs, said_s) and _visible(gap, device, night, run)), 0)
                if gap:
                    yield f"{trial['id']}: {device} could not be heard of ({gap}), and it counts as a miss"
            elif len(close) == 1 and _is_sure_hit(close[0], events, window, spans):
                yield f"{trial['id']}: {device} woke at {close[0]['stated_s']:.3f}, and it counts as a miss"


def _phrases(rows: Rows) -> Iterator[tuple[Row, Row]]:
    """The wake and command trials that count, with their attempts."""
    for trial, _, attempt in rows.counted():
        if trial["listening"]["kind"] in ("wake", "command"):
            yield trial, attempt


def _window(play: Row, attempt: Row) -> tuple[float, float]:
    """From when to when an event is a hit."""
    return play["start_s"] + attempt["query_start_s"] - BEFORE_S, play["start_s"] + attempt["query_end_s"] + AFTER_S


def _gaps(night: Any, device: str, window: tuple[float, float]) -> list[Row]:
    """When nothing could be heard of a device, in a window."""
    return [gap for gap in night.truth.deaf if gap["device"] == device and gap["why"] != "deaf"
            and gap["from_s"] < window[1] and gap["to_s"] > window[0]]  # fmt: skip


def _shows(gap: Row, signs: list[Row], said_s: float) -> bool:
    """Whether the rows show a gap before a sign proves that a phrase, said by then, was missed."""
    if any(sign["what"] != "started" and said_s <= sign["at_s"] <= gap["from_s"] for sign in signs):
        return False  # alive after the phrase: it has missed it
    # The report of a restart may come after a sign that has proved the miss, or after the session's end.
    soon = (sign for sign in signs if sign["what"] == "started" and sign["told_s"] - sign["at_s"] < START_S)
    return gap["why"] != "restart" or any(abs(sign["at_s"] - gap["to_s"]) < START_S for sign in soon)


def _is_sure_hit(event: Row, events: list[Row], window: tuple[float, float], spans: list[tuple[float, float]]) -> bool:
    """Whether an event, by its stated time, can only be a hit in this window. spans: windows of all phrases."""
    stated_s, error_s = event["stated_s"], event["error_s"] + MARGIN_S
    inside = window[0] + error_s <= stated_s <= window[1] - error_s
    alone = sum(low <= stated_s <= high for low, high in spans) == 1
    doubles = any(other is not event and 0 <= stated_s - other["stated_s"] <= REFRACTORY_S + 0.3 for other in events)
    return inside and alone and not doubles and bool(event.get("in_log"))


def _wired(night: Any) -> set[str]:
    """Devices that take the sound of these trials over their wire."""
    return {wire["device"] for wire in night.truth.wires if wire["takes_sound"]}


def _wired_trials(rows: Rows, night: Any, device: str) -> Iterator[str]:
    """Hits and misses are what the device did at these samples, which are exact."""
    woke = night.figures["devices"][device]["woke"]
    for trial, attempt in _phrases(rows):
        play = night.truth.plays.get(attempt["play_id"])
        if play is None or not play["complete"]:
            yield f"{trial['id']} counts, and {device} has not heard all of {attempt['play_id']}"
            continue
        from_s, to_s = attempt["query_start_s"] - BEFORE_S, attempt["query_end_s"] + AFTER_S
        near = [
            event
            for event in night.truth.wakes
            if event.get("in_play") == attempt["play_id"] and from_s - EDGE_S <= event["offset_s"] <= to_s + EDGE_S
        ]
        # It may report the phrase when the next sound has begun.
        events = [event for event in night.truth.wakes if event["play_id"] == attempt["play_id"]]
        sure = [event for event in near if from_s + EDGE_S <= event["offset_s"] <= to_s - EDGE_S]
        if woke.get(trial["id"]) is not None and not near and not any(event["device"] == device for event in events):
            yield f"{trial['id']}: {device} did not wake, and it counts as a hit"
        if woke.get(trial["id"]) is None and any(event.get("in_log") for event in sure) and len(near) == 1:
            yield f"{trial['id']}: {device} woke at {sure[0]['offset_s']:.3f} s, and it counts as a miss"


def _visible(gap: Row, device: str, night: Any, run: tuple[float, float] = (-math.inf, math.inf)) -> bool:
    """Whether somebody who only sees the rows of a run, between these times, can know of a gap."""
    like = next(like for like in night.settings["bench"] if like["name"] == device)
    if gap["why"] == "hung" or gap.get("unheard"):  # nobody was there to hear that it had restarted
        return bool(like["beats"]) and min(gap["to_s"], run[1]) - max(gap["from_s"], run[0]) > UNSEEN_HANG_S
    return True


def _windows(rows: Rows, night: Any) -> list[tuple[float, float]]:
    """The windows of all phrases that were played, whatever became of them."""
    plays = ((night.truth.plays.get(row["body"]["play_id"]), row["body"]) for row in rows.started.values())
    windows = (_window(play, attempt) for play, attempt in plays if play is not None)
    return [(from_s - 0.3, to_s + 0.3) for from_s, to_s in windows]


def exposure(rows: Rows, night: Any) -> Iterator[str]:
    """No device is said to have listened for longer than it did; one on a wire, which counts samples, for as long.

    GAP: between two probes that it heard, a device counts as listening although its heartbeats stopped. Some drivers
    notice that, and lose its link.
    """
    unwatched = {wire["device"] for wire in night.truth.wires if wire["how"] in ("lines", "messages")}
    for device, product in night.figures["devices"].items():
        true_s, plays = 0.0, 0
        for trial, _, attempt in rows.counted():
            if trial["listening"]["kind"] != "ambient":
                continue
            play = night.truth.plays.get(attempt["play_id"])
            if play is None:
                continue
            plays += 1
            if device in _wired(night):
                true_s += play["heard_s"]
                continue
            true_s += play["end_s"] - play["start_s"]
            for gap in night.truth.deaf:
                if gap["device"] == device and gap["why"] != "deaf":
                    probed = bool(trial["listening"]["probe_every_s"]) and device in unwatched
                    if not _visible(gap, device, night) or (gap["why"] == "hung" and probed):
                        continue
                    true_s -= max(0.0, min(play["end_s"], gap["to_s"]) - max(play["start_s"], gap["from_s"]))
        if product["exposure_s"] > true_s + 0.05 * plays + 0.5:
            yield f"{device} counts {product['exposure_s']:.1f} s of exposure, and listened for {true_s:.1f} s"
        if device in _wired(night) and product["exposure_s"] < true_s - 0.05 * plays:
            yield f"{device} counts only {product['exposure_s']:.1f} s of exposure of {true_s:.1f} s that it was sent"


def recounted(rows: Rows, night: Any) -> Iterator[str]:
    """Figures and verdicts are those that an independent count of the rows finds."""
    yield from differences(night.figures, figures(rows.recount(), night.settings["limits"], night.settings["stopping"]))


def query_attempts(rows: Rows, night: Any) -> Iterator[str]:
    """Wake delays and latencies are those of the attempt, within their stated errors."""
    queries = {trial["id"]: trial for trial in rows.plan if trial["listening"] is None}
    for key, row in rows.ended.items():
        trial, body, attempt = queries.get(key[0]), row["body"], rows.started[key]["body"]
        play = night.truth.plays.get(attempt["play_id"])
        if trial is None or play is None:
            continue
        answers = [answer for answer in night.truth.answers if answer["play_id"] == attempt["play_id"]]
        latency, query_end_s = body["latency"], play["start_s"] + attempt["query_end_s"]
        earliest_s = play.get("wake_end_s", play["start_s"]) - ONSET_S
        # An answer to an earlier attempt that comes so late that it could be this one's cannot be told from it.
        speech = [*night.truth.answers, *({"start_s": start_s} for start_s in night.truth.speech)]
        if play["player"] == "ann" and any(
            play["start_s"] - MAX_SPEECH_S < other["start_s"] < play["end_s"] for other in speech
        ):
            continue  # somebody speaks while the talker does, and a microphone hears them as one
        possible = [answer for answer in speech if answer["start_s"] >= earliest_s]
        if latency is not None:
            off_s = [latency["value_s"] - (answer["start_s"] - query_end_s) for answer in possible]
            if not any(abs(difference_s) <= latency["error_s"] + 0.005 for difference_s in off_s):
                truth = [round(answer["start_s"] - query_end_s, 3) for answer in answers]
                yield f"{key} has latency {latency['value_s']:.3f} ± {latency['error_s']:.3f} s, truth {truth}"
        delay = body["wake_delay"]
        woken = [
            event
            for event in night.truth.wakes
            if event["play_id"] == attempt["play_id"] and event["device"] == trial["device"]
        ]
        any_near = [event for event in night.truth.wakes if event["device"] == trial["device"]
                    and play["start_s"] - 0.2 - event["error_s"] <= event["at_s"]]  # fmt: skip
        if delay is not None:
            end_s = play.get("wake_end_s", math.inf)
            vague = [event["stated_s"] for event in any_near if event.get("vague") and event["wire"] in VAGUE]
            if not any(
                abs(delay["value_s"] - (at_s - end_s)) <= delay["error_s"] + 0.005
                for at_s in [*vague, *(event["at_s"] for event in any_near)]
            ):
                truth = [round(event["at_s"] - end_s, 3) for event in woken]
                yield f"{key} has wake delay {delay['value_s']:.3f} s, truth {truth}"
        if body["outcome"] == "no_wake" and any(event.get("in_log_by", math.inf) <= row["at_s"] for event in woken):
            yield f"{key} is no_wake, and {trial['device']} reported that it woke"
        if body["outcome"] in ("responded", "late") and not any(
            answer["start_s"] <= row["at_s"] for answer in possible
        ):
            yield f"{key} is {body['outcome']}, and nobody answered"


CHECKS = (
    order_of_rows, acknowledged_rows, replays, observations_once, attempts, every_trial_ends, plan_in_order,
    commands_kept, wake_trials, exposure, recounted, query_attempts, *EVIDENCE, *WIRES,
)  # fmt: skip
