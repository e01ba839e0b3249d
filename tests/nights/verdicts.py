"""Counts over trials, and verdicts on what the model counts: limits and sequential tests.

It imports nothing of harness/, as the model.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy import special, stats

from tests.nights.model import DeviceCount, Json, Recount, Span

ANSWERED = ("responded", "late")
DECIDED = (*ANSWERED, "misheard", "no_wake", "no_response", "understood")
WAKE_LIMITS = (
    "max_false_reject_share", "max_false_reject_upper", "max_false_accepts_per_hour",
    "max_false_accepts_upper_per_hour", "min_exposure_hours", "min_command_share", "max_wake_delay_p95_ms",
)  # fmt: skip
MAX_ERROR_S = 0.25
MAX_DISTURBED_SHARE = 0.1
BORDER = 0.01
"""A sequential test is not judged where its log likelihood ratio is nearer to a boundary."""


def totals(recount: Recount) -> Json:
    """As harness.session.figures.progress.Totals. A share is (count, total)."""
    outcomes: Counter[str] = Counter()
    latencies: list[Span] = []
    recognised: list[int] = []
    answered: list[bool] = []
    disturbed: list[bool] = []
    for trial_id, trial in recount.plan.items():
        rows = recount.of[trial_id]
        ends = [row for row in rows if row.kind == "trial_finished"]
        if not ends:
            continue
        take = max(row.attempt[1] for row in ends)
        end = [row.body for row in ends if row.attempt[1] == take][-1]
        verdicts = {row.attempt[2]: row.body for row in rows
                    if row.attempt[1] == take and row.kind in ("attempt_started", "attempt_finished")}  # fmt: skip
        deciding = verdicts.get(end["deciding_attempt"], {})
        outcomes[end["outcome"]] += 1
        disturbed += [bool(row["disturbed"]) for row in verdicts.values() if "outcome" in row]
        if trial["memory"] is not None:
            continue
        if end["outcome"] in ANSWERED and deciding.get("latency"):
            latencies.append((deciding["latency"]["value_s"], deciding["latency"]["error_s"]))
        if end["outcome"] not in DECIDED or trial["listening"]:
            continue
        answered += [end["outcome"] in ANSWERED] if trial["responds"] else []
        by_words = not trial["expects"] or trial["reprompt"]["until"] == "recognised"
        if by_words and deciding.get("recognition") != "not_assessed":
            tested = [number for number, row in verdicts.items() if row.get("outcome") != "interrupted"]
            before = sum(number < (end["deciding_attempt"] or 0) for number in tested)
            recognised.append(1 + before if deciding.get("recognition") == "yes" else 0)
    return {
        "planned": len(recount.plan),
        "finished": outcomes.total(),
        "by_outcome": dict(outcomes),
        "recognised": (sum(map(bool, recognised)), len(recognised)),
        "first_attempt": (recognised.count(1), len(recognised)),
        "answered": (sum(answered), len(answered)),
        "disturbed": (sum(disturbed), len(disturbed)),
        "latencies": len(exact(latencies)),
        "latency_p95_s": percentile_95(exact(latencies)),
        "latency_p95_low_s": low_95(exact(latencies)),
        "latency_p95_between_s": between(latencies),
    }


CORRELATIONS = ((np.arange(16) + 0.5) / 16) ** 2
"""GAP: the grid over which likelihoods are averaged."""


def voices_likelihood(shares: Any, speakers: Iterable[Sequence[int]]) -> Any:
    """Log likelihood of error shares over voices, averaged over the correlation r in a voice with density 2(1 − r)."""
    a, b = (part[:, np.newaxis] * (1 - CORRELATIONS) / CORRELATIONS for part in (shares, 1 - shares))
    logs = np.log(np.sqrt(CORRELATIONS) * (1 - CORRELATIONS)) + np.zeros_like(a)
    for missed, total in speakers:
        logs += special.betaln(a + missed, b + total - missed) - special.betaln(a, b)
    return special.logsumexp(logs, axis=1)


def upper_share(device: DeviceCount) -> float | None:
    """Upper end of the 95 % interval of false rejects: Clopper-Pearson, or over voices if the plan has several."""
    speakers = [(missed, total) for missed, total in device.speakers.values() if total]
    missed, total = map(sum, zip(*speakers, strict=True)) if speakers else (0, 0)
    if not total or (device.several and len(speakers) < 2):
        return None
    if missed == total:
        return 1.0
    if not device.several:
        return float(stats.beta.ppf(0.975, missed + 1, total - missed))
    # The prior is 1/(1 − p), so that voices with one trial each give Clopper's and Pearson's end.
    u = (np.arange(2000) + 0.5) / 2000
    logs = voices_likelihood(np.sin(np.pi / 2 * u) ** 2, speakers)
    mass = np.cumsum(np.exp(logs - logs.max()) * np.tan(np.pi / 2 * u))
    end = math.sin(math.pi / 2 * float(np.interp(0.975 * mass[-1], mass, u + 0.5 / 2000))) ** 2
    return max(end, missed / total)


def percentile_95(values: Sequence[float]) -> float | None:
    return sorted(values)[math.ceil(0.95 * len(values) - 1e-9) - 1] if values else None


def low_95(values: Sequence[float]) -> float | None:
    """Lower end of the 95 % interval of the 95th percentile, by order statistics."""
    rank = sum(stats.binom.cdf(fewer, len(values), 0.95) <= 0.025 for fewer in range(len(values)))
    return sorted(values)[rank - 1] if rank else None


def exact(times: Iterable[Span]) -> list[float]:
    """Of times with their errors, those that are known well enough."""
    return [value_s for value_s, error_s in times if error_s <= MAX_ERROR_S]


def between(times: Sequence[Span]) -> Span | None:
    """The 95th percentile if all other times were the shortest, and if they were the longest."""
    ends = [percentile_95([v if e <= MAX_ERROR_S else other for v, e in times]) for other in (-math.inf, math.inf)]
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


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
    alive, passed, now, most = {0: 1.0}, 0.0, 0.0, 0
    up += 0.0 if rate else down
    while sum(alive.values()) > 1e-10:
        after = defaultdict[int, float](float)
        if rate:
            # Up to most events do not fail at `now`, and from `opens` on one more does not.
            while (opens := ((most + 1) * up - fails) / down) <= now + 1e-9:
                most += 1
            later = min((min(alive) * up - passes) / down, opens)
            mean = good * (later - now)
            for count, likely in alive.items():
                for more in range(most - count + 1):
                    after[count + more] += likely * math.exp(-mean) * mean**more / math.factorial(more)
        else:
            later = now + 1
            for count, likely in alive.items():
                after[count] += likely * (1 - good)
                after[count + 1] += likely * good * ((count + 1) * up - down * later < fails - 1e-12)
        ends = {count: count * up - down * later <= passes + 1e-9 for count in after}
        passed += sum(likely for count, likely in after.items() if ends[count])
        alive = {count: likely for count, likely in after.items() if not ends[count]}
        now = later
    return passed


def decided(device: DeviceCount, stopping: Json) -> dict[str, bool | None]:
    """What sequential tests have decided: false_accepts, false_rejects → passed. None: too near to a boundary."""
    verdicts: dict[str, bool | None] = {}
    missed = device.count["wake_trials"] - device.count["hits"]
    for figure, count, more in (
        ("false_accepts", device.count["after_review"], device.exposure_s / 3600),
        ("false_rejects", missed, device.count["hits"]),
    ):
        if test := stopping.get(figure):
            good, bad = test["good"], test["bad"]
            alpha, beta = test.get("alpha", 0.05), test.get("beta", 0.05)
            rate = figure == "false_accepts"
            if not rate and device.several:
                passes, fails = math.log(beta), -math.log(alpha)
                of_good, of_bad = voices_likelihood(np.array([good, bad]), device.speakers.values())
                ratio = float(of_bad - of_good)
            else:
                passes, fails = boundaries(good, bad, alpha, beta, rate)
                ratio = count * math.log(bad / good) - more * (bad - good if rate else math.log((1 - good) / (1 - bad)))
            if min(abs(ratio - passes), abs(ratio - fails)) < BORDER:
                verdicts[figure] = None
            elif not passes < ratio < fails:
                verdicts[figure] = ratio <= passes
    return verdicts


def looks(recount: Recount) -> list[int]:
    """Rows after which a sequential test may decide: the end of each wake, command and ambient trial that was played.

    GAP: when a run begins, it decides what the one before has left undecided.
    """
    return [row.seq for row in recount.rows if row.kind == "trial_finished" and row.body["attempts"]
            and recount.plan.get(row.attempt[0], {}).get("listening")
            and not row.body["cause"].startswith("needless")]  # fmt: skip


def figures(recount: Recount, limits: Json, stopping: Json) -> Json:
    """As tests.nights.figures has them of the product. Limits on words, intents and effects are left out."""
    devices = {name: _of_device(recount, name) for name in recount.devices}
    counts = totals(recount)
    return {"totals": counts, "devices": devices, "limits": _limits(recount, counts, devices, limits, stopping)}


def _of_device(recount: Recount, name: str) -> Json:
    device = recount.devices[name]
    count, events = device.count, Counter(device.unmatched.values())
    names = ("hits", "wake_trials", "double_wakes", "false_accepts", "after_review", "suppressed")
    return {
        **{key: count[key] for key in names},
        "unaccounted": 0,
        "speakers": len(device.speakers) if device.several else 0,
        "in_vocabulary_events": events[True, True],
        "ambient_events_outside": events[False, False],
        "uncounted_events": events[True, False],
        "exposure_s": device.exposure_s,
        "unproven_s": device.unproven_s,
        "probes": (count["probes_heard"], count["probes"]),
        "commands": (count["match"], count["substitution"], count["missed"]),
        "delays": len(exact(device.delays)),
        "delay_p95_s": percentile_95(exact(device.delays)),
        "delay_p95_low_s": low_95(exact(device.delays)),
        "delay_p95_between_s": between(device.delays),
        "decisions": {figure: passed for (owner, figure), passed in recount.decisions.items() if owner == name},
        "woke": device.hits,
        "unmatched": device.unmatched,
    }


def _limits(recount: Recount, counts: Json, devices: Json, limits: Json, stopping: Json) -> Json:
    """Declared limits, by the names of harness.session.figures.progress → what was measured, and whether it holds."""

    def share(pair: Sequence[float]) -> float | None:
        return pair[0] / pair[1] if pair[1] else None

    def ms(device: Json, figure: str, number: int, limit_name: str) -> float | None:
        p95_s, low_s, ends_s = (device[f"{figure}_p95_{key}"] for key in ("s", "low_s", "between_s"))
        wanted_ms = limits.get(limit_name)
        if p95_s is None or ends_s is None or wanted_ms is None or (ends_s[0] * 1000 <= wanted_ms < ends_s[1] * 1000):
            return None
        if number >= 20:
            return p95_s * 1000
        # Fewer than 20 values have no 95th percentile, but it may be known to lie above the limit.
        return low_s * 1000 if low_s is not None and low_s * 1000 > wanted_ms else None

    values: dict[str, float | None] = {
        "min_recognised_share": share(counts["recognised"]),
        "min_first_attempt_share": share(counts["first_attempt"]),
        "max_latency_p95_ms": ms(counts, "latency", counts["latencies"], "max_latency_p95_ms"),
        "max_inconclusive": counts["by_outcome"].get("inconclusive", 0),
        "max_interrupted": counts["by_outcome"].get("interrupted", 0),
    }
    verdicts: Json = {}
    wants_upper = limits.get("max_false_reject_upper") is not None  # most of the time that limits take
    for name, device in devices.items():
        hours, accepts = device["exposure_s"] / 3600, device["after_review"]
        values |= {
            f"max_false_reject_share[{name}]": share((device["wake_trials"] - device["hits"], device["wake_trials"])),
            f"max_false_reject_upper[{name}]": upper_share(recount.devices[name]) if wants_upper else None,
            f"max_false_accepts_per_hour[{name}]": share((accepts, hours)),
            f"max_false_accepts_upper_per_hour[{name}]": share((stats.chi2.ppf(0.975, 2 * accepts + 2) / 2, hours)),
            f"min_exposure_hours[{name}]": hours,
            f"min_command_share[{name}]": share((device["commands"][0], sum(device["commands"]))),
            f"max_wake_delay_p95_ms[{name}]": ms(device, "delay", device["delays"], "max_wake_delay_p95_ms"),
        }
        for figure in ("false_accepts", "false_rejects"):
            passed = device["decisions"].get(figure)
            if passed is not None or stopping.get(figure):
                holds = stopping.get("on_undecided") == "pass" if passed is None else passed
                verdicts[f"{figure}_test[{name}]"] = passed, holds
    if not devices:
        values |= dict.fromkeys(WAKE_LIMITS)
        undecided = None, stopping.get("on_undecided") == "pass"
        tests = [figure for figure in ("false_accepts", "false_rejects") if stopping.get(figure)]
        verdicts |= {f"{figure}_test": undecided for figure in tests}
    for name, value in values.items():
        limit = limits.get(name.partition("[")[0])
        if limit is not None:
            holds = value is not None and (value >= limit if name.startswith("min") else value <= limit)
            verdicts[name] = value, holds
    disturbed = share(counts["disturbed"]) or 0.0
    if verdicts and disturbed > MAX_DISTURBED_SHARE:
        verdicts["max_disturbed_share"] = disturbed, False
    return verdicts


def differences(product: Any, counted: Any, path: str = "") -> Iterator[str]:
    """Where two such figures differ. GAP: ends over voices lie on a grid."""
    if isinstance(product, dict) and isinstance(counted, dict):
        for key in {**product, **counted}:
            yield from differences(product.get(key, "nothing"), counted.get(key, "nothing"), f"{path} {key}".strip())
    elif isinstance(product, tuple) and isinstance(counted, tuple) and len(product) == len(counted):
        for pair in zip(product, counted, strict=True):
            yield from differences(*pair, path)
    elif isinstance(product, float) and isinstance(counted, float):
        tolerance = 2e-3 if "max_false_reject_upper" in path else 1e-6
        if not math.isclose(product, counted, rel_tol=tolerance, abs_tol=1e-6):
            yield f"{path} is {product}, counted {counted}"
    elif product != counted:
        yield f"{path} is {product}, counted {counted}"
