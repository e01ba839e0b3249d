"""`harness check rehearse`: a scenario against simulated devices, before the room is booked."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.foreign import plain_text
from harness.base.progress import step, tracked
from harness.cli.options import SHIPPED_FILE, argument, flag, json_option, option, verb
from harness.cli.plan import share_of
from harness.cli.streams import drawn_progress
from harness.model.frozen import frozen
from harness.model.numbers import counted, exposure, hours, number, percent, seconds
from harness.model.scenario import Evidence, TrialKind
from harness.model.stimulus import Ambience
from harness.model.trial import trials_in_words
from harness.statistics import text

if TYPE_CHECKING:
    from harness.model.bench import Bench
    from harness.model.scenario import Scenario
    from harness.model.trial import Trial
    from harness.report.rehearsal import RehearsedLimit, SimulatedRun
    from harness.session.simulated.night import PlayedNight
    from harness.statistics.verdict import LimitVerdict

EXIT_UNDECIDABLE = 1
ON_ANSWERS = ("min_recognised_share", "min_first_attempt_share", "min_answered_share")
"""Limits that a person's answers decide, where a device reports nothing."""
_WORDS = {
    TrialKind.QUERY: "queries",
    TrialKind.UNDERSTAND: "queries to understand",
    TrialKind.MEMORY: "queries of memory trials",
    TrialKind.WAKE: "wake trials",
    TrialKind.COMMAND: "commands",
    TrialKind.PROBE: "probes",
}


FAULTS_PER_HOUR = 2.0
"""Simulated faults per hour with --faults."""
MIN_RUNS = 40
"""With at least this many simulated runs, the span of 95 % of their lengths is printed, else the full span."""


@frozen
class RehearsalOptions:
    """The rates of the simulated devices, and how much is simulated."""

    missed: float = option("Share of wake phrases missed.", callback=share_of, default="3%")
    misheard: float = option("Share of queries misheard.", callback=share_of, default="5%")
    false_accepts: float = option("False accepts per hour.", within=(0, 3600), default=0.1)
    answer: float = option(
        "Time until a response ends, s.", "--response-time", former=("--answer",), within=(0, 600), default=4.0
    )
    runs: int = option("Number of simulated runs for judging limits.", within=(20, 10_000), default=200)
    nights: int = option("Number of complete runs to simulate.", within=(1, 10_000), default=3)
    faults: bool = flag("Inject random faults in links, devices, sound and the host.")
    seed: int = option("Seed for the simulation.", within=(0, None), default=1)


@verb("rehearse")
def command(
    *,
    scenario: Path = argument(type=SHIPPED_FILE),
    bench_file: Path = option("The bench file.", "--bench", required=True, type=SHIPPED_FILE),
    options: RehearsalOptions,
    as_json: bool = json_option("Print one JSON object."),
) -> None:
    """Rehearse SCENARIO with simulated devices: its duration, its intervals, and whether its limits can be decided.

    No sound is played. The options state how good the devices are. A limit can be decided if such a device meets it in
    at least 80 % of the drawn runs. A device with twice the allowed errors must fail it as often.

    --nights plays whole runs in simulated time: how long they take, and how often they come to a decision. With
    --faults, it also says what goes wrong.

    Exit status: 0 every limit can be decided · 1 some cannot · 2 the files do not fit together.
    """
    from harness.model.bench import OperatorPresence
    from harness.report.rehearsal import Rehearsal, SimulatedDevice
    from harness.scenario.bench import load_bench
    from harness.scenario.compatibility import check_compatibility
    from harness.scenario.scenario import load_scenario
    from harness.session.engine.prepare import plan_session
    from harness.session.plan import evidence_notes, percentile_notes

    device = SimulatedDevice(options.missed, options.misheard, options.false_accepts)
    with drawn_progress():
        step("Planning")
        read, bench = load_scenario(scenario), load_bench(bench_file)
        check_compatibility(read, bench)
        trials = plan_session(read, bench).trials
        attended = bench.operator is not OperatorPresence.ABSENT
        plan = Rehearsal(trials, read.limits, read.stopping, attended=attended)
        rehearsal = RehearsalResult(
            options=options,
            trials=trials,
            left_out=plan.left_out,
            runs=plan.play_runs(device, options.runs, options.seed),
            limits=plan.assess_limits(device, options.runs, options.seed),
            nights=nights_of(read, bench, options),
            notes=(*evidence_notes(trials, read.limits, bench.operator), *percentile_notes(trials, read.limits)),
        )
    if as_json:
        click.echo(json.dumps(_rehearsal_json(rehearsal)))
    else:
        size = trials_in_words(trial.kind for trial in trials)
        click.echo(plain_text(f"{read.id} on {bench.id}: {size}. No sound is played.", 400))
        for line in _lines(rehearsal):
            click.echo(line)
    if any(limit.needed != 1 for limit in rehearsal.limits):
        sys.exit(EXIT_UNDECIDABLE)


