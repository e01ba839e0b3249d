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
from harness.cli.plan import parse_proportion
from harness.cli.streams import drawn_progress
from harness.model.choices import POWER
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
LIMITS_ON_ANSWERS = ("min_recognised_share", "min_first_attempt_share", "min_answered_share")
"""Limits that a person's answers decide, where a device reports nothing."""
_KIND_TEXTS = {
    TrialKind.QUERY: "queries",
    TrialKind.UNDERSTAND: "queries to understand",
    TrialKind.MEMORY: "queries of memory trials",
    TrialKind.WAKE: "wake trials",
    TrialKind.COMMAND: "commands",
    TrialKind.PROBE: "probes",
}
FAULTS_PER_HOUR = 2.0
"""Simulated faults per hour with --faults."""
MIN_NIGHTS_FOR_SPAN = 40
"""With at least this many nights, the span of 95 % of their durations is printed, otherwise the full span."""
MIN_NIGHTS_FOR_HISTOGRAM = 20
HISTOGRAM_ROWS = 10
BLOCKS = {"PASS": "█", "NO LIMITS": "█", "MARGINAL": "▓", "UNDECIDED": "▒", "FAIL": "░"}


@frozen
class RehearsalOptions:
    """The rates of the simulated devices, and how much is simulated. The names of the fields are keys of --json."""

    missed: float = option("Share of wake phrases missed.", callback=parse_proportion, default="3%")
    misheard: float = option("Share of queries misheard.", callback=parse_proportion, default="5%")
    false_accepts: float = option("False accepts per hour.", within=(0, 3600), default=0.1)
    answer: float = option(
        "Time until the end of a response, s.", "--response-time", former=("--answer",), within=(0, 600), default=4.0
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

    --nights plays complete runs in simulated time, and reports how long they take and how often they reach a decision.
    With --faults, it also reports what goes wrong.

    Exit status: 0 every limit can be decided · 1 some cannot · 2 the files do not fit together.
    """
    from harness.model.bench import OperatorPresence
    from harness.report.rehearsal import Rehearsal, SimulatedDevice
    from harness.scenario.bench import load_bench
    from harness.scenario.compatibility import check_compatibility
    from harness.scenario.scenario import load_scenario
    from harness.session.engine.prepare import plan_session
    from harness.session.plan_notes import evidence_notes, percentile_notes

    device = SimulatedDevice(options.missed, options.misheard, options.false_accepts)
    with drawn_progress():
        step("Planning")
        loaded_scenario, bench = load_scenario(scenario), load_bench(bench_file)
        limits = loaded_scenario.limits
        check_compatibility(loaded_scenario, bench)
        trials = plan_session(loaded_scenario, bench).trials
        attended = bench.operator is not OperatorPresence.ABSENT
        rehearsal = Rehearsal(trials, limits, loaded_scenario.stopping, attended=attended)
        result = RehearsalResult(
            options=options,
            trials=trials,
            left_out=rehearsal.left_out,
            runs=rehearsal.play_runs(device, options.runs, options.seed),
            limits=rehearsal.assess_limits(device, options.runs, options.seed),
            nights=_play_nights(loaded_scenario, bench, options),
            notes=(*evidence_notes(trials, limits, bench.operator), *percentile_notes(trials, limits)),
        )
    if as_json:
        click.echo(json.dumps(_result_json(result)))
    else:
        size = trials_in_words(trial.kind for trial in trials)
        click.echo(plain_text(f"{loaded_scenario.id} on {bench.id}: {size}. No sound is played.", 400))
        for line in _lines(result):
            click.echo(line)
    if any(limit.needed != 1 for limit in result.limits):
        sys.exit(EXIT_UNDECIDABLE)


@frozen
class RehearsalResult:
    """What a rehearsal came to.

    - left_out: names of the scenario's limits that cannot be rehearsed.
    - runs: drawn from the rates alone, without a clock.
    - nights: whole runs in simulated time, each with its verdict.
    - notes: what only a person can observe, and which percentiles have too few trials.
    """

    options: RehearsalOptions
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    runs: list[SimulatedRun]
    limits: tuple[RehearsedLimit, ...]
    nights: list[tuple[PlayedNight, LimitVerdict]]
    notes: tuple[str, ...]

    @property
    def needs_answers(self) -> bool:
        """Whether trials count only if a person answers."""
        return any(trial.evidence is Evidence.OPERATOR for trial in self.trials)

    @property
    def duration_span_s(self) -> tuple[float, float, float]:
        """Lower end, median and upper end of the span of 95 % of the nights; the full span if they are few."""
        durations_s = sorted(night.duration_s for night, _ in self.nights)
        last = len(durations_s) - 1
        low, median, high = (durations_s[min(last, int(share * len(durations_s)))] for share in (0.025, 0.5, 0.975))
        return low, median, high


def _play_nights(scenario: Scenario, bench: Bench, options: RehearsalOptions) -> list[tuple[PlayedNight, LimitVerdict]]:
    """Plays whole runs in simulated time, and judges their limits. A response begins after a quarter of its time."""
    from harness.session.figures.limits import check_limits, worst_of
    from harness.session.simulated.facts import DeviceTraits
    from harness.session.simulated.night import LengthRenderer, SimulatedNight, simulate_bench
    from harness.sound.stimuli.renderer import renderer

    traits = DeviceTraits(
        wakes=1 - options.missed,
        mishears=options.misheard,
        silent=0.0,
        doubles=0.0,
        edge=0.0,
        false_per_hour=options.false_accepts,
        latency_s=options.answer / 4,
        lasts_s=(options.answer / 2, options.answer),
        very_late=0.0,
    )
    devices, lengths = simulate_bench(bench), LengthRenderer(renderer())
    faults_per_hour = FAULTS_PER_HOUR if options.faults else 0.0
    nights = []
    for seed in tracked(range(options.seed, options.seed + options.nights), "Simulating nights"):
        night = SimulatedNight(scenario, devices, traits, lengths, seed, faults_per_hour).play()
        limits = check_limits(scenario.limits, night.totals, night.wake, scenario.stopping)
        nights.append((night, worst_of(limits, night.finished)))
    return nights


def _lines(result: RehearsalResult) -> Iterator[str]:
    """The report for people."""
    options = result.options
    width = shutil.get_terminal_size((120, 24)).columns
    yield from _head_lines(result)
    yield ""
    yield "Intervals to expect (from the median of the simulated runs):"
    for line in _interval_lines(result.runs):
        yield f"  {line}"
    yield ""
    if not result.limits:
        yield "The scenario sets no limits that a rehearsal can check."
    else:
        yield from _limit_table(result, width)
        yield "Shares of simulated runs. A bad device errs twice as often as a limit allows, or at a test's `bad` rate."
        yield from _advice(result.limits, result.runs, result.trials)
    for note in result.notes:
        yield plain_text(f"note: {note}.", 600)
    if result.left_out:
        yield f"Not rehearsed: {', '.join(result.left_out)}"
    if options.faults or options.nights >= MIN_NIGHTS_FOR_HISTOGRAM:
        yield from _night_lines(result, width)


def _head_lines(result: RehearsalResult) -> Iterator[str]:
    """What is played, how long that takes, and what is assumed of the devices."""
    options, trials = result.options, result.trials
    counts_by_kind = Counter(trial.kind for trial in trials)
    played = [f"{count} {_KIND_TEXTS[kind]}" for kind, count in counts_by_kind.items() if kind in _KIND_TEXTS]
    ambience = (trial.recipe.query for trial in trials if trial.kind is TrialKind.AMBIENT)
    ambient_s = sum(query.duration_s for query in ambience if isinstance(query, Ambience))
    if ambient_s:
        played.append(f"{hours(ambient_s)} of ambient sound")
    yield f"  played     {', '.join(played)}"
    low_s, median_s, high_s = result.duration_span_s
    share_text = "95 % of " if options.nights >= MIN_NIGHTS_FOR_SPAN else ""
    span = f"{share_text}{counted(options.nights, 'simulated run')}: {hours(low_s)} to {hours(high_s)}"
    faults_text = f"{number(FAULTS_PER_HOUR)} faults per hour" if options.faults else "without faults"
    yield f"  duration   about {hours(median_s)} ({span}), {faults_text}; a real run takes longer"
    has_answers = any(trial.listening is None for trial in trials)
    answer_text = f", answers within {seconds(options.answer)}" if has_answers else ""
    yield (
        f"  assumed    {percent(options.missed)} of wake phrases missed, {percent(options.misheard)} of queries "
        f"misheard, {number(options.false_accepts)} false accepts per hour{answer_text}"
    )
    yield f"  drawn      {counted(options.runs, 'run')}, seed {options.seed}"


def _limit_table(result: RehearsalResult, width: int) -> Iterator[str]:
    from harness.base.text_table import Column, text_table
    from harness.statistics.verdict import LimitVerdict

    titles = "wanted", "pass", "marginal", "fail", "undecided", "bad fails", "decided"
    columns = (Column("limit", left=True), *(Column(title) for title in titles))
    verdicts = (LimitVerdict.PASS, LimitVerdict.MARGINAL, LimitVerdict.FAIL, LimitVerdict.UNDECIDED)
    rows = [
        (
            limit.name,
            limit.wanted,
            *(percent(limit.verdicts.get(verdict, 0.0), 0) for verdict in verdicts),
            percent(1 - limit.bad_holds, 0),
            _decision_text(limit, result),
        )
        for limit in result.limits
    ]
    yield from text_table(columns, rows, width)


def _night_lines(result: RehearsalResult, width: int) -> Iterator[str]:
    """How the nights ended, how long they took, and what went wrong in them."""
    from harness.base.text_table import Column, text_table
    from harness.model.record import EndReason
    from harness.session.simulated.night import FAULTS
    from harness.statistics.intervals import Share
    from harness.statistics.verdict import LimitVerdict

    nights = result.nights
    completed = Share(sum(night.finished is EndReason.COMPLETED for night, _ in nights), len(nights))
    decided = Share(sum(verdict is not LimitVerdict.UNDECIDED for _, verdict in nights), len(nights))
    yield ""
    yield f"{counted(len(nights), 'run')} played in simulated time:"
    yield f"  completed  {text.share_with_interval(completed)}"
    if result.limits:
        yield f"  decided    {text.share_with_interval(decided)}"
    yield ""
    yield from histogram([(night.duration_s, verdict) for night, verdict in nights], width)

    def table(title: str, unit: str, night_counts: Sequence[Counter[str]], names: Mapping[str, str]) -> Iterator[str]:
        """For each kind, in how many nights it occurred, and how often in all."""
        rows = [
            (names.get(kind, kind), str(sum(counts[kind] > 0 for counts in night_counts)), str(total))
            for kind, total in sum(night_counts, Counter[str]()).most_common()
        ]
        if rows:
            yield ""
            yield from text_table((Column(title, left=True), Column("runs"), Column(unit)), rows, width)

    yield from table("faults", "times", [night.faults for night, _ in nights], FAULTS)
    yield from table("cause of interruption", "attempts", [night.spoiled for night, _ in nights], {})


def histogram(runs: Sequence[tuple[float, LimitVerdict]], width: int) -> Iterator[str]:
    """Durations in rows of equal length, each with a bar of its runs by their verdicts."""
    from harness.statistics.verdict import LimitVerdict

    blocks = {LimitVerdict(name): block for name, block in BLOCKS.items()}
    durations = [duration_s for duration_s, _ in runs]
    step_s = max(1, math.ceil((max(durations) - min(durations) + 1) / HISTOGRAM_ROWS))
    first_s = math.floor(min(durations))
    bars: dict[int, Counter[LimitVerdict]] = {}
    for duration_s, verdict in runs:
        bars.setdefault(int((duration_s - first_s) // step_s), Counter())[verdict] += 1
    scale = min(1.0, max(10, width - 20) / max(bar.total() for bar in bars.values()))
    for row in range(max(bars) + 1):
        bar = bars.get(row, Counter())
        # At least one block, so that a rare verdict is visible.
        bar_text = "".join(
            blocks[verdict] * max(1, round(bar[verdict] * scale)) for verdict in blocks if verdict in bar
        )
        yield f"{hours(first_s + row * step_s):>10}  {bar_text} {bar.total() or ''}".rstrip()
    verdicts = {verdict for _, verdict in runs}
    yield " " * 12 + "   ".join(f"{blocks[verdict]} {verdict.lower()}" for verdict in blocks if verdict in verdicts)


def _decision_text(limit: RehearsedLimit, result: RehearsalResult) -> str:
    """Whether the plan can decide a limit."""
    if limit.needed != 1:
        return "no"
    return "if answered" if result.needs_answers and limit.name in LIMITS_ON_ANSWERS else "yes"


def _advice(limits: Iterable[RehearsedLimit], runs: list[SimulatedRun], trials: Sequence[Trial]) -> Iterator[str]:
    """Lines that say, for each limit that the runs cannot decide, what would decide it.

    A larger plan has the same voices, and intervals of false rejects are over voices.
    """
    from harness.report.rehearsal import PLAN_FACTORS
    from harness.session.plan_notes import ON_RECOGNITION
    from harness.statistics.verdict import LimitVerdict

    most_end_early = sum(run.totals.finished < len(trials) for run in runs) > len(runs) / 2
    several_voices = len({trial.speaker for trial in trials if trial.kind is TrialKind.WAKE}) > 1
    for limit in limits:
        if limit.needed == 1:
            continue
        by_voice = several_voices and "false_reject" in limit.name
        largest_plan = f"{PLAN_FACTORS[-1]} times as much data{' from the same voices. Add voices' if by_voice else ''}"
        if limit.needed is not None:
            advice = (
                f"plan for {limit.needed} times as much data{', or fewer trials with more voices' if by_voice else ''}"
            )
        elif limit.name in ON_RECOGNITION and limit.verdicts.get(LimitVerdict.UNDECIDED, 0.0) == 1.0:
            advice = "nothing in this plan produces a result for it"
        elif most_end_early and limit.holds < POWER:
            advice = "the sequential tests end most runs before this limit can hold. Loosen the limit, or remove a test"
        elif limit.holds < POWER:
            advice = f"the assumed device does not meet it often enough, even with {largest_plan}"
        else:
            advice = f"a bad device meets it too often, even with {largest_plan}"
        yield plain_text(f"{limit.name} cannot be decided: {advice}.", 400)


def _interval_lines(runs: list[SimulatedRun]) -> Iterator[str]:
    """The intervals of the run whose result is the median; for false rejects and accepts, of each device separately."""
    from harness.wake.reports import figures_text

    sorted_totals = sorted(
        (run.totals for run in runs), key=lambda totals: (totals.recognised.value or 0.0, totals.answered.value or 0.0)
    )
    totals = sorted_totals[len(runs) // 2]
    if totals.recognised.total:
        yield f"recognised: {text.share_with_interval(totals.recognised)}"
        yield f"recognised at the first attempt: {text.share_with_interval(totals.first_attempt)}"
    if totals.answered.total > totals.recognised.total:
        yield f"answered: {text.share_with_interval(totals.answered)}"
    for index, first in enumerate(runs[0].wake.devices):
        devices = [run.wake.devices[index] for run in runs]
        rejects = sorted((device.false_rejects for device in devices), key=lambda figure: figure.share.value or 0.0)
        accepts = sorted((device.after_review for device in devices), key=lambda figure: figure.count)
        median_rejects, median_accepts = rejects[len(runs) // 2], accepts[len(runs) // 2]
        if median_rejects.share.total:
            yield plain_text(f"{first.device}: false rejects {figures_text.ratio_text(median_rejects)}", 400)
        if median_accepts.hours:
            count_text = f"{median_accepts.count} in {exposure(median_accepts.hours)}"
            rate_text = f"{number(median_accepts.per_hour)} per hour"
            interval_text = f"95 % interval {text.number_interval(median_accepts.interval)}"
            yield plain_text(f"{first.device}: false accepts {count_text} = {rate_text} ({interval_text})", 400)


def _result_json(result: RehearsalResult) -> dict[str, Any]:
    low_s, median_s, high_s = result.duration_span_s
    return {
        "assumed": asdict(result.options),
        "trials": len(result.trials),
        "duration_s": {"low": low_s, "median": median_s, "high": high_s},
        "limits": [
            {
                "name": limit.name,
                "wanted": limit.wanted,
                "verdicts": {verdict.value: share for verdict, share in limit.verdicts.items()},
                "bad_holds": limit.bad_holds,
                "times_needed": limit.needed,
            }
            for limit in result.limits
        ],
        "not_rehearsed": list(result.left_out),
        "notes": list(result.notes),
        "nights": [
            {
                "duration_s": night.duration_s,
                "finished": night.finished.value,
                "verdict": verdict.value,
                "faults": dict(night.faults),
                "interrupted": dict(night.spoiled),
            }
            for night, verdict in result.nights
        ],
    }
