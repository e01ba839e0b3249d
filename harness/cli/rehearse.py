"""`harness rehearse`: a scenario against simulated devices, before the room is booked."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text
from harness.base.text_table import counted
from harness.cli.options import SHIPPED_FILE, argument, json_option, option, verb
from harness.cli.plan import share_of
from harness.model.scenario import TrialKind
from harness.statistics import text

if TYPE_CHECKING:
    from harness.model.trial import Trial
    from harness.report.rehearsal import Rehearsal, RehearsedLimit, SimulatedRun

EXIT_UNDECIDABLE = 1
_WORDS = {
    TrialKind.QUERY: "queries",
    TrialKind.UNDERSTAND: "queries to understand",
    TrialKind.MEMORY: "queries of memory trials",
    TrialKind.WAKE: "wake trials",
    TrialKind.COMMAND: "commands",
    TrialKind.PROBE: "probes",
}


@dataclass(frozen=True, slots=True)
class RehearsalAsked:
    """The rates of the simulated devices, and how much is simulated."""

    missed: float = option("Share of wake phrases missed.", callback=share_of, default="3%")
    misheard: float = option("Share of queries misheard.", callback=share_of, default="5%")
    false_accepts: float = option("False accepts per hour.", within=(0, 3600), default=0.1)
    answer: float = option("Time until a response ends, s.", within=(0, 600), default=4.0)
    runs: int = option("Runs to simulate.", within=(20, 10_000), default=200)
    seed: int = option("Seed of the simulation.", within=(0, None), default=1)


@verb("rehearse")
def command(
    *,
    scenario: Path = argument(type=SHIPPED_FILE),
    bench_file: Path = option("The bench file.", "--bench", required=True, type=SHIPPED_FILE),
    asked: RehearsalAsked,
    as_json: bool = json_option("Print one JSON object."),
) -> None:
    """Rehearse SCENARIO with simulated devices: its duration, its intervals, and whether its limits can be decided.

    Nothing is played. The options state how good the devices are. A limit can be decided if such a device holds it in
    at least 80 % of the simulated runs. A device with twice the allowed errors must fail it as often.

    Exit status: 0 every limit can be decided · 1 some cannot · 2 the files do not fit together.
    """
    from harness.report.rehearsal import Rehearsal, SimulatedDevice
    from harness.scenario.bench import load_bench
    from harness.scenario.scenario import load_scenario
    from harness.scenario.together import check_together
    from harness.session.engine.prepare import planned

    read, bench = load_scenario(scenario), load_bench(bench_file)
    check_together(read, bench)
    trials = planned(read, bench).trials
    sounds = _Sounds()
    plan = Rehearsal(trials, read.limits, read.stopping, sounds.duration_s, read.defaults.between_trials_s)
    device = SimulatedDevice(asked.missed, asked.misheard, asked.false_accepts, asked.answer)
    runs = plan.runs(device, asked.runs, asked.seed)
    limits = plan.limits(device, asked.runs, asked.seed)
    if as_json:
        click.echo(json.dumps(_told(asked, trials, plan, runs, limits)))
    else:
        click.echo(plain_text(f"{read.id} on {bench.id}: {counted(len(trials), 'trial')}. Nothing is played.", 400))
        for line in _lines(asked, trials, plan, runs, limits, sounds):
            click.echo(line)
    if any(one.needed != 1 for one in limits):
        sys.exit(EXIT_UNDECIDABLE)


SPOKEN_PER_S = 14.0
"""Characters that a person says in a second, to estimate a duration."""


class _Sounds:
    """How long the sound of each trial is; every text is spoken once by each voice."""

    def __init__(self) -> None:
        self._known: dict[object, float] = {}

    def duration_s(self, trial: Trial) -> float:
        from harness.model.stimulus import Ambience
        from harness.sound.stimuli.renderer import renderer

        if isinstance(trial.recipe.query, Ambience):
            return trial.recipe.query.duration_s
        if trial.talker:
            return len(trial.reference) / SPOKEN_PER_S
        dry = replace(trial.recipe, noise=None, variant=0, level_dbfs=-26.0)
        if dry not in self._known:
            self._known[dry] = renderer().render(dry).waveform.duration_s
        return self._known[dry] + (1.0 if trial.recipe.noise is not None else 0.0)


def _lines(
    asked: RehearsalAsked,
    trials: tuple[Trial, ...],
    plan: Rehearsal,
    runs: list[SimulatedRun],
    limits: tuple[RehearsedLimit, ...],
    sounds: _Sounds,
) -> Iterator[str]:
    from harness.base.text_table import Column, text_table
    from harness.report.verdict import ReportVerdict

    kinds = Counter(trial.kind for trial in trials)
    ambient_s = sum(sounds.duration_s(trial) for trial in trials if trial.kind is TrialKind.AMBIENT)
    parts = [f"{count} {_WORDS[kind]}" for kind, count in kinds.items() if kind in _WORDS]
    parts += [f"{text.hours(ambient_s)} of ambient sound"] if ambient_s else []
    low, middle, high = _quantiles([run.duration_s for run in runs])
    yield f"  played     {', '.join(parts)}"
    yield f"  duration   {text.hours(middle)} (95 % of runs: {text.hours(low)} to {text.hours(high)}), without pauses"
    yield (
        f"  assumed    {text.percent(asked.missed)} of wake phrases missed, {text.percent(asked.misheard)} of queries "
        f"misheard, {text.number(asked.false_accepts)} false accepts per hour"
    )
    yield f"  simulated  {counted(asked.runs, 'run')}, seed {asked.seed}"
    yield ""
    yield "Intervals to expect (of the run in the middle):"
    for line in _intervals(runs):
        yield f"  {line}"
    yield ""
    if not limits:
        yield "The scenario declares no limit that can be rehearsed."
    else:
        columns = (Column("limit", left=True), Column("wanted"), *(Column(one) for one in ("pass", "marginal", "fail")),
                   Column("undecided"), Column("bad fails"), Column("decided"))  # fmt: skip
        order = (ReportVerdict.PASS, ReportVerdict.MARGINAL, ReportVerdict.FAIL, ReportVerdict.UNDECIDED)
        rows = [
            (
                one.name,
                one.wanted,
                *(text.percent(one.verdicts.get(verdict, 0.0), 0) for verdict in order),
                text.percent(1 - one.bad_holds, 0),
                "yes" if one.needed == 1 else "no",
            )
            for one in limits
        ]
        yield from text_table(columns, rows, shutil.get_terminal_size((120, 24)).columns)
        yield "Shares of simulated runs. A bad device errs twice as often as the limits allow, or as a test's `bad`."
        yield from _advice(limits, runs, len(trials))
    if plan.left_out:
        yield f"Not rehearsed: {', '.join(plan.left_out)}"


def _advice(limits: Iterable[RehearsedLimit], runs: list[SimulatedRun], planned: int) -> Iterator[str]:
    """What would decide each limit that cannot be decided."""
    from harness.model.choices import POWER
    from harness.report.rehearsal import FACTORS

    early = sum(run.totals.finished < planned for run in runs) > len(runs) / 2
    for one in limits:
        if one.needed == 1:
            continue
        if one.needed is not None:
            advice = f"plan {one.needed} times as much"
        elif early and one.holds < POWER:
            advice = "the sequential tests end most runs before it can hold. Loosen it, or remove one of them"
        elif one.holds < POWER:
            advice = f"the assumed device does not hold it often enough, even with {FACTORS[-1]} times as much"
        else:
            advice = f"a bad device holds it too often, even with {FACTORS[-1]} times as much"
        yield plain_text(f"{one.name} cannot be decided: {advice}.", 400)


def _intervals(runs: list[SimulatedRun]) -> Iterator[str]:
    totals = sorted((run.totals for run in runs), key=lambda one: one.recognised.value or 0.0)[len(runs) // 2]
    if totals.recognised.total:
        yield f"recognised: {text.share_with_interval(totals.recognised)}"
        yield f"recognised at the first attempt: {text.share_with_interval(totals.first_attempt)}"
    for index, first in enumerate(runs[0].wake.devices):
        devices = [run.wake.devices[index] for run in runs]
        rejects = sorted((one.false_rejects for one in devices), key=lambda one: one.share.value or 0.0)
        accepts = sorted((one.after_review for one in devices), key=lambda one: one.count)
        ratio, rate = rejects[len(runs) // 2], accepts[len(runs) // 2]
        if ratio.share.total:
            ends = text.percent_interval(ratio.interval)
            yield plain_text(f"{first.device}: false rejects {text.share(ratio.share)} (95 % interval {ends})", 400)
        if rate.hours:
            found, ends = text.number(rate.per_hour), text.number_interval(rate.interval)
            of = f"{rate.count} in {text.number(rate.hours)} h"
            yield plain_text(f"{first.device}: false accepts {of} = {found} per hour (95 % interval {ends})", 400)


def _quantiles(values: list[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    low, middle, high = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.025, 0.5, 0.975))
    return low, middle, high


def _told(
    asked: RehearsalAsked,
    trials: tuple[Trial, ...],
    plan: Rehearsal,
    runs: list[SimulatedRun],
    limits: tuple[RehearsedLimit, ...],
) -> dict[str, Any]:
    low, middle, high = _quantiles([run.duration_s for run in runs])
    return {
        "assumed": asdict(asked),
        "trials": len(trials),
        "duration_s": {"low": low, "median": middle, "high": high},
        "limits": [
            {
                "name": one.name,
                "wanted": one.wanted,
                "verdicts": {verdict.value: share for verdict, share in one.verdicts.items()},
                "bad_holds": one.bad_holds,
                "times_needed": one.needed,
            }
            for one in limits
        ],
        "not_rehearsed": list(plan.left_out),
    }
