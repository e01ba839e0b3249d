"""What the command line of `harness evaluate` says, checked before any audio is read."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

import click

from harness.model.errors import InputError
from harness.model.offline import EngineFacts, EngineKind, Task
from harness.offline.journal_lines import Shard

LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """Options as they were given. inv, oov, referenced: names of lists; settings: `name=value`; files: (name, path)."""

    task: str
    inv: tuple[str, ...]
    oov: tuple[str, ...]
    referenced: tuple[str, ...]
    settings: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    jobs: int = 1
    log: str | None = None
    normalise: bool = False
    count_in_vocabulary: bool = False
    words: bool = False
    vad: bool = False
    resume: bool = False
    force: bool = False
    continuous: bool = False
    shard: Shard | None = None
    cluster: str = ""
    task_hours: float = 1.0

    def demand_sense(self) -> None:
        """InputError where options exclude one another, or need one that is not there."""
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

    def checked_task(self) -> Task:
        """The task with its settings; PluginError, InputError. Loads no model."""
        from harness.engines.offline_loading import task_of
        from harness.engines.settings import assigned

        return task_of(self.task, map(assigned, self.settings), self.files)

    def demand_fit(self, facts: EngineFacts) -> None:
        """InputError where this kind of engine cannot be evaluated on these lists in this way."""
        is_a = {
            EngineKind.WAKE: "a wake engine",
            EngineKind.COMMAND: "a recogniser of commands",
            EngineKind.TRANSCRIPT: "a recogniser of words",
        }[facts.kind]
        name = f"{self.task} is {is_a}"
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

    def log_path(self, task: Task) -> Path:
        """Where the log goes: -l, or the task's name without its extension in the current folder."""
        return Path(self.log) if self.log is not None else Path(f"{log_name(self.task, task)}.log")


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


def shard(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    """An option's part of the lists: 2/8."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{value!r} is no part of the lists; write 1/8 for the first of eight", ctx, param)
    return Shard(int(found[1]), int(found[2]))