@frozen
class RehearsalResult:
    """What a rehearsal came to. nights: each with its verdict. notes: what no device shows, and a person has to."""

    options: RehearsalOptions
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    runs: list[SimulatedRun]
    limits: tuple[RehearsedLimit, ...]
    nights: list[tuple[PlayedNight, LimitVerdict]]
    notes: tuple[str, ...]

    @property
    def unanswered(self) -> bool:
        """Whether trials count only if a person answers."""
        return any(trial.evidence is Evidence.OPERATOR for trial in self.trials)

    @property
    def durations_s(self) -> tuple[float, float, float]:
        ordered = sorted(night.duration_s for night, _ in self.nights)
        low, middle, high = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.025, 0.5, 0.975))
        return low, middle, high


def nights_of(scenario: Scenario, bench: Bench, request: RehearsalOptions) -> list[tuple[PlayedNight, LimitVerdict]]:
    """Each night with its verdict. A response takes a quarter of its time to begin."""
    from harness.session.figures.limits import check_limits, worst_of
    from harness.session.simulated.facts import DeviceTraits
    from harness.session.simulated.night import Lengths, SimulatedNight, simulate_bench
    from harness.sound.stimuli.renderer import renderer

    like = DeviceTraits(
        wakes=1 - request.missed,
        mishears=request.misheard,
        silent=0.0,
        doubles=0.0,
        edge=0.0,
        false_per_hour=request.false_accepts,
        latency_s=request.answer / 4,
        lasts_s=(request.answer / 2, request.answer),
        very_late=0.0,
    )
    devices, lengths = simulate_bench(bench), Lengths(renderer())
    per_hour = FAULTS_PER_HOUR if request.faults else 0.0

    def played(seed: int) -> tuple[PlayedNight, LimitVerdict]:
        night = SimulatedNight(scenario, devices, like, lengths, seed, per_hour).play()
        rows = check_limits(scenario.limits, night.totals, night.wake, scenario.stopping)
        return night, worst_of(rows, night.finished)

    return [played(seed) for seed in tracked(range(request.seed, request.seed + request.nights), "Simulating nights")]


def _lines(rehearsal: RehearsalResult) -> Iterator[str]:
    from harness.base.text_table import Column, text_table
    from harness.statistics.verdict import LimitVerdict

    request, trials, runs, limits = rehearsal.options, rehearsal.trials, rehearsal.runs, rehearsal.limits
    kinds = Counter(trial.kind for trial in trials)
    ambience = (trial.recipe.query for trial in trials if trial.kind is TrialKind.AMBIENT)
    ambient_s = sum(query.duration_s for query in ambience if isinstance(query, Ambience))
    parts = [f"{count} {_WORDS[kind]}" for kind, count in kinds.items() if kind in _WORDS]
    parts += [f"{hours(ambient_s)} of ambient sound"] if ambient_s else []
    low, middle, high = rehearsal.durations_s
    disturbed = f"{number(FAULTS_PER_HOUR)} faults per hour" if request.faults else "without faults"
    share_text = ("95 % of " if request.nights >= MIN_RUNS else "") + counted(request.nights, "simulated run")
    yield f"  played     {', '.join(parts)}"
    span = f"{share_text}: {hours(low)} to {hours(high)}"
    yield f"  duration   about {hours(middle)} ({span}), {disturbed}; a real run takes longer"
    yield (
        f"  assumed    {percent(request.missed)} of wake phrases missed, {percent(request.misheard)} of queries "
        f"misheard, {number(request.false_accepts)} false accepts per hour"
        + (f", answers within {seconds(request.answer)}" if any(trial.listening is None for trial in trials) else "")
    )
    yield f"  drawn      {counted(request.runs, 'run')}, seed {request.seed}"
    yield ""
    yield "Intervals to expect (from the median of the simulated runs):"
    for line in _intervals(runs):
        yield f"  {line}"
    yield ""
    width = shutil.get_terminal_size((120, 24)).columns
    if not limits:
        yield "The scenario declares no limit that can be rehearsed."
    else:
        shares = "wanted", "pass", "marginal", "fail", "undecided", "bad fails", "decided"
        columns = (Column("limit", left=True), *(Column(title) for title in shares))
        order = (LimitVerdict.PASS, LimitVerdict.MARGINAL, LimitVerdict.FAIL, LimitVerdict.UNDECIDED)
        rows = [
            (
                limit.name,
                limit.wanted,
                *(percent(limit.verdicts.get(verdict, 0.0), 0) for verdict in order),
                percent(1 - limit.bad_holds, 0),
                _decision_text(limit, rehearsal),
            )
            for limit in limits
        ]
        yield from text_table(columns, rows, width)
        yield "Shares of simulated runs. A bad device errs twice as often as a limit allows, or as a test's `bad` says."
        yield from _advice(limits, runs, trials)
    for note in rehearsal.notes:
        yield plain_text(f"note: {note}.", 600)
    if rehearsal.left_out:
        yield f"Not rehearsed: {', '.join(rehearsal.left_out)}"
    if request.faults or request.nights >= ENOUGH_TO_DRAW:
        yield from _nights(rehearsal, width)


