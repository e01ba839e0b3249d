"""What is asked of an evaluation: options as they were given, and what they demand of each other before any audio is
read. Imports no arithmetic, so that a command's help is quick."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath

from harness.model.choices import HANG_AFTER_S, TWV_BETA, ChosenBy, LimitsOn
from harness.model.errors import InputError
from harness.model.offline import EngineFacts, EngineKind, Evaluation, LeadInRef, Task
from harness.offline.journal_lines import Shard

LONGEST_NAME = 120
BESIDE_LOG = ""
_KINDS = {
    EngineKind.WAKE: "a wake engine",
    EngineKind.COMMAND: "a recogniser of commands",
    EngineKind.TRANSCRIPT: "a recogniser of words",
}


@dataclass(frozen=True, slots=True)
class EvaluationAsked:
    """What is played, where, and how it is counted. inv, oov, referenced: names of lists; cluster: a scheduler's
    address, or "" for `jobs` processes of this machine."""

    inv: tuple[str, ...] = ()
    oov: tuple[str, ...] = ()
    referenced: tuple[str, ...] = ()
    jobs: int = 1
    log: str | None = None
    normalise: bool = False
    count_in_vocabulary: bool = False
    words: bool = False
    vad: bool = False
    resume: bool = False
    force: bool = False
    shard: Shard | None = None
    resample: bool = False
    continuous: bool = False
    lead_in_ref: LeadInRef = LeadInRef.END
    hang_after_s: float = HANG_AFTER_S
    cache: str = ""
    cluster: str = ""
    task_hours: float = 1.0

    def __post_init__(self) -> None:
        if not (self.inv or self.oov or self.referenced):
            raise InputError(
                "there is no list of files", remedy="Give at least one of -i (in-vocabulary), -c (with references), -o"
            )
        if self.inv and self.referenced:
            raise InputError(
                "-c and -i cannot be used together", remedy="Evaluate each by itself, with a log of its own"
            )
        if self.words and not self.referenced:
            raise InputError("-w needs -c", remedy="Give a list of audio and reference files: -c list.csv")
        if self.count_in_vocabulary and self.words:
            raise InputError("-u cannot be used with -w", remedy="Word errors have no false accepts; leave -u out")
        if self.resume and self.force:
            raise InputError("--resume goes on, and --force begins anew", remedy="Give one of them")
        if self.continuous and not self.oov:
            raise InputError("--continuous is of out-of-vocabulary files, and there are none", remedy="Give -o")
        if self.continuous and self.shard is not None:
            raise InputError(
                "--continuous carries the engine's state from file to file, which --shard takes apart",
                remedy="Leave one of them out",
            )
        if self.cluster and self.jobs > 1:
            raise InputError(
                "-j is of this machine's processes, and --cluster plays on its workers'",
                remedy="Leave -j out; start as many workers as there are processors",
            )

    def evaluation(self, task: Task, cache: str) -> Evaluation:
        return Evaluation(task, self.resample, self.continuous, self.vad, hashes=bool(cache), cache=cache)

    def demand_fit(self, task: str, facts: EngineFacts) -> None:
        """InputError where this kind of engine cannot be evaluated on these lists in this way. task: as given."""
        name = f"{task} is {_KINDS[facts.kind]}"
        wake = facts.kind is EngineKind.WAKE
        if wake and self.words:
            raise InputError(f"{name}, and tells no words for -w", remedy="Leave -w out, or name a recogniser")
        if wake and self.vad:
            raise InputError(f"{name}, and -a is of recognisers", remedy="Leave -a out")
        if not wake and self.inv:
            raise InputError(
                f"{name}, and -i is of wake engines",
                remedy="Give audio with references: -c list.csv, with -w for words",
            )
        if not wake and self.oov:
            raise InputError(
                f"{name}, which does not listen all the time: it has no false accepts an hour", remedy="Leave -o out"
            )
        if facts.kind is EngineKind.TRANSCRIPT and self.count_in_vocabulary:
            raise InputError(f"{name}, and -u is of wake words and commands", remedy="Leave -u out")


def log_name(text: str, task: Task) -> str:
    """A model file's name without its ending; of an engine and a model both, since engines share names of phrases."""
    name = PurePath(task.model).name if os.sep in task.model or _ending(task.model) else task.model
    name = name.removesuffix(_ending(name))
    if text != task.model:
        name = f"{task.engine}-{name}" if name else task.engine
    return re.sub(r"[^\w.+-]+", "_", name).strip("_.-")[:LONGEST_NAME] or task.engine


