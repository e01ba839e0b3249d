"""Evaluations on a real Dask cluster: a scheduler and workers in processes of their own, some of which are killed."""

from __future__ import annotations

import os
import shutil
import site
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.model.errors import EngineError, InputError
from harness.model.offline import FileOutcome, ListedFile, RejectReason
from harness.offline.cluster_link import REFRESH_INTERVAL_S
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import JournalMark
from tests.conformance.offline.clusters import Cluster
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.loudness import Wrong
from tests.conformance.offline.offline_runs import Played, comparable, evaluation_of, listed, workers_of
from tests.seen import until

pytestmark = pytest.mark.usefixtures("loudness_plugin")


@pytest.fixture
def cluster(tmp_path: Path, loudness_plugin: Path) -> Iterator[Callable[..., Cluster]]:
    """Starts a cluster whose processes have the plug-in."""
    started: list[Cluster] = []

    def start(**options: int) -> Cluster:
        folder = tmp_path / f"cluster{len(started)}"
        folder.mkdir()
        started.append(Cluster(folder, **options))
        return started[-1]

    yield start
    for instance in started:
        instance.__exit__()


def shared_by(cluster: Cluster, files: list[ListedFile], journal: Path, **more: Any) -> Played:
    return Played(evaluation_of(), files, journal, address=cluster.address, **more)


def test_killed_workers_and_a_lost_scheduler_lose_no_results(
    sounds: Sounds, tmp_path: Path, cluster: Callable[..., Cluster]
) -> None:
    files = listed([sounds(f"{number}.wav", 20 + number % 5, [1.5] * (number % 2)) for number in range(60)])
    files += listed([sounds("abort.wav", 20, wrong=Wrong.ABORT), tmp_path / "none.wav"])
    files = [ListedFile(file.kind, number, file.listed, file.path, number + 1) for number, file in enumerate(files)]
    dask_cluster = cluster()
    dask_cluster.add("a", "b", "c", "d")
    to_kill = ["a", "c"]

    def kill(outcome: FileOutcome, file: ListedFile) -> None:
        if to_kill:
            dask_cluster.kill(to_kill.pop())
            # What is not sent out yet has to wait, or all is played before anybody looks who is there.
            killed_s = time.monotonic()
            until(lambda: time.monotonic() - killed_s > REFRESH_INTERVAL_S)

    shared = shared_by(dask_cluster, files, tmp_path / "shared.jsonl", on_outcome=kill)
    assert not to_kill
    assert sum("is gone; another worker plays its files" in line for line in shared.told) >= 1
    assert (shared.ran.partial, shared.ran.done, shared.ran.rejected, shared.ran.errors) == (False, 62, 2, 1)
    assert shared.outcome(60).rejected is RejectReason.CRASH
    Played(evaluation_of(), files, tmp_path / "local.jsonl")
    journals = [JournalFile(tmp_path / f"{name}.jsonl") for name in ("shared", "local")]
    assert [comparable(entry) for entry in journals[0].outcomes()] == [
        comparable(entry) for entry in journals[1].outcomes()
    ]
    assert journals[0].complete
    assert journals[0].header.facts == journals[1].header.facts
    assert [name for name, _ in journals[0].used.host] == ["processor", "instruction set", "threads"]
    # The engines are let go of with the evaluation.
    until(lambda: not any(workers_of(worker.pid or 0) for worker in dask_cluster.workers.values()))

    stop = threading.Event()
    stopped = shared_by(dask_cluster, files, tmp_path / "gone.jsonl", stop=stop, on_outcome=lambda *_: stop.set())
    assert stopped.ran.partial
    before = len(JournalFile(tmp_path / "gone.jsonl"))
    assert 0 < before == stopped.ran.done < 62

    scheduler = dask_cluster.scheduler
    with pytest.raises(EngineError, match=r"the scheduler at .* is gone.*--resume"):
        shared_by(dask_cluster, files, tmp_path / "gone.jsonl", resume=True, on_outcome=lambda *_: scheduler.kill())
    left = JournalFile(tmp_path / "gone.jsonl")
    assert left.ending is JournalMark.PARTIAL
    assert before < len(left) < 62
    Played(evaluation_of(), files, tmp_path / "gone.jsonl", resume=True)
    resumed = JournalFile(tmp_path / "gone.jsonl")
    assert [comparable(entry) for entry in resumed.outcomes()] == [
        comparable(entry) for entry in journals[1].outcomes()
    ]


def test_file_that_kills_workers_is_rejected(sounds: Sounds, tmp_path: Path, cluster: Callable[..., Cluster]) -> None:
    names = [f"{number}.wav" for number in range(12)]
    files = listed([sounds(name, 2, [1.5], wrong=Wrong.KILL_PARENT if name == "7.wav" else None) for name in names])
    dask_cluster = cluster(allowed_failures=0)
    dask_cluster.add("a", "b", "c", "d")
    shared = shared_by(dask_cluster, files, tmp_path / "a.jsonl")
    assert (shared.ran.done, shared.ran.rejected) == (12, 1)
    assert shared.outcome(7).rejected is RejectReason.CRASH
    assert "in each of 3 tasks" in shared.outcome(7).error
    assert any("7.wav" in line and "tried" in line for line in shared.told)
    assert all(len(outcome.spots) == 1 for outcome in shared.outcomes if outcome.number != 7)
    assert sum(worker.is_alive() for worker in dask_cluster.workers.values()) == 1