ENOUGH_TO_DRAW = 20
"""With at least this many simulated runs, a histogram is drawn."""
ROWS = 10
BLOCKS = {"PASS": "█", "NO LIMITS": "█", "MARGINAL": "▓", "UNDECIDED": "▒", "FAIL": "░"}


def _nights(rehearsal: RehearsalResult, width: int) -> Iterator[str]:
    """How the nights ended, how long they took, and what went wrong in them."""
    from harness.base.text_table import Column, text_table
    from harness.model.record import EndReason
    from harness.session.simulated.night import FAULTS
    from harness.statistics.intervals import Share
    from harness.statistics.verdict import LimitVerdict

    nights = rehearsal.nights
    completed = Share(sum(night.finished is EndReason.COMPLETED for night, _ in nights), len(nights))
    decided = Share(sum(verdict is not LimitVerdict.UNDECIDED for _, verdict in nights), len(nights))
    yield ""
    yield f"{counted(len(nights), 'run')} played in simulated time:"
    yield f"  completed  {text.share_with_interval(completed)}"
    if rehearsal.limits:
        yield f"  decided    {text.share_with_interval(decided)}"
    yield ""
    yield from histogram([(night.duration_s, verdict) for night, verdict in nights], width)

    def table(title: str, unit: str, counts: Sequence[Counter[str]], names: Mapping[str, str]) -> Iterator[str]:
        rows = [
            (names.get(kind, kind), str(sum(count[kind] > 0 for count in counts)), str(times))
            for kind, times in sum(counts, Counter[str]()).most_common()
        ]
        if rows:
            yield ""
            yield from text_table((Column(title, left=True), Column("runs"), Column(unit)), rows, width)

    yield from table("faults", "times", [night.faults for night, _ in nights], FAULTS)
    yield from table("what interrupted attempts", "attempts", [night.spoiled for night, _ in nights], {})


