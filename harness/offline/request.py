"""The options of an evaluation, and checks that they fit together, before any audio is read.

Imports no arithmetic, so that `--help` is quick."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain, count
from pathlib import Path, PurePath

from harness.base.text_file import checked_encoding
from harness.base.whole_file import demand_folder
from harness.model.choices import HANG_AFTER_S, TWV_BETA, LimitBasis, TargetBasis
from harness.model.errors import InputError, Place, demand_main_options
from harness.model.frozen import frozen
from harness.model.offline import TOLERANCE_S, EngineFacts, EngineKind, Evaluation, LeadInRef, Task
from harness.model.stimulus import SoundCondition
from harness.offline.journal_lines import Shard

MAX_NAME_CHARS = 120
"""Longest name of a task in file names."""
TASK_HOURS = 1.0
BESIDE_LOG = ""
"""The prefix of a sweep whose files stand beside the log."""
_ENGINE_NOUNS = {
    EngineKind.WAKE: "a wake engine",
    EngineKind.COMMAND: "a recogniser of commands",
    EngineKind.TRANSCRIPT: "a recogniser of words",
    EngineKind.FRAME: "a system of intents and slots",
}


@frozen
class EvaluationRequest:
    """What an evaluation plays, where, and how it counts."""

    inside: tuple[str, ...] = ()
    """Places of recordings with the phrase; see `file_sources.py`."""
    outside: tuple[str, ...] = ()
    """Places of recordings without the phrase."""
    inv: tuple[str, ...] = ()
    """Names of lists of recordings with the phrase."""
    oov: tuple[str, ...] = ()
    """Names of lists of recordings without the phrase."""
    referenced: tuple[str, ...] = ()
    """Names of lists of recordings with references."""
    encoding: str | None = None
    """Encoding of manifests and labels; None for UTF-8."""

    long: tuple[str, ...] = ()
    """Places of long recordings, in which phrases are labelled."""
    labels: tuple[str, ...] = ()
    """Places of these labels; () if they are beside the recordings."""
    tier: str = ""
    """The tier of TextGrids with the labels; "" for all."""
    tolerance_s: float = TOLERANCE_S
    """Time after a labelled phrase within which its detection counts."""

    conditions: str = ""
    """Name of a file of sound conditions, in each of which every file is played; "" for none."""
    vad: bool = False
    """Whether recognisers get only the speech in a recording."""
    resample: bool = False
    """Whether recordings at other rates than the engine's are used."""
    tail_s: float = 0.0
    """Silence after each recording with the phrase or a reference."""
    continuous: bool = False
    """Whether the recordings without the phrase are played as one sound."""
    lead_in_ref: LeadInRef = LeadInRef.END
    """Edge of a detection that must come after the lead-in."""

    by: tuple[tuple[str, ...], ...] = ()
    """Columns to group results by; several in one entry are crossed."""
    clustered_by: str | None = None
    """Name of the column whose values are clusters; None for a column of talkers if there is one, "" for none."""
    words: bool = False
    """Whether words, not commands, are compared with the references."""
    normalise: bool = False
    """Whether texts are compared in lower case and without punctuation."""
    count_in_vocabulary: bool = False
    """Whether false accepts in recordings with the phrase count in the rate."""

    log: str | None = None
    """Name of the log; None for a name that is made from the task."""
    resume: bool = False
    """Whether to continue the log's journal, if there is one."""
    force: bool = False
    """Whether to replace an existing log."""
    cache: str = ""
    """Folder of stored scores; "" if no option names one."""
    shard: Shard | None = None
    """The shard of the lists that is played; None for whole lists."""
    jobs: int = 1
    """Number of worker processes on this computer, or of devices."""
    cluster: str = ""
    """Address of a cluster's scheduler; "" for `jobs` local processes."""
    task_hours: float = TASK_HOURS
    """Hours of sound in a task of the cluster."""
    hang_after_s: float = HANG_AFTER_S
    """Time allowed for a file beyond what its length explains."""

    def __post_init__(self) -> None:
        if not (self.with_phrase or self.without_phrase or self.referenced):
            raise InputError(
                "no recordings are given",
                remedy="Add folders: --in (with the phrase) and --out (without it). Or add lists: -i, --oov or -c",
            )
        if self.labels and not self.long:
            raise InputError("--long-labels requires --long", remedy="Add --long with the recordings")
        if self.tier and not self.long:
            raise InputError("--tier requires --long", remedy="Add --long with the recordings")
        if self.encoding:
            checked_encoding(self.encoding)
        if self.tolerance_s != TOLERANCE_S and not self.long:
            raise InputError("--label-tolerance requires --long", remedy="Add --long with the recordings")
        if [*self.inside, *self.outside, *self.long].count("-") > 1:
            raise InputError("standard input (-) can be read only once", remedy="Replace one - with a folder")
        if self.with_phrase and self.referenced:
            raise InputError(
                "-c cannot be used with -i, --in or --long", remedy="Run two evaluations with separate logs"
            )
        if self.words and not self.referenced:
            raise InputError("-w needs -c", remedy="Add a list of audio and reference files: -c list.csv")
        if self.count_in_vocabulary and self.words:
            raise InputError("-u cannot be used with -w", remedy="Remove -u: word errors have no false accepts")
        if self.tail_s and not (self.inv or self.inside or self.referenced):
            raise InputError("--tail needs recordings with the phrase or a reference", remedy="Add --in, -i or -c")
        if self.tail_s and self.vad:
            raise InputError("--tail cannot be used with -a, which removes silence", remedy="Remove --tail or -a")
        if self.resume and self.force:
            raise InputError("--resume and --force cannot be used together", remedy="Remove --resume or --force")
        if self.continuous and not (self.oov or self.outside):
            raise InputError("--continuous needs out-of-vocabulary files", remedy="Add --oov or --out")
        if self.continuous and self.conditions:
            raise InputError(
                "--continuous cannot be used with --conditions: its state would carry over between conditions",
                remedy="Remove --continuous or --conditions",
            )
        if self.continuous and self.shard is not None:
            raise InputError(
                "--continuous cannot be used with --shard: the engine's state passes from file to file",
                remedy="Remove --continuous or --shard",
            )
        demand_main_options([("--task-hours", self.task_hours != TASK_HOURS, "--cluster", self.cluster)])
        if self.cluster and self.jobs > 1:
            raise InputError(
                "-j cannot be used with --cluster: -j sets the processes on this machine",
                remedy="Remove -j, and start one worker per processor",
            )

    @property
    def with_phrase(self) -> tuple[str, ...]:
        """Lists and places of files in which the phrase is a target."""
        return (*self.inv, *self.inside, *self.long)

    @property
    def without_phrase(self) -> tuple[str, ...]:
        """Lists and places of files in which false accepts are counted."""
        return (*self.oov, *self.outside, *self.long)

    def evaluation(self, task: Task, cache: str) -> Evaluation:
        """The settings that decide outcomes, for one task. cache: folder of stored scores; "" for none.

        Raises InputError for a file of conditions with mistakes.
        """
        conditions: tuple[SoundCondition, ...] = ()
        if self.conditions:
            from harness.scenario.conditions import load_conditions  # imported here: slow

            conditions = load_conditions(self.conditions)
        return Evaluation(
            task,
            resample=self.resample,
            continuous=self.continuous,
            vad=self.vad,
            hashes=bool(cache),
            cache=cache,
            conditions=conditions,
            tail_s=self.tail_s,
        )

    def demand_fit(self, task: str, facts: EngineFacts) -> None:
        """Raises InputError if this kind of engine does not fit the lists or options. task: name of the task as the
        user gave it."""
        name = f"{task} is {_ENGINE_NOUNS[facts.kind]}"
        if facts.kind is EngineKind.FRAME:
            raise InputError(
                f"{name}, which this command does not score",
                remedy="Use `harness understand predict --audio LIST.csv`, then `harness understand score`",
            )
        for option, is_given in (
            ("--shard", self.shard is not None),
            ("--cluster", self.cluster),
            ("--continuous", self.continuous),
        ):
            if facts.carries_state and is_given:
                raise InputError(
                    f"{task} carries its state from file to file, and {option} would break the order",
                    remedy=f"Remove {option}",
                )
        is_wake = facts.kind is EngineKind.WAKE
        if is_wake and self.words:
            raise InputError(f"{name}, and -w needs transcripts", remedy="Remove -w, or use a recogniser")
        if is_wake and self.vad:
            raise InputError(f"{name}, and -a is for recognisers only", remedy="Remove -a")
        if not is_wake and self.with_phrase:
            raise InputError(
                f"{name}, and -i, --in and --long are for wake engines only",
                remedy="Use audio with references: -c list.csv, and -w to compare words",
            )
        if not is_wake and self.without_phrase:
            raise InputError(
                f"{name}, and --oov and --out are for wake engines only: a recogniser does not listen continuously",
                remedy="Remove --oov and --out",
            )
        if facts.kind is EngineKind.TRANSCRIPT and self.count_in_vocabulary:
            raise InputError(f"{name}, and -u is for wake words and commands only", remedy="Remove -u")