def _ending(name: str) -> str:
    from harness.engines.offline_loading import BY_ENDING

    ending = PurePath(name).suffix
    return ending if ending.lower() in BY_ENDING else ""


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """The most that figures may be: false accepts an hour, false rejects in per cent, WER as a share 0–1."""

    false_accepts_per_hour: float | None = None
    false_rejects_percent: float | None = None
    wer: float | None = None
    on: LimitsOn = LimitsOn.BOUND

    def demand_figures(self, asked: EvaluationAsked) -> None:
        """InputError for a limit on a figure that this evaluation will not have."""
        if self.false_accepts_per_hour is not None and not (asked.oov or asked.count_in_vocabulary):
            raise InputError("--max-fa-per-hour is of out-of-vocabulary audio, and there is none", remedy="Give -o")
        if self.false_rejects_percent is not None and not (asked.inv or asked.referenced):
            raise InputError("--max-fr is of in-vocabulary files, and there are none", remedy="Give -i or -c")
        if self.wer is not None and not asked.words:
            raise InputError("--max-wer is of words, and none are compared", remedy="Give -w with -c")


class Aim(StrEnum):
    """What a point is chosen for."""

    FALSE_ACCEPTS = "false accepts an hour"
    FALSE_REJECTS = "false rejects"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class SweepTarget:
    """A declared target. value: the most false accepts an hour, or the largest share of false rejects (0–1).

    miss_cost, accept_cost, uses_per_hour: of a COST, which has no value and is chosen by estimate.
    """

    aim: Aim
    value: float = 0.0
    by: ChosenBy = ChosenBy.ESTIMATE
    miss_cost: float = 1.0
    accept_cost: float = 1.0
    uses_per_hour: float = 1.0


@dataclass(frozen=True, slots=True)
class SweepAsked:
    """A sweep of thresholds; prefix None: none is asked for, "": files beside the log.

    target_cost: of a miss, of a false accept, uses an hour.
    """

    prefix: str | None = None
    dev_inv: tuple[str, ...] = ()
    dev_oov: tuple[str, ...] = ()
    target_fa_per_hour: float | None = None
    target_fr_percent: float | None = None
    target_cost: tuple[float, float, float] | None = None
    choose_by: ChosenBy = ChosenBy.ESTIMATE
    twv: bool = False
    beta: float = TWV_BETA
    speech_s: float | None = None
    refractory_ms: float | None = None
    no_picture: bool = False

    def __bool__(self) -> bool:
        return self.prefix is not None

    def __post_init__(self) -> None:
        targets = (self.target_fa_per_hour, self.target_fr_percent, self.target_cost)
        if sum(one is not None for one in targets) > 1:
            raise InputError("two targets are given, and a point is chosen for one", remedy="Give one --target-…")

    @property
    def developed(self) -> bool:
        """Whether a point is chosen on other lists than those that are reported."""
        return bool(self.dev_inv or self.dev_oov)

    @property
    def target(self) -> SweepTarget | None:
        if self.target_fa_per_hour is not None:
            return SweepTarget(Aim.FALSE_ACCEPTS, self.target_fa_per_hour, self.choose_by)
        if self.target_fr_percent is not None:
            return SweepTarget(Aim.FALSE_REJECTS, self.target_fr_percent / 100, self.choose_by)
        if self.target_cost is not None:
            miss, accept, uses = self.target_cost
            return SweepTarget(Aim.COST, miss_cost=miss, accept_cost=accept, uses_per_hour=uses)
        return None

    def demand_sense(self, asked: EvaluationAsked) -> None:
        """InputError where the options do not fit each other, or the rest of what is asked."""
        target = self.target
        if not self:
            if self.developed or target is not None or self.twv:
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
        if target is None:
            if self.developed:
                raise InputError(
                    "development lists are to choose a point on",
                    remedy="Add --target-fa-per-hour, --target-fr or --target-cost",
                )
            return
        lists = (self.dev_inv, self.dev_oov) if self.developed else (asked.inv, asked.oov)
        if not all(lists):
            names = "--dev-inv and --dev-oov" if self.developed else "-i and -o"
            raise InputError("a point is chosen by false rejects and false accepts", remedy=f"Give both {names}")
