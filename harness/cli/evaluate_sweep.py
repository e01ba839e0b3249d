"""`harness evaluate --sweep`: counts at every threshold from kept scores, a DET curve, a point for a target.

`sweep_options` adds the options to the command, which gets them as one argument `sweep`; `SweepAsked.after` is called
once the evaluation's journal is complete. Development lists are evaluated here, into a journal of their own.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness import __version__
from harness.base.cells import counted
from harness.base.whole_file import write_whole
from harness.cli.evaluate_cluster import runner
from harness.cli.evaluate_lists import list_facts
from harness.cli.evaluate_options import Asked
from harness.model.choices import TWV_BETA, ChosenBy
from harness.model.errors import InputError
from harness.model.offline import EngineFacts, FileOutcome
from harness.offline.journal_lines import JournalHeader

if TYPE_CHECKING:
    from harness.offline.figures.sweep import Sweep, Target
    from harness.offline.journal import JournalFile
    from harness.offline.run import Progress
    from harness.offline.score_cache import ScoreCache

Command = TypeVar("Command", bound=Callable[..., Any])
BESIDE_LOG = ""


@dataclass(frozen=True, slots=True)
class SweepAsked:
    """Options of a sweep as they were given; prefix None: no sweep is asked for, "": files beside the log."""

    prefix: str | None = None
    dev_inv: tuple[str, ...] = ()
    dev_oov: tuple[str, ...] = ()
    target: Target | None = None
    twv: bool = False
    beta: float = TWV_BETA
    speech_s: float | None = None
    refractory_ms: float | None = None
    picture: bool = True

    def __bool__(self) -> bool:
        return self.prefix is not None

    def demand_sense(self, asked: Asked) -> None:
        """InputError where the options do not fit each other, or the rest of the command; before any audio is read."""
        from harness.offline.lists import read_lists

        developed = bool(self.dev_inv or self.dev_oov)
        if not self:
            if developed or self.target is not None or self.twv:
                raise InputError("targets, development lists and --twv are of a sweep", remedy="Add --sweep")
            return
        if not asked.inv and not asked.oov:
            raise InputError("a sweep is over wake phrases, not over -c", remedy="Give -i, -o or both")
        if asked.shard is not None:
            raise InputError(
                "a sweep is over whole lists, and --shard gives a part",
                remedy="Run the shards with one --cache folder, then the same command without --shard and with --sweep",
            )
        if asked.continuous:
            raise InputError("a sweep needs files that begin afresh", remedy="Leave --continuous out")
        if self.prefix and not Path(self.prefix).parent.is_dir():
            raise InputError(
                f"there is no folder {Path(self.prefix).parent}", remedy="Make it, or choose another --sweep"
            )
        if self.target is None:
            if developed:
                raise InputError(
                    "development lists are to choose a point on",
                    remedy="Add --target-fa-per-hour, --target-fr or --target-cost",
                )
            return
        lists = (self.dev_inv, self.dev_oov) if developed else (asked.inv, asked.oov)
        if not all(lists):
            names = "--dev-inv and --dev-oov" if developed else "-i and -o"
            raise InputError("a point is chosen by false rejects and false accepts", remedy=f"Give both {names}")
        if developed:
            read_lists(self.dev_inv, self.dev_oov, ())  # what is wrong with them is told now, not after hours

    def cache(self, cache: str, log: Path) -> str:
        """The folder of scores: the one that was named, or with a sweep one beside the log."""
        return cache or (f"{log}.scores" if self else "")

    def after(
        self,
        asked: Asked,
        journal: Path,
        log: Path,
        say: Callable[[str], None],
        warn: Callable[[str], None],
        on_progress: Callable[[Progress], None],
    ) -> bool:
        """Sweeps what the journal holds, writes the files, and says what was found. Nothing when none is asked for.

        Whether the development lists went without a fault, as the exit status asks of every list. warn: takes lines
        that are no result. InputError, LogError; KeyboardInterrupt when the development lists were interrupted.
        """
        from harness.cli.evaluate_faults import fault_lines, has_faults
        from harness.offline.figures.counts import Tally
        from harness.offline.journal import read_journal
        from harness.offline.score_cache import ScoreCache
        from harness.offline.sweep import demand_scores

        if not self:
            return True
        read = read_journal(journal)
        header = read.header
        demand_scores(header.facts, header.evaluation)
        cache = ScoreCache(header.evaluation.cache, warn)
        report, reported = self._swept(read, cache)
        developed: Sweep | None = None
        well = True
        if self.dev_inv or self.dev_oov:
            dev = self._develop(asked, header, journal, on_progress, warn)
            developed, on_dev = self._swept(dev, cache)
            tally = Tally(header.counting)
            for one in dev.outcomes():
                tally.add(one.outcome)
            well = not has_faults(tally.counts)
            resampling = header.evaluation.resample
            for line in fault_lines(tally.counts, f"{dev.path} says", "development file", resampling=resampling):
                warn(line)
            if both := len(reported & on_dev):
                same = counted(both, "development file")
                warn(f"{same} with the very bytes of reported ones: the report is not of new audio")
        prefix = self.prefix if self.prefix != BESIDE_LOG else f"{log.with_suffix('')}.det"
        for line in self._told(report, developed, str(prefix), header):
            say(line)
        warn(f"scores in {cache.folder}: {cache.size(header.facts.fingerprint)}")
        return well

    def _swept(self, journal: JournalFile, cache: ScoreCache) -> tuple[Sweep, set[bytes]]:
        from harness.offline.sweep import sweep_of

        header = journal.header
        seen: set[bytes] = set()

        def outcomes() -> Iterator[tuple[FileOutcome, str]]:
            for one in journal.outcomes():
                if one.outcome.sha256:
                    seen.add(bytes.fromhex(one.outcome.sha256)[:12])
                yield one.outcome, one.listed

        found = sweep_of(
            outcomes(), header.facts, header.evaluation, header.counting, cache, refractory_ms=self.refractory_ms
        )
        return found, seen

    def _develop(
        self,
        asked: Asked,
        header: JournalHeader,
        journal: Path,
        on_progress: Callable[[Progress], None],
        warn: Callable[[str], None],
    ) -> JournalFile:
        """The development lists, evaluated as the others were."""
        from harness.offline.journal import Journal, read_journal
        from harness.offline.lists import read_lists
        from harness.offline.run import stop_when_asked

        listing = read_lists(self.dev_inv, self.dev_oov, ())
        path = journal.with_name(f"{journal.stem}.dev{journal.suffix}")
        of_dev = replace(asked, inv=self.dev_inv, oov=self.dev_oov)

        def opens(facts: EngineFacts) -> Journal:
            return Journal.create(
                path,
                JournalHeader(
                    header.evaluation,
                    header.counting,
                    facts,
                    list_facts(of_dev, listing),
                    len(listing.files),
                    time.time(),
                    header.command_line,
                    (("voice-harness", __version__),),
                ),
            )

        with stop_when_asked() as stop:
            ran = runner(asked)(
                header.evaluation,
                listing.files,
                journal=opens,
                stop=stop,
                on_progress=on_progress,
                on_told=warn,
            )
        if ran.partial:
            raise KeyboardInterrupt
        return read_journal(path)

    def _told(self, report: Sweep, developed: Sweep | None, prefix: str, header: JournalHeader) -> Iterator[str]:
        from harness.offline.figures.sweep import ChosenPoint, choose, term_weighted
        from harness.offline.reports.det import chosen_json, chosen_lines, det_csv, sweep_json, twv_json, twv_lines

        points = header.facts.operating_points
        chosen: ChosenPoint | None = None
        on = (developed or report).at()
        if self.target is not None:
            chosen = choose(self.target, on, points, report if developed is not None else None)
        named = [] if chosen is None else [chosen.chosen.threshold]
        det = report.at(report.thresholds(named))
        twv = (self.beta, self.speech_s) if self.twv else None
        at = named[0] if named else None
        files = {f"{prefix}.csv": det_csv(det, points, at, twv)}
        told = sweep_json(report, len(det), header.facts, header.counting.lead_in_ms)
        told["task"], told["settings"] = header.evaluation.task.name, dict(header.evaluation.task.settings)
        if developed is not None:
            files[f"{prefix}.dev.csv"] = det_csv(developed.at(developed.thresholds(named)), points, at, twv)
        if self.target is not None:
            told["choice"] = chosen_json(self.target, chosen)
        if self.twv:
            values = term_weighted(report, det, self.beta, self.speech_s)
            told["term_weighted"] = twv_json(values)
        files[f"{prefix}.json"] = json.dumps(told, indent=1) + "\n"
        for name, text in files.items():
            write_whole(Path(name), text.encode())
        drawn = [*files]
        if self.picture and det.has_accepts and det.has_rejects:
            from harness.offline.reports.det import ENDINGS, Curve, draw

            two = None if developed is None else Curve("development list", on)
            curve = Curve("reported list" if two is not None else "list", det)
            for ending in ENDINGS:
                draw(Path(f"{prefix}.{ending}"), header.evaluation.task.name, curve, points, two, chosen)
                drawn.append(f"{prefix}.{ending}")
        yield f"Sweep: {len(det):,} thresholds, in {', '.join(drawn)}"
        if self.target is not None:
            yield from chosen_lines(self.target, chosen)
        if self.twv:
            yield from twv_lines(values)


def sweep_options(command: Command) -> Command:
    """Adds the options of a sweep to a command, which takes them as the argument `sweep: SweepAsked`."""

    @functools.wraps(command)
    def with_sweep(*args: Any, **given: Any) -> Any:
        target = _target(
            given.pop("target_fa_per_hour"), given.pop("target_fr"), given.pop("target_cost"), given.pop("choose_by")
        )
        asked = SweepAsked(
            given.pop("sweep_prefix"),
            given.pop("dev_inv"),
            given.pop("dev_oov"),
            target,
            given.pop("twv"),
            given.pop("twv_beta"),
            given.pop("twv_speech_s"),
            given.pop("sweep_refractory_ms"),
            not given.pop("no_picture"),
        )
        return command(*args, sweep=asked, **given)

    found: Any = with_sweep
    for option in reversed(_OPTIONS):
        found = option(found)
    return found  # type: ignore[no-any-return]


def _target(
    fa_per_hour: float | None, fr_percent: float | None, cost: tuple[float, float, float] | None, by: str
) -> Target | None:
    given = [one for one in (fa_per_hour, fr_percent, cost) if one is not None]
    if not given:
        return None
    if len(given) > 1:
        raise InputError("two targets are given, and a point is chosen for one", remedy="Give one --target-…")
    from harness.offline.figures.sweep import Aim, Target

    if fa_per_hour is not None:
        return Target(Aim.FALSE_ACCEPTS, fa_per_hour, ChosenBy(by))
    if fr_percent is not None:
        return Target(Aim.FALSE_REJECTS, fr_percent / 100, ChosenBy(by))
    if cost is not None:
        return Target(Aim.COST, miss_cost=cost[0], accept_cost=cost[1], uses_per_hour=cost[2])
    return None


_OPTIONS = (
    click.option(
        "--sweep", "sweep_prefix", is_flag=False, flag_value=BESIDE_LOG, default=None, metavar="[PREFIX]",
        help="Count at every threshold: PREFIX.csv, .json, .png, .svg; without PREFIX X.det.* beside X.log.",
    ),
    click.option("--dev-inv", multiple=True, metavar="FILE", help="In-vocabulary list to choose a point on."),
    click.option("--dev-oov", multiple=True, metavar="FILE", help="Out-of-vocabulary list to choose a point on."),
    click.option(
        "--target-fa-per-hour", type=click.FloatRange(min=0), metavar="X",
        help="Recommend the point with fewest false rejects and at most X false accepts an hour.",
    ),
    click.option(
        "--target-fr", type=click.FloatRange(0, 100), metavar="PERCENT",
        help="Recommend the point with fewest false accepts and at most PERCENT false rejects.",
    ),
    click.option(
        "--target-cost", nargs=3, type=click.FloatRange(min=0), metavar="MISS ACCEPT USES",
        help="Recommend the point of least cost: of a false reject, of a false accept, and uses an hour.",
    ),
    click.option(
        "--choose-by", type=click.Choice([one.value for one in ChosenBy]), default=ChosenBy.ESTIMATE.value,
        show_default=True, help="What must keep a target: the figure, or the upper end of its 95 % interval.",
    ),
    click.option("--twv", is_flag=True, help="Term-weighted values: MTWV, and ATWV at the run's own threshold."),
    click.option("--twv-beta", type=click.FloatRange(min=0), default=TWV_BETA, show_default=True, metavar="B",
                 help="What a false accept weighs against a miss."),
    click.option("--twv-speech-s", type=click.FloatRange(min=0, min_open=True), metavar="S",
                 help="Seconds of speech for the term-weighted value; else all the time of false accepts."),
    click.option("--sweep-refractory-ms", type=click.FloatRange(0, 60_000), metavar="MS",
                 help="Another refractory time for the sweep than the run's."),
    click.option("--no-picture", is_flag=True, help="No PNG and SVG of the curve."),
)  # fmt: skip
