"""Verdicts on what the model counts: limits and sequential tests. It imports nothing of harness/, as the model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from scipy import stats

from tests.nights.model import DeviceCount, Json, Recount, Row, Span

BORDER = 0.01
"""A sequential test is not judged where its log likelihood ratio is nearer to a boundary."""


def upper_share(speakers: Iterable[Sequence[int]]) -> float | None:
    """Upper end of the 95 % interval of a share. speakers: (count, total) of each.

    Clopper-Pearson; over several speakers, of as many independent trials as have the same variance (Korn & Graubard).
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
        quantiles = np.asarray(stats.t.ppf(0.975, [max(1.0, total - 1), max(1.0, total**2 / (totals**2).sum() - 1)]))
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
            rate = figure == "false_accepts"
            passes, fails = boundaries(good, bad, test.get("alpha", 0.05), test.get("beta", 0.05), rate)
            ratio = count * math.log(bad / good) - more * (bad - good if rate else math.log((1 - good) / (1 - bad)))
            if min(abs(ratio - passes), abs(ratio - fails)) < BORDER:
                verdicts[figure] = None
            elif not passes < ratio < fails:
                verdicts[figure] = ratio <= passes
    return verdicts


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
                for figure, passed in decided(device, stopping).items():
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