@frozen
class PageOptions:
    """Files to write from the results.

    - report: name of an HTML page; "" for none.
    - junit: name of an XML file; "" for none.
    - audio: where the page gets its sounds from (`embed`, `beside` or `none`).
    """

    report: str = ""
    junit: str = ""
    audio: str = "embed"

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.report, self.junit)))


def log_names(log: str | None, engine_names: Sequence[str], tasks: Sequence[Task]) -> list[str]:
    """The name of the log of each task: as -l gives it. With several tasks, the task's name is added before its ending.

    engine_names: what the user gave with -t for each task.
    """
    if len(tasks) == 1 and log is not None:
        return [log]
    stem = "" if log is None else f"{log.removesuffix('.log')}."
    names: list[str] = []
    for engine_name, task in zip(engine_names, tasks, strict=True):
        name = f"{stem}{log_name(engine_name, task)}"
        candidates = chain([name], (f"{name}-{number}" for number in count(2)))
        names.append(next(candidate for candidate in candidates if candidate not in names))
    return [f"{name}.log" for name in names]


def log_name(engine_name: str, task: Task) -> str:
    """The name of a task in file names: that of a model file without its extension, or ENGINE-MODEL. The engine is
    included since several engines have a model of the same name."""
    is_file = os.sep in task.model or _known_ending(task.model)
    name = PurePath(task.model).name if is_file else task.model
    name = name.removesuffix(_known_ending(name))
    if engine_name != task.model:  # -t names an engine too
        name = f"{task.engine}-{name}" if name else task.engine
    return re.sub(r"[^\w.+-]+", "_", name).strip("_.-")[:MAX_NAME_CHARS] or task.engine


