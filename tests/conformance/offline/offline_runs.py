"""Runs for tests: by the command line or without it; files to lists, a journal, and what came of it."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from harness.cli import group
from harness.engines.offline_loading import task_of
from harness.model.errors import InputError
from harness.model.offline import CountingRules, EngineFacts, Evaluation, FileOutcome, ListedFile, ListKind
from harness.offline.cluster import run_on_cluster
from harness.offline.journal import Journal
from harness.offline.journal_lines import JournalHeader, JournalledOutcome, ListFacts, Shard
from harness.offline.pool import WorkerLimits
from harness.offline.run import OpenJournal, RunPace, run

COMMAND = (sys.executable, "-c", "from harness.cli import main; main()")
"""The command line in a process of its own, for what only a process can show."""
_TIMES = re.compile(
    r"^INFO (start-time|completion-time|duration|real-time-factor|command-line|x-cpu-seconds|x-peak-memory-mb) .*\n",
    re.MULTILINE,
)


def harness(*arguments: object) -> Result:
    """The command line within this process."""
    return CliRunner(env={"COLUMNS": "100"}).invoke(group, list(map(str, arguments)))


def refused(*arguments: object) -> str:
    """The words with which the command line refuses wrong input, whose status is 2."""
    result = harness(*arguments)
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    return str(result.exception)


def untimed(log: Path) -> str:
    """A log without the lines that differ from one run to the next."""
    return _TIMES.sub("", log.read_text())


def list_of(path: Path, files: Sequence[Path | str]) -> Path:
    """Writes a list of files, as -i and --oov take it."""
    path.write_text("".join(f"{file}\n" for file in files))
    return path


def listed(inv: Sequence[Path] = (), oov: Sequence[Path] = ()) -> list[ListedFile]:
    return [
        ListedFile(kind, number, path.name, str(path), number + 1)
        for kind, paths in ((ListKind.INV, inv), (ListKind.OOV, oov))
        for number, path in enumerate(paths)
    ]


def evaluation_of(task: str = "loudness:boom", settings: dict[str, str] | None = None, **more: Any) -> Evaluation:
    return Evaluation(task_of(task, (settings or {}).items()), **more)


def header_for(
    evaluation: Evaluation, files: Sequence[ListedFile], facts: EngineFacts, shard: Shard | None = None
) -> JournalHeader:
    kinds = [kind for kind in ListKind if any(file.kind is kind for file in files)]
    lists = tuple(ListFacts(f"{kind}.txt", "0" * 64, kind, sum(file.kind is kind for file in files)) for kind in kinds)
    return JournalHeader(evaluation, CountingRules(), facts, lists, len(files), 1e9, shard=shard)


def opens(journal: Path, evaluation: Evaluation, files: Sequence[ListedFile], *, resume: bool) -> OpenJournal:
    """What a run opens its journal with: a new one, or the one that is gone on with."""

    def opened(facts: EngineFacts) -> Journal:
        make = Journal.reopen if resume else Journal.create
        return make(journal, header_for(evaluation, files, facts))

    return opened


class Played:
    """A run to its end, by worker processes or, with an address, by a cluster's workers. outcomes: as they came."""

    def __init__(
        self,
        evaluation: Evaluation,
        files: Sequence[ListedFile],
        journal: Path,
        *,
        jobs: int = 2,
        resume: bool = False,
        stop: threading.Event | None = None,
        limits: WorkerLimits = WorkerLimits(nice=0),  # noqa: B008 – frozen
        on_outcome: Callable[[FileOutcome, ListedFile], None] | None = None,
        address: str = "",
        task_s: float = 60.0,
    ) -> None:
        self.outcomes: list[FileOutcome] = []
        self.told: list[str] = []

        def take(outcome: FileOutcome, file: ListedFile) -> None:
            assert (outcome.kind, outcome.number) == (file.kind, file.number)
            self.outcomes.append(outcome)
            if on_outcome is not None:
                on_outcome(outcome, file)

        play = partial(run_on_cluster, address=address, task_s=task_s) if address else partial(run, jobs=jobs)
        self.ran: RunPace = play(
            evaluation,
            files,
            journal=opens(journal, evaluation, files, resume=resume),
            on_outcome=take,
            stop=stop or threading.Event(),
            on_line=self.told.append,
            limits=limits,
        )

    def outcome(self, number: int, kind: ListKind = ListKind.INV) -> FileOutcome:
        outcomes = [outcome for outcome in self.outcomes if (outcome.kind, outcome.number) == (kind, number)]
        assert len(outcomes) == 1, outcomes
        return outcomes[0]


def comparable(entry: JournalledOutcome) -> tuple[object, ...]:
    """All of an outcome that does not depend on time."""
    outcome = entry.outcome
    return (
        entry.listed,
        outcome.kind,
        outcome.number,
        outcome.samples,
        outcome.rate_hz,
        outcome.spots,
        outcome.said,
        outcome.rejected,
        outcome.error,
    )


def workers_of(pid: int) -> list[int]:
    """Workers of a process."""
    workers = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command_line = stat.with_name("cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and b"harness.offline.worker" in command_line and fields[0] != "Z":
            workers.append(int(stat.parent.name))
    return workers