def test_missing_cluster_and_unfit_workers_are_reported_before_playback(
    sounds: Sounds,
    tmp_path: Path,
    cluster: Callable[..., Cluster],
    loudness_plugin: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = listed([sounds("a.wav", 2, [1.5])])
    dask_cluster = cluster()
    monkeypatch.setattr("harness.offline.cluster_link.WORKERS_WITHIN_S", 0.5)
    with pytest.raises(InputError, match=r"has had no worker for 0\.5 s"):
        shared_by(dask_cluster, files, tmp_path / "a.jsonl")
    address = dask_cluster.address
    for wrong in ("tcp://127.0.0.1:1", "foo", "http://127.0.0.1:80", "tls://" + address.removeprefix("tcp://")):
        dask_cluster.address = wrong
        with pytest.raises(InputError, match=f"no Dask scheduler answers at {wrong}"):
            shared_by(dask_cluster, files, tmp_path / "a.jsonl")
    dask_cluster.address = address
    other_engine = tmp_path / "other engine"
    shutil.copytree(loudness_plugin, other_engine)
    plugin = other_engine / "loudness_plugin.py"
    plugin.write_text(plugin.read_text().replace('self.kind, "1.0"', 'self.kind, "1.1"'))
    other_harness = tmp_path / "other harness"
    shutil.copytree(Path(__file__).parents[3] / "harness", other_harness / "harness", ignore=_all_but_python)
    init_file = other_harness / "harness" / "__init__.py"
    init_file.write_text(init_file.read_text().replace("__version__ = ", "__version__ = '9' + "))
    bare = (
        f"import sys; sys.path[:0] = {site.getsitepackages()!r}\nfrom distributed.cli.dask_worker import main\nmain()"
    )
    dask_cluster.start("good")
    dask_cluster.start("engine", env={"PYTHONPATH": str(other_engine)})
    dask_cluster.start("harness", env={"PYTHONPATH": f"{other_harness}{os.pathsep}{loudness_plugin}"})
    # Without the .pth file of an installation that can be edited, the harness is not there.
    dask_cluster.start("none", program=(sys.executable, "-I", "-S", "-c", bare))
    dask_cluster.wait()
    with pytest.raises(InputError) as refused:
        shared_by(dask_cluster, files, tmp_path / "a.jsonl")
    assert "has version 9" in str(refused.value)
    assert "the harness is not installed there" in str(refused.value), refused.value
    for name in ("harness", "none"):
        dask_cluster.kill(name)
    with pytest.raises(InputError) as refused:
        shared_by(dask_cluster, files, tmp_path / "a.jsonl")
    assert {phrase in str(refused.value) for phrase in ("version is 1.0, its", "version is 1.1, its")} == {True}
    dask_cluster.kill("engine")
    assert not (tmp_path / "a.jsonl").exists()
    (tmp_path / "cluster0" / "elsewhere.wav").write_bytes((tmp_path / "sounds" / "a.wav").read_bytes())
    unseen = [ListedFile(files[0].kind, 0, "elsewhere.wav", "/proc/self/fd/97", 1)]
    with pytest.raises(InputError, match="/proc/self/fd/97 cannot be read there"):
        shared_by(dask_cluster, unseen, tmp_path / "a.jsonl")

    # One that comes later, and when no other is left.
    many = listed([sounds(f"{number}.wav", 60, [1.5]) for number in range(20)])
    late = ["late"]

    def change(outcome: FileOutcome, file: ListedFile) -> None:
        if late:
            dask_cluster.start(late.pop(), env={"PYTHONPATH": str(other_engine)})
            dask_cluster.wait()
            dask_cluster.kill("good")

    with pytest.raises(EngineError, match=r"no usable worker is left: its engine differs: version 1\.1"):
        shared_by(dask_cluster, many, tmp_path / "a.jsonl", on_outcome=change)
    before = len(JournalFile(tmp_path / "a.jsonl"))
    dask_cluster.kill("late")
    dask_cluster.add("again")
    assert shared_by(dask_cluster, many, tmp_path / "a.jsonl", resume=True).ran.done == 20 - before < 20


def _all_but_python(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_file() and not name.endswith((".py", ".so"))]


@pytest.mark.soak
def test_workers_may_come_and_go_all_the_time(sounds: Sounds, tmp_path: Path, cluster: Callable[..., Cluster]) -> None:
    wrongs = {50: Wrong.ABORT, 150: Wrong.RAISE, 250: Wrong.KILL_PARENT}
    files = listed([sounds(f"{number}.wav", 30, [1.5], wrong=wrongs.get(number)) for number in range(300)])
    dask_cluster = cluster()
    dask_cluster.add("0", "1", "2")
    ended, killed, number = threading.Event(), 0, 3

    def replace_workers() -> None:
        nonlocal killed, number
        while not ended.wait(1.0):
            for name in [name for name, worker in dask_cluster.workers.items() if not worker.is_alive()]:
                dask_cluster.kill(name)
            if len(dask_cluster.workers) >= 3 and killed < 10:
                dask_cluster.kill(next(iter(dask_cluster.workers)))
                killed += 1
            while len(dask_cluster.workers) < 3:
                dask_cluster.start(str(number))
                number += 1

    replacing = threading.Thread(target=replace_workers)
    replacing.start()
    try:
        shared = shared_by(dask_cluster, files, tmp_path / "a.jsonl", task_s=30.0)
    finally:
        ended.set()
        replacing.join()
    assert (shared.ran.done, shared.ran.rejected) == (300, 3)
    assert {outcome.number for outcome in shared.outcomes if outcome.rejected} == set(wrongs)
    assert "in each of 3 tasks" in shared.outcome(250).error
    assert killed
