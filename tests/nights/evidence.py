"""What the rows of a night say of the product's decisions: when it waits, repeats, takes back, decides and stops.

Each invariant follows from the docs and is held against the rows alone, or against what really arrived.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.nights.rows import Key, Row, Rows, key_of, sources_of
from tests.nights.verdicts import decided, looks

SLACK_S = 0.15
"""What a row may be late on a host that is not slow."""
PROOF_S = 15.0
LIFE_CHECK_BY = "the life check"
SIGNS = ("wake", "transcript", "intent", "response_text", "status", "listening_proved", "state_told", "unread")
ANSWERED = ("responded", "late", "inconclusive", "counted", "understood")
PROMPT_SLACK_S = 0.5
STREAM_GAP_S = (0.3, 1.2)
CONTAINED_S = 2.5
"""A clip surely contains what its device did in so long before and after its event."""


def verdicts_follow_from_attempts(rows: Rows, night: Any) -> Iterator[str]:
    """A trial that was not answered had all its attempts; interrupted ones are not among them."""
    for row in rows.of["trial_finished"]:
        body = row["body"]
        rule = rows.trials[body["trial_id"]]["reprompt"] if body["trial_id"] in rows.trials else None
        take = (body["trial_id"], body["take"])
        ends = [end["body"] for key, end in rows.ended.items() if key[:2] == take and end["seq"] < row["seq"]]
        whole = [end for end in ends if end["outcome"] != "interrupted"]
        if rule is None:
            continue
        if body["outcome"] in ("no_wake", "no_response", "misheard") and len(whole) < rule["max_attempts"]:
            yield f"{take} ends as {body['outcome']} after {len(whole)} of {rule['max_attempts']} attempts"
        cut = [end for end in ends if end["outcome"] == "interrupted" and not end["cause"].startswith("engine_ended")]
        if body["cause"].startswith("too_many_interruptions") and len(cut) <= rule["max_interruptions"]:
            yield f"{take} was given up after {len(cut)} interruptions"
        if body["deciding_attempt"] is not None:
            end = rows.ended.get((*take, body["deciding_attempt"]))
            if end is None or (end["seq"] < row["seq"] and end["body"]["outcome"] != body["outcome"]):
                yield f"{take} is {body['outcome']}, its deciding attempt is not"


def verdicts_once(rows: Rows, night: Any) -> Iterator[str]:
    """A verdict is written again only if it changed."""
    last: dict[Key, Row] = {}
    for row in rows.of["attempt_finished"]:
        if last.get(key_of(row)) == row["body"]:
            yield f"row {row['seq']} says again how {key_of(row)} ended"
        last[key_of(row)] = row["body"]


def begun_trials_end(rows: Rows, night: Any) -> Iterator[str]:
    """At the end of a session, however it ends, no trial that was begun is open."""
    if night.reason in ("completed", "aborted"):
        starts = {(row["body"]["trial_id"], row["body"]["take"]) for row in rows.of["trial_started"]}
        ended = {(row["body"]["trial_id"], row["body"]["take"]) for row in rows.of["trial_finished"]}
        yield from (f"{take} was begun and never ended" for take in sorted(starts - ended))


def restarts_interrupt(rows: Rows, night: Any) -> Iterator[str]:
    """A restart of its device during an attempt interrupts it."""
    open_key: Key | None = None
    restarted = is_asked = False
    for row in rows.all:
        body = row["body"]
        if row["kind"] in ("attempt_started", "engine_started"):
            open_key = key_of(row) if row["kind"] == "attempt_started" else None
            restarted = is_asked = False
        elif row["kind"] == "operator_asked":
            is_asked = True
        elif row["kind"] == "observed" and open_key is not None and open_key[0] in rows.trials:
            observation, trial = body["observation"], rows.trials[open_key[0]]
            names = {target["device"] for target in (trial["listening"] or {"targets": [trial]})["targets"]}
            sources = set().union(*(sources_of(trial, name) for name in names))
            if (
                observation["kind"] == "status"
                and observation["state"] in ("started", "gone")
                and observation["source"] in sources
            ):
                restarted |= not is_asked
        elif row["kind"] == "attempt_finished" and key_of(row) == open_key:
            if restarted and body["outcome"] not in ("interrupted", "skipped", "aborted"):
                yield f"{open_key} is {body['outcome']}, although its device restarted meanwhile"
            open_key = None


def flawed_phrases_are_repeated(rows: Rows, night: Any) -> Iterator[str]:
    """A phrase that was played with a gap does not count."""
    for key, row in rows.ended.items():
        trial, attempt = rows.trials.get(key[0]), rows.started[key]["body"]
        sound = rows.sound[attempt["play_id"]]
        if trial is None or trial["listening"] is None or row["body"]["outcome"] not in ("counted", "no_wake"):
            continue
        if trial["listening"]["kind"] == "ambient" or len(sound.keys() & {"stimulus_started", "stimulus_ended"}) < 2:
            continue
        if sound["stimulus_started"]["audio_s"] is not None:
            continue  # over a wire, sound takes as long as it takes
        start, ended = sound["stimulus_started"]["at"], sound["stimulus_ended"]["at"]
        over_s = ended["at_s"] - start["at_s"] - attempt["duration_s"] - start["error_s"] - ended["error_s"]
        if over_s > 0.11:
            yield f"{key} counts, and its sound took {over_s:.2f} s too long"
        late = [
            observed
            for observed in rows.seen
            if (observation := observed["body"]["observation"])["kind"] == "overrun"
            and observation["source"] == trial["loudspeaker"]
            and key_of(observed) == key
            and observation["at"]["at_s"] < ended["at_s"]
        ]
        if late:
            yield f"{key} counts, and row {late[0]['seq']} says that it was played with a gap"


def responses_without_gaps(rows: Rows, night: Any) -> Iterator[str]:
    """What the microphone heard where its recording has a gap is no response."""
    gaps_s = [
        (row["seq"], observation["at"]["at_s"])
        for row in rows.seen
        if (observation := row["body"]["observation"])["kind"] == "overrun" and observation["source"] == "mic"
    ]
    for row in rows.of["response_frozen"]:
        starts_s, key = row["body"]["starts"]["at_s"], key_of(row)
        first = rows.started[key]["seq"]
        low_s, high_s = starts_s - STREAM_GAP_S[0], starts_s + STREAM_GAP_S[1]
        if any(first < seq < row["seq"] - 1 and low_s < at_s < high_s for seq, at_s in gaps_s):
            yield f"{key} has a response where the recording has a gap"


def probes_are_heard(rows: Rows, night: Any) -> Iterator[str]:
    """A probe counts as heard if every device woke within its window, and only then."""
    for key, row in rows.ended.items():
        trial = rows.trials.get(key[0])
        if trial is None or trial["listening"] is None or trial["listening"]["kind"] != "probe":
            continue
        attempt, settings = rows.started[key]["body"], trial["listening"]["settings"]
        sound = rows.sound[attempt["play_id"]]
        origin = sound.get("stimulus_started")
        if origin is None or row["body"]["outcome"] not in ("counted", "no_wake"):
            continue
        wired = origin["audio_s"] is not None
        begun_s = origin["audio_s"] if wired else origin["at"]["at_s"]
        low_s = begun_s + attempt["query_start_s"] - settings["window_before_s"]
        high_s = begun_s + attempt["query_end_s"] + settings["window_after_s"]
        for target in trial["listening"]["targets"]:
            times_s = [
                observation["audio_s"] if wired else observation["at"]["at_s"]
                for observed in rows.seen
                if rows.started[key]["seq"] < observed["seq"] < row["seq"]
                and (observation := observed["body"]["observation"])["kind"] == "wake"
                and observation["source"] in (target["connection"], *target["also"])
            ]
            heard = any(low_s - 0.01 <= at_s <= high_s + 0.01 for at_s in times_s)
            if row["body"]["outcome"] == "counted" and not heard:
                yield f"{key} counts as heard, and {target['device']} woke at {times_s}, not in [{low_s}, {high_s}]"


def cut_queries_keep_the_wait(rows: Rows, night: Any) -> Iterator[str]:
    """No sound within the context wait after a query that was cut, nor after a last attempt that stayed silent."""
    frozen = {key_of(row) for row in rows.of["response_frozen"]}
    asked_keys = {key_of(row) for row in rows.of["operator_asked"]}
    starts = rows.of["attempt_started"]
    for key, row in rows.first.items():
        trial, body = rows.trials.get(key[0]), row["body"]
        if trial is None or trial["listening"] is not None or key in frozen | asked_keys:
            continue
        following = next((start for start in starts if start["seq"] > row["seq"]), None)
        if following is None or _slow_host(night, row["at_s"]):
            continue
        wait_s, after_s = trial["reprompt"]["context_wait_s"], following["at_s"] - row["at_s"]
        cut = body["outcome"] in ("skipped", "interrupted") and key in rows.started and _sounded(rows, key)
        if cut and body["outcome"] == "interrupted" and body["cause"].startswith(("disk_full", "sound_refused")):
            cut = False
        listened = body["cause"].startswith("host_disturbed")  # to its end: without the host's part it were no response
        cut = cut and not listened
        silent = body["outcome"] in ("no_wake", "no_response") or listened
        silent = silent and trial["responds"] and not trial["close_dialogue"]
        same_trial = key_of(following)[:2] == key[:2] or following["run"] != row["run"]
        silent = silent and not same_trial and not _skipped(night, row["at_s"], following["at_s"])
        if (cut or silent) and after_s < wait_s - SLACK_S:
            yield f"{after_s:.2f} s after {key} ended as {body['outcome']}, {key_of(following)} began"


def _sounded(rows: Rows, key: Key) -> bool:
    return "stimulus_started" in rows.sound[rows.started[key]["body"]["play_id"]]


def _slow_host(night: Any, at_s: float) -> bool:
    return any(low - 1.0 <= at_s <= high + 10.0 for low, high in night.truth.slow)


def _skipped(night: Any, low_s: float, high_s: float) -> bool:
    return any(low_s - 1.0 <= at_s <= high_s for at_s in night.truth.skips)


def words_belong_to_their_query(rows: Rows, night: Any) -> Iterator[str]:
    """A transcript that is credited to an attempt at a query does not lie before that query."""
    for row in rows.seen:
        observation, key = row["body"]["observation"], key_of(row)
        trial = rows.trials.get(key[0])
        if (
            observation["kind"] != "transcript"
            or key not in rows.started
            or trial is None
            or trial["listening"] is not None
        ):
            continue
        attempt = rows.started[key]["body"]
        origin = rows.sound[attempt["play_id"]].get("stimulus_started")
        begins_s = attempt["query_start_s"] + (origin["at"]["at_s"] if origin else rows.started[key]["at_s"])
        stamp = observation["at"]
        if stamp["at_s"] + stamp["error_s"] < begins_s - 0.5:
            yield f"row {row['seq']} credits words of {stamp['at_s']:.2f} s to {key}, said from {begins_s:.2f} s"


def busy_devices_are_left_alone(rows: Rows, night: Any) -> Iterator[str]:
    """No query while its device says that it thinks or speaks, for as long as a response may last.

    The end of an answer, or a report that nothing was understood, and a context wait of quiet end that, too.
    """
    state, state_s, since_s, take = "", 0.0, math.inf, ("", 0)
    over_s, speech_s = math.inf, math.nan
    for row in rows.all:
        body = row["body"]
        if row["kind"] == "trial_started" or row["kind"] == "engine_started":
            state, since_s, over_s, speech_s = "", row["at_s"], math.inf, math.nan
        elif row["kind"] == "attempt_finished":
            since_s = row["at_s"] if key_of(row)[:2] != take else max(since_s, row["at_s"])
        elif row["kind"] == "observed":
            observation, trial = body["observation"], rows.trials.get(body["trial_id"] or "")
            at_s = observation.get("at", {}).get("at_s")
            from_device = trial is not None and observation["source"] == trial["connection"]
            if observation["kind"] == "status" and from_device:
                state, state_s, over_s, take = observation["state"], at_s, math.inf, key_of(row)[:2]
            elif observation["kind"] == "intent" and from_device and not observation["name"] and state == "thinking":
                over_s = at_s
            elif observation["kind"] == "speech_started":
                speech_s = at_s if math.isnan(speech_s) else speech_s
            elif observation["kind"] == "speech_ended":
                if state == "speaking" or (state == "thinking" and speech_s >= state_s) or over_s < math.inf:
                    over_s = at_s
                speech_s = math.nan
        elif row["kind"] == "attempt_started" and (trial := rows.trials.get(body["trial_id"])) is not None:
            busy = state in ("thinking", "speaking") and take == key_of(row)[:2] and trial["listening"] is None
            quiet = math.isnan(speech_s) and row["at_s"] - over_s >= trial["reprompt"]["context_wait_s"] - SLACK_S
            waited = row["at_s"] - since_s >= trial["reprompt"]["response_max_s"] - SLACK_S
            if busy and not quiet and not waited and not _slow_host(night, row["at_s"]):
                yield f"{key_of(row)} began while its device said that it was {state}"


def answers_belong_to_what_woke(rows: Rows, night: Any) -> Iterator[str]:
    """What a device says that woke to the attempt before, and not to this one, does not answer this one."""
    states = {like["name"] for like in night.settings["bench"] if like["states"]}
    reported = {key_of(row) for row in rows.seen if row["body"]["observation"]["kind"] in ("wake", "transcript")}
    woken = {key_of(row) for row in rows.seen if row["body"]["observation"]["kind"] == "wake"}
    for key, row in rows.ended.items():
        trial, latency = rows.trials.get(key[0]), row["body"]["latency"]
        before = (*key[:2], key[2] - 1)
        if trial is None or latency is None or trial["device"] in states or trial["close_dialogue"]:
            continue
        play, started = night.truth.plays.get(rows.started[key]["body"]["play_id"]), rows.started.get(before)
        if play is None or started is None or before not in woken or key in reported or started["run"] != row["run"]:
            continue
        at_s = play["start_s"] + rows.started[key]["body"]["query_end_s"] + latency["value_s"]
        speech = [*night.truth.answers, *({"start_s": start_s, "play_id": ""} for start_s in night.truth.speech)]
        close = {
            utterance["play_id"] for utterance in speech if abs(utterance["start_s"] - at_s) <= latency["error_s"] + 0.1
        }
        if close == {started["body"]["play_id"]}:
            yield f"{key} has the answer to the attempt before"


def restless_devices_hold_nothing_up(rows: Rows, night: Any) -> Iterator[str]:
    """A device that wakes again and again holds a trial up for no longer than a response may last."""
    since_s = math.inf
    for row in rows.all:
        if row["kind"] == "trial_started":
            since_s = row["at_s"]
        elif row["kind"] == "attempt_started":
            trial = rows.trials.get(row["body"]["trial_id"])
            limit_s = trial["reprompt"]["response_max_s"] if trial is not None and trial["listening"] else math.inf
            if row["at_s"] - since_s > limit_s + 2.0 and not _slow_host(night, row["at_s"]):
                yield f"{key_of(row)} began {row['at_s'] - since_s:.1f} s after its trial, and nothing held it up"
            since_s = math.inf
        elif row["kind"] != "observed":
            if row["kind"] not in ("event_clipped", "note_written", "mark_set", "stimulus_stored", "fault_met"):
                since_s = math.inf
        elif row["body"]["observation"]["kind"] in ("link_lost", "link_back") or (
            row["body"]["observation"].get("state") == "gone"
        ):
            since_s = math.inf


def misses_are_proved(rows: Rows, night: Any) -> Iterator[str]:
    """A miss counts if, and only if, the device gave a sign of life after it and before it restarted or stood still."""
    if not night.settings["life_check_after"] or night.reason != "completed":
        return
    ends = {(row["body"]["trial_id"], row["body"]["take"]): row["seq"] for row in rows.of["trial_finished"]}
    for device, count in rows.recount().devices.items():
        signs = list(signs_of(rows, device))
        for trial, last, attempt in rows.counted():
            if count.hits.get(trial["id"], 0) is not None or attempt["trial_id"] != trial["id"]:
                continue
            take = (trial["id"], last["take"])
            start_seq, ended = rows.started[(*take, attempt["attempt"])]["seq"], ends[take]
            origin = rows.sound[attempt["play_id"]].get("stimulus_started")
            if origin is None:
                continue
            # Over a wire, only the beginning and the end of a sound have times.
            said_s = origin["at"]["at_s"] + (attempt["query_end_s"] if origin["audio_s"] is None else 0.0)
            within = [sign for sign in signs if start_seq < sign["seq"] < ended]
            restarts = [sign["seq"] for sign in within if sign["what"] == "started" and sign["at_s"] >= said_s]
            if any(
                sign["what"] in ("wake", "transcript")
                or (sign["at_s"] >= said_s and sign["what"] != "started" and sign["seq"] < min(restarts, default=ended))
                for sign in within
            ):
                continue
            if why := _unproved(signs, ended, said_s):
                yield f"{trial['id']} counts as a miss of {device}: {why}"


def proved_misses_stay(rows: Rows, night: Any) -> Iterator[str]:
    """A take whose device gave a sign of life after it is not taken back."""
    ends: dict[str, tuple[int, Row]] = {}
    device = ""
    signs: dict[str, list[Row]] = {}
    for row in rows.all:
        body = row["body"]
        if row["kind"] == "fault_met":
            device = body["source"] if body["what"].startswith("no sign of life in") else ""
        elif row["kind"] == "rerun_asked" and device and body["by"] == LIFE_CHECK_BY and body["trial_id"] in ends:
            ended, take = ends[body["trial_id"]]
            if take["take"] == body["take"] - 1 and take["outcome"] != "interrupted":
                device_signs = signs.setdefault(device, list(signs_of(rows, device)))
                device_signs = [sign for sign in device_signs if sign["seq"] < row["seq"]]
                if not _unproved(device_signs, ended, _said_s(rows, (body["trial_id"], take["take"])), sure=True):
                    yield f"row {row['seq']} takes {body['trial_id']} back, and {device} had proved that it was alive"
        elif row["kind"] == "trial_finished":
            ends[body["trial_id"]] = row["seq"], body


def signs_of(rows: Rows, device: str) -> Iterator[Row]:
    """Its signs of life, its restarts (started), and the beginnings of runs (run), in the order of their rows."""
    sources = set().union(*(sources_of(trial, device) for trial in rows.plan))
    last_row_s = -math.inf
    for row in rows.all:
        if row["kind"] == "engine_started":
            yield {"seq": row["seq"], "what": "run", "at_s": last_row_s, "began_s": row["at_s"]}
        elif row["kind"] == "observed":
            observation = row["body"]["observation"]
            if observation["source"] in sources and observation["kind"] in SIGNS:
                state = observation.get("state") if observation["kind"] == "status" else None
                if state != "gone":
                    beat = observation.get("proof") == "heartbeat"
                    kind = "started" if state == "started" else "beat" if beat else observation["kind"]
                    yield {"seq": row["seq"], "what": kind, "at_s": observation["at"]["at_s"], "told_s": row["at_s"]}
        last_row_s = row["at_s"]


def _said_s(rows: Rows, take: tuple[str, int]) -> float:
    """When the phrase of its last attempt ended."""
    last = [row["body"] for key, row in rows.started.items() if key[:2] == take][-1]
    origin = rows.sound[last["play_id"]].get("stimulus_started")
    if origin is not None and origin["audio_s"] is not None:
        origin, last = rows.sound[last["play_id"]].get("stimulus_ended"), {"query_end_s": 0.0}
    return math.inf if origin is None else float(origin["at"]["at_s"] + last["query_end_s"])


def _unproved(signs: list[Row], ended: int, said_s: float, *, sure: bool = False) -> str:
    """Why the signs do not prove a take with a phrase at that time, which ended in that row, else "".

    sure: doubt is a reason, too.
    """
    limit_s = PROOF_S - 0.2 if sure else PROOF_S + 0.2
    beats, last_s = False, None
    for sign in signs:
        beats |= sign["what"] == "beat"
        stood_still = beats and last_s is not None and sign["at_s"] - last_s > limit_s
        if sign["what"] == "started" and (sign["seq"] > ended or sign["at_s"] >= said_s):
            return "it restarted before it gave a sign"
        if sign["seq"] > ended:
            if stood_still:
                return "it stood still before it gave a sign"
            if sign["what"] != "run" and sign["at_s"] >= said_s:
                return ""
        # The device may have restarted unseen while no engine ran.
        now_s = sign.get("began_s", sign["at_s"])
        last_s = None if sign["what"] == "run" and not sure else max(now_s, last_s or now_s)
    return "it gave no sign afterwards"


def decisions_when_due(rows: Rows, night: Any) -> Iterator[str]:
    """A sequential test decides after the trial with which it is due, and not before."""
    stopping = night.settings["stopping"]
    tests = [figure for figure in ("false_accepts", "false_rejects") if stopping[figure]]
    decisions = {(row["body"]["device"], row["body"]["figure"]): row for row in rows.of["decision_reached"]}
    if len(decisions) != len(rows.of["decision_reached"]):
        yield "a test decides twice"
    ends = looks(rows.recount())
    run_of = {row["seq"]: row["run"] for row in rows.all}
    for device, figure in product(rows.recount().devices, tests):
        row = decisions.get((device, figure))
        earlier = [seq for seq in ends if row is None or seq < row["seq"]]
        if row is not None:
            earlier = earlier[:-1]
            due = decided(rows.recount(row["seq"]).devices[device], stopping)
            if due.get(figure, "open") not in (None, row["body"]["passed"]):
                yield f"row {row['seq']} decides that {device} has {row['body']['passed']} for {figure}"
        # The last one of each run: a death must lose no decision.
        for seq in {run_of[seq]: seq for seq in earlier}.values():
            if decided(rows.recount(seq).devices[device], stopping).get(figure) is not None:
                yield f"the test of {figure} of {device} was due after row {seq}"


def clips_are_named(rows: Rows, night: Any) -> Iterator[str]:
    """Each wake event that counts and has no stimulus has its sound, or a row says why not.

    Except in runs that were killed, and before the first trial that devices listen to. An event that was part of
    another when its clip was due may stand alone at the end; then the other's clip contains it.
    """
    clipped = {row["body"]["event_seq"] for row in rows.of["event_clipped"]}
    clipped |= {int(words[5]) for row in rows.of["fault_met"] if row["body"]["source"] == "clips"
              and (words := row["body"]["what"].split())[5].isdigit()}  # fmt: skip
    whole = {row["run"] for row in rows.of["session_finished"]}
    run_of = {row["seq"]: row["run"] for row in rows.all}
    seen_in = {row["seq"]: row["body"]["observation"] for row in rows.seen}
    listens = {row["run"]: row["seq"] for row in reversed(rows.of["attempt_started"])
               if (trial := rows.trials.get(row["body"]["trial_id"])) and trial["listening"] is not None}  # fmt: skip
    for device in night.figures["devices"].values():
        for seq, (_, exposed) in device["unmatched"].items():
            due = exposed and run_of[seq] in whole and seq > listens.get(run_of[seq], math.inf)
            contained = any(
                seen_in[other]["source"] == seen_in[seq]["source"]
                and abs(seen_in[other]["at"]["at_s"] - seen_in[seq]["at"]["at_s"]) < CONTAINED_S
                for other in clipped
            )
            if due and seq not in clipped and not contained:
                yield f"row {seq} is a wake event without a clip, and nothing says why"


def nothing_is_lost(rows: Rows, night: Any) -> Iterator[str]:
    """What arrives is written in its order: behind a row, nothing that arrived before it is missing."""
    counts: Counter[tuple[str, str, float]] = Counter()
    prompts = list(_prompts(rows))
    for row in rows.seen:
        counts[_told(row["body"]["observation"])] += 1
    for arrived in night.truth.arrived:
        arrivals = [arrival for arrival in arrived if not arrival[0].startswith("operator")]
        last, times = -1, Counter[tuple[str, str, float]]()
        for number, arrival in enumerate(arrivals):  # after a stall, many arrive at one moment
            times[arrival] += 1
            if times[arrival] <= counts[arrival]:
                last = number
        for arrival in arrivals[: last + 1]:
            if not counts[arrival] and not (
                arrival[1] == "mic" and any(low <= arrival[2] <= high for low, high in prompts)
            ):
                yield f"{arrival} arrived, and is in no row"


ENDS_OF_PROMPTS = ("stimulus_spoken", "attempt_finished", "trial_finished", "engine_started")


def _prompts(rows: Rows) -> Iterator[tuple[float, float]]:
    """When a talker was asked to speak: what the microphone hears then becomes the stimulus."""
    asked_s = None
    for row in rows.all:
        if row["kind"] == "operator_asked" and row["body"]["about"] == "speech":
            asked_s = row["at_s"] if asked_s is None else asked_s
        elif asked_s is not None and row["kind"] in ENDS_OF_PROMPTS:
            yield asked_s - PROMPT_SLACK_S, row["at_s"] + SLACK_S
            asked_s = None


def _told(observation: Row) -> tuple[str, str, float]:
    return observation["kind"], observation["source"], observation["at"]["at_s"]


EVIDENCE = (
    verdicts_follow_from_attempts, verdicts_once, begun_trials_end, restarts_interrupt, flawed_phrases_are_repeated,
    responses_without_gaps, probes_are_heard, cut_queries_keep_the_wait, words_belong_to_their_query,
    busy_devices_are_left_alone, answers_belong_to_what_woke, restless_devices_hold_nothing_up,
    misses_are_proved, proved_misses_stay, decisions_when_due, clips_are_named, nothing_is_lost,
)  # fmt: skip