def _known_ending(name: str) -> str:
    """The ending of a file name if it is that of an engine's model files; else ""."""
    from harness.engines.offline_loading import BY_ENDING

    ending = PurePath(name).suffix
    return ending if ending.lower() in BY_ENDING else ""


@frozen
class DeclaredLimits:
    """Upper limits: false accepts per hour, false rejects in per cent, WER as a share 0–1. on: whether the estimate or
    the upper end of its interval is compared."""

    false_accepts_per_hour: float | None = None
    false_rejects_percent: float | None = None
    wer: float | None = None
    on: LimitBasis = LimitBasis.BOUND

    def demand_figures(self, request: EvaluationRequest) -> None:
        """Raises InputError for a limit on a result that this evaluation cannot have."""
        if self.false_accepts_per_hour is not None and not (request.without_phrase or request.count_in_vocabulary):
            raise InputError("--max-fa-per-hour needs out-of-vocabulary files", remedy="Add --oov or --out")
        if self.false_rejects_percent is not None and not (request.with_phrase or request.referenced):
            raise InputError("--max-fr needs in-vocabulary files", remedy="Add -i, --in or -c")
        if self.wer is not None and not request.words:
            raise InputError("--max-wer needs transcripts to compare", remedy="Add -c and -w")


class SweepCriterion(StrEnum):
    """The criterion by which a point is chosen."""

    FALSE_ACCEPTS = "false accepts per hour"
    FALSE_REJECTS = "false rejects"
    COST = "cost"


@frozen
class SweepTarget:
    """A target by which a threshold is chosen.

    - limit: the most false accepts per hour, or the largest share of false rejects (0–1).
    - basis: whether the estimate or the upper end of its interval must keep the limit.
    - miss_cost, accept_cost: cost of a false reject and of a false accept. uses_per_hour: how often the phrase is
      spoken. These three apply to COST only, which ignores `limit` and `basis`.
    """

    criterion: SweepCriterion
    limit: float = 0.0
    basis: TargetBasis = TargetBasis.ESTIMATE
    miss_cost: float = 1.0
    accept_cost: float = 1.0
    uses_per_hour: float = 1.0