def histogram(runs: Sequence[tuple[float, LimitVerdict]], width: int) -> Iterator[str]:
    """Durations in rows of equal length, each with a bar of its runs by their verdicts."""
    from harness.statistics.verdict import LimitVerdict

    blocks = {LimitVerdict(name): block for name, block in BLOCKS.items()}
    durations = [duration_s for duration_s, _ in runs]
    step_s = max(1, math.ceil((max(durations) - min(durations) + 1) / ROWS))
    first_s = math.floor(min(durations))
    bars: dict[int, Counter[LimitVerdict]] = {}
    for duration_s, verdict in runs:
        bars.setdefault(int((duration_s - first_s) // step_s), Counter())[verdict] += 1
    scale = min(1.0, max(10, width - 20) / max(bar.total() for bar in bars.values()))
    for row in range(max(bars) + 1):
        bar = bars.get(row, Counter())
        drawn = "".join(blocks[verdict] * max(1, round(bar[verdict] * scale)) for verdict in blocks if verdict in bar)
        yield f"{hours(first_s + row * step_s):>10}  {drawn} {bar.total() or ''}".rstrip()
    verdicts = {verdict for _, verdict in runs}
    yield " " * 12 + "   ".join(f"{blocks[verdict]} {verdict.lower()}" for verdict in blocks if verdict in verdicts)


def _decision_text(limit: RehearsedLimit, rehearsal: RehearsalResult) -> str:
    if limit.needed != 1:
        return "no"
    return "if answered" if rehearsal.unanswered and limit.name in ON_ANSWERS else "yes"


def _advice(limits: Iterable[RehearsedLimit], runs: list[SimulatedRun], trials: Sequence[Trial]) -> Iterator[str]:
    """Lines that say, for each limit that the runs cannot decide, what would decide it.

    A larger plan has the same voices, and intervals of false rejects are over voices.
    """
    from harness.model.choices import POWER
    from harness.report.rehearsal import PHRASE_KINDS, PLAN_FACTORS
    from harness.session.plan import ON_RECOGNITION
    from harness.statistics.verdict import LimitVerdict

    early = sum(run.totals.finished < len(trials) for run in runs) > len(runs) / 2
    several_voices = len({trial.speaker for trial in trials if trial.kind in PHRASE_KINDS}) > 1
    for limit in limits:
        if limit.needed == 1:
            continue
        by_voice = several_voices and "false_reject" in limit.name
        most = f"{PLAN_FACTORS[-1]} times as much{' of the same voices. Add voices' if by_voice else ''}"
        if limit.needed is not None:
            advice = f"plan for {limit.needed} times as much{', or fewer trials of more voices' if by_voice else ''}"
        elif limit.name in ON_RECOGNITION and limit.verdicts.get(LimitVerdict.UNDECIDED, 0.0) == 1.0:
            advice = "nothing in this plan gives it a result"
        elif early and limit.holds < POWER:
            advice = "the sequential tests end most runs before this limit can hold. Loosen the limit, or remove a test"
        elif limit.holds < POWER:
            advice = f"the assumed device does not meet it often enough, even with {most}"
        else:
            advice = f"a bad device meets it too often, even with {most}"
        yield plain_text(f"{limit.name} cannot be decided: {advice}.", 400)


def _intervals(runs: list[SimulatedRun]) -> Iterator[str]:
    from harness.wake.reports.figures_text import ratio as false_rejects

    by_result = sorted(
        (run.totals for run in runs), key=lambda totals: (totals.recognised.value or 0.0, totals.answered.value or 0.0)
    )
    totals = by_result[len(runs) // 2]
    if totals.recognised.total:
        yield f"recognised: {text.share_with_interval(totals.recognised)}"
        yield f"recognised at the first attempt: {text.share_with_interval(totals.first_attempt)}"
    if totals.answered.total > totals.recognised.total:
        yield f"answered: {text.share_with_interval(totals.answered)}"
    for index, first in enumerate(runs[0].wake.devices):
        devices = [run.wake.devices[index] for run in runs]
        rejects = sorted((device.false_rejects for device in devices), key=lambda figure: figure.share.value or 0.0)
        accepts = sorted((device.after_review for device in devices), key=lambda figure: figure.count)
        ratio, rate = rejects[len(runs) // 2], accepts[len(runs) // 2]
        if ratio.share.total:
            yield plain_text(f"{first.device}: false rejects {false_rejects(ratio)}", 400)
        if rate.hours:
            rate_text, ends = number(rate.per_hour), text.number_interval(rate.interval)
            count_text = f"{rate.count} in {exposure(rate.hours)}"
            yield plain_text(
                f"{first.device}: false accepts {count_text} = {rate_text} per hour (95 % interval {ends})", 400
            )


def _rehearsal_json(rehearsal: RehearsalResult) -> dict[str, Any]:
    low, middle, high = rehearsal.durations_s
    return {
        "assumed": asdict(rehearsal.options),
        "trials": len(rehearsal.trials),
        "duration_s": {"low": low, "median": middle, "high": high},
        "limits": [
            {
                "name": limit.name,
                "wanted": limit.wanted,
                "verdicts": {verdict.value: share for verdict, share in limit.verdicts.items()},
                "bad_holds": limit.bad_holds,
                "times_needed": limit.needed,
            }
            for limit in rehearsal.limits
        ],
        "not_rehearsed": list(rehearsal.left_out),
        "notes": list(rehearsal.notes),
        "nights": [
            {
                "duration_s": night.duration_s,
                "finished": night.finished.value,
                "verdict": verdict.value,
                "faults": dict(night.faults),
                "interrupted": dict(night.spoiled),
            }
            for night, verdict in rehearsal.nights
        ],
    }