@frozen
class SweepRequest:
    """A sweep of thresholds, and how a point is chosen."""

    prefix: str | None = None
    """Beginning of the names of its files; None for no sweep, BESIDE_LOG for files beside the log."""
    dev_inv: tuple[str, ...] = ()
    """Lists and places of development recordings with the phrase."""
    dev_oov: tuple[str, ...] = ()
    """Lists and places of development recordings without the phrase."""
    target_fa_per_hour: float | None = None
    """Most false accepts per hour. At most one of the three targets is given."""
    target_fr_percent: float | None = None
    """Largest share of false rejects, in per cent."""
    target_cost: tuple[float, float, float] | None = None
    """Cost of a false reject, cost of a false accept, and uses per hour; the least cost is the target."""
    choose_by: TargetBasis = TargetBasis.ESTIMATE
    """Whether the estimate or the upper end of its interval must meet the target."""
    twv: bool = False
    """Whether to compute term-weighted values."""
    beta: float = TWV_BETA
    """Weight of false accepts in them."""
    speech_s: float | None = None
    """Seconds of speech in them; None for the time in which false accepts are counted."""
    refractory_ms: float | None = None
    """Refractory time; None for that of the run."""
    no_picture: bool = False

    def __post_init__(self) -> None:
        targets = (self.target_fa_per_hour, self.target_fr_percent, self.target_cost)
        if sum(target is not None for target in targets) > 1:
            raise InputError(
                "only one target can be used", remedy="Keep --target-fa-per-hour, --target-fr or --target-cost"
            )

    @property
    def is_wanted(self) -> bool:
        return self.prefix is not None

    @property
    def has_dev_lists(self) -> bool:
        """Whether a point is chosen on other lists than the reported ones."""
        return bool(self.dev_inv or self.dev_oov)

    @property
    def target(self) -> SweepTarget | None:
        """The one target that is given; None without."""
        if self.target_fa_per_hour is not None:
            return SweepTarget(SweepCriterion.FALSE_ACCEPTS, self.target_fa_per_hour, self.choose_by)
        if self.target_fr_percent is not None:
            return SweepTarget(SweepCriterion.FALSE_REJECTS, self.target_fr_percent / 100, self.choose_by)
        if self.target_cost is not None:
            miss, accept, uses = self.target_cost
            return SweepTarget(SweepCriterion.COST, miss_cost=miss, accept_cost=accept, uses_per_hour=uses)
        return None

    def beside(self, prefix: str) -> SweepRequest:
        """The same request with this prefix, if its files stand beside the log; else the request unchanged."""
        return replace(self, prefix=prefix) if self.prefix == BESIDE_LOG else self

    def files(self, log_files: Sequence[Path]) -> Iterator[Path]:
        """The files that a sweep may write; none if it is not wanted.

        Raises InputError if their folder does not exist, or if one would replace a file of the log.
        """
        if not self.prefix:
            return
        demand_folder(Path(self.prefix))
        log_places = {os.path.realpath(file) for file in log_files}
        for ending in (".csv", ".json", ".dev.csv", ".png", ".svg"):
            file = Path(f"{self.prefix}{ending}")
            if os.path.realpath(file) in log_places:
                problem = "the sweep would replace a file of the log"
                raise InputError(problem, place=Place(str(file)), remedy="Choose another prefix for --sweep")
            yield file

    def _refuse_options_of_one_engine(self) -> None:
        for option, is_given in (
            ("--target-fr", self.target_fr_percent is not None),
            ("--target-cost", self.target_cost is not None),
            ("--twv", self.twv),
            ("--sweep-refractory-ms", self.refractory_ms is not None),
        ):
            if is_given:
                raise InputError(f"{option} can be used with only one engine", remedy="Use a single -t")

    def check_consistent(self, request: EvaluationRequest, *, several: bool) -> None:
        """Raises InputError if the options do not fit each other or the evaluation.

        several: whether several engines are compared. That is at equal false accepts, so --target-fa-per-hour applies
        to them even without a sweep.
        """
        if several:
            self._refuse_options_of_one_engine()
        has_limit = self.target_fa_per_hour is not None or self.target_fr_percent is not None
        demand_main_options((
            ("--sweep-refractory-ms", self.refractory_ms is not None, "--sweep", self.is_wanted),
            ("--no-picture", self.no_picture, "--sweep", self.is_wanted),
            ("--twv-beta", self.beta != TWV_BETA, "--twv", self.twv),
            ("--twv-speech-s", self.speech_s is not None, "--twv", self.twv),
            ("--choose-by", self.choose_by is TargetBasis.BOUND, "--target-fa-per-hour or --target-fr", has_limit),
        ))  # fmt: skip
        target = self.target
        if not self.is_wanted:
            if self.has_dev_lists or self.twv or (target is not None and not several):
                raise InputError("targets, development lists and --twv need a sweep", remedy="Add --sweep")
            return
        if not request.with_phrase and not request.without_phrase:
            raise InputError(
                "a sweep needs lists for a wake engine, not -c", remedy="Replace -c with -i, --oov or both"
            )
        if request.shard is not None:
            raise InputError(
                "a sweep needs whole lists and cannot be used with --shard",
                remedy="Run the shards with one --cache folder, then the same command without --shard and with --sweep",
            )
        if request.continuous:
            raise InputError(
                "a sweep cannot be used with --continuous: each file must start with a new engine state",
                remedy="Remove --continuous",
            )
        if target is None:
            if self.has_dev_lists:
                raise InputError(
                    "development lists need a target", remedy="Add --target-fa-per-hour, --target-fr or --target-cost"
                )
            return
        lists = (self.dev_inv, self.dev_oov) if self.has_dev_lists else (request.with_phrase, request.without_phrase)
        if not all(lists):
            names = "-i (or --in) and --oov (or --out)"
            if self.has_dev_lists:
                names = "--dev-inv and --dev-oov"
            raise InputError("choosing a point needs both false rejects and false accepts", remedy=f"Use both {names}")
