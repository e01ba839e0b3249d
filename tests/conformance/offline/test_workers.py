"""Supervised workers: crashes and hangs of an engine cost a file, not the run."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from harness.model.errors import DeviceError, EngineError, InputError
from harness.model.offline import ListKind, RejectReason
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import JournalMark
from harness.offline.pool import WorkerLimits
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.loudness import Wrong
from tests.conformance.offline.offline_runs import Played, comparable, evaluation_of, listed, wait_for, workers_of

pytestmark = pytest.mark.usefixtures("loudness_plugin")


def test_two_workers_find_what_one_finds(sounds: Sounds, tmp_path: Path) -> None:
    files = listed(
        [sounds(f"in{number}.wav", 2 + number % 3, [1.5]) for number in range(20)],
        [sounds("out.wav", 60, [10, 30]), sounds("quiet.wav", 20)],
    )
    for jobs in (1, 2):
        played = Played(evaluation_of(), files, tmp_path / f"{jobs}.jsonl", jobs=jobs)
        assert (played.ran.partial, played.ran.done, played.ran.rejected, played.ran.errors) == (False, 22, 0, 0)
    one, two = (JournalFile(tmp_path / f"{jobs}.jsonl") for jobs in (1, 2))
    assert one.complete
    assert two.complete
    assert [comparable(each) for each in one.outcomes()] == [comparable(each) for each in two.outcomes()]
    assert [len(each.outcome.spots) for each in one.outcomes()] == [1] * 20 + [2, 0]
    assert played.outcome(0, ListKind.OOV).spots[0].end == pytest.approx(10 * 16000, abs=320)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Wrong.ABORT, "was ended by SIGABRT"),
        pytest.param(Wrong.SEGFAULT, "was ended by SIGSEGV", marks=pytest.mark.soak),
        (Wrong.LEAVE, "ended with status 0"),
        (Wrong.RAISE, "RuntimeError: a fault of the plug-in's"),
    ],
)
def test_a_file_that_crashes_the_engine_is_rejected_and_the_rest_is_played(
    sounds: Sounds, tmp_path: Path, wrong: Wrong, words: str
) -> None:
    good = [sounds(f"good{number}.wav", 2, [1.5]) for number in range(30)]
    bad = sounds("bad.wav", 2, [1.5], wrong=wrong)
    played = Played(evaluation_of(), listed([*good[:15], bad, *good[15:]]), tmp_path / "a.jsonl")
    assert (played.ran.done, played.ran.rejected, played.ran.errors) == (31, 1, 1)
    assert played.outcome(15).rejected is RejectReason.CRASH
    assert words in played.outcome(15).error
    assert all(len(one.spots) == 1 for one in played.outcomes if one.number != 15)
    assert JournalFile(tmp_path / "a.jsonl").complete


def test_a_file_that_crashes_the_engine_once_is_played(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 2, [1.5], wrong=Wrong.ABORT_ONCE), sounds("b.wav", 2, [1.5])])
    evaluation = evaluation_of(settings={"flag": str(tmp_path / "flag")})
    played = Played(evaluation, files, tmp_path / "a.jsonl", jobs=1)
    assert (tmp_path / "flag").exists()
    assert played.ran.rejected == 0
    assert len(played.outcome(0).spots) == 1


@pytest.mark.parametrize("wrong", [pytest.param(Wrong.HANG, marks=pytest.mark.soak), Wrong.HANG_DEAF])
def test_a_file_that_hangs_the_engine_is_rejected(sounds: Sounds, tmp_path: Path, wrong: Wrong) -> None:
    files = listed([*(sounds(f"{n}.wav", 1.5, [1.2]) for n in range(8)), sounds("bad.wav", 1.5, wrong=wrong)])
    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", limits=WorkerLimits(hang_after_s=0.7, nice=0))
    assert (played.ran.done, played.ran.rejected) == (9, 1)
    assert played.outcome(8).rejected is RejectReason.HANG
    assert "did not answer in time" in played.outcome(8).error


def test_an_error_of_the_engine_is_the_files_and_costs_no_worker(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 2, wrong=Wrong.REFUSE), sounds("b.wav", 2, [1.5], wrong=Wrong.CHATTER)])
    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", jobs=1)
    assert played.outcome(0).rejected is RejectReason.ERROR
    assert played.outcome(0).error == "the sound is too loud for this engine"
    assert len(played.outcome(1).spots) == 1


def test_a_device_that_is_gone_for_good_ends_the_run_and_what_was_played_stays(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 3, [1.5]), sounds("b.wav", 2, wrong=Wrong.GONE), sounds("c.wav", 1.5)])
    with pytest.raises(DeviceError, match="the board is gone") as gone:
        Played(evaluation_of(), files, tmp_path / "a.jsonl", jobs=1)
    assert gone.value.remedy == "Plug it in"
    left = JournalFile(tmp_path / "a.jsonl")
    assert left.ending is JournalMark.PARTIAL
    assert [one.outcome.number for one in left.outcomes()] == [0]


def test_what_an_engine_prints_reaches_neither_of_our_streams(
    sounds: Sounds, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    played = Played(evaluation_of(), listed([sounds("a.wav", 2, wrong=Wrong.CHATTER)]), tmp_path / "a.jsonl")
    assert played.ran.rejected == 0
    assert capfd.readouterr() == ("", "")


def test_what_a_worker_started_ends_with_it(sounds: Sounds, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    files = listed([sounds("a.wav", 2, wrong=Wrong.PARENT_OF_SLEEPER)])
    Played(evaluation_of(settings={"flag": str(flag)}), files, tmp_path / "a.jsonl")
    wait_for(lambda: not _runs(int(flag.read_text())))


def _runs(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_engine_that_does_not_load_ends_the_run_before_anything_is_written(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 2)])
    with pytest.raises(InputError, match="there is no model 'boom'") as refused:
        Played(evaluation_of(settings={"start": "refuse"}), files, tmp_path / "a.jsonl")
    assert refused.value.remedy == "It has: boom"
    with pytest.raises(EngineError, match="was ended by SIGABRT: no licence was found"):
        Played(evaluation_of(settings={"start": "abort"}), files, tmp_path / "a.jsonl")
    with pytest.raises(EngineError, match="ended with status 7"):
        Played(evaluation_of(settings={"start": "leave"}), files, tmp_path / "a.jsonl")
    with pytest.raises(EngineError, match="does not load"):
        Played(
            evaluation_of(settings={"start": "hang"}),
            files,
            tmp_path / "a.jsonl",
            limits=WorkerLimits(load_within_s=0.5),
        )
    assert not (tmp_path / "a.jsonl").exists()


def test_an_engine_that_crashes_on_everything_ends_the_run(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds(f"{number}.wav", 2, wrong=Wrong.ABORT) for number in range(12)])
    with pytest.raises(EngineError, match="ended on each of 8 files"):
        Played(evaluation_of(), files, tmp_path / "a.jsonl")
    left = JournalFile(tmp_path / "a.jsonl")
    assert left.ending is JournalMark.PARTIAL
    assert len(left) == 7


def test_a_worker_that_is_killed_from_outside_costs_nothing(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds(f"{number}.wav", 60, [1.5]) for number in range(40)])
    killed: list[int] = []

    def kill_all(*_: object) -> None:
        if not killed:  # at the first outcome: one of them may still be loading its engine
            killed.extend(workers_of(os.getpid()))
            for child in killed:
                os.kill(child, signal.SIGKILL)

    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", on_outcome=kill_all)
    assert (played.ran.done, played.ran.rejected) == (40, 0)
    lost = JournalFile(tmp_path / "a.jsonl").lost_workers
    assert len(lost) == len(killed) == 2
    assert all(one.startswith("a worker was ended by SIGKILL") for one in lost)


def test_a_stop_ends_in_order(sounds: Sounds, tmp_path: Path) -> None:
    stop = threading.Event()
    files = listed([sounds(f"{number}.wav", 5, [1.5]) for number in range(200)])
    played = Played(
        evaluation_of(), files, tmp_path / "a.jsonl", stop=stop, on_outcome=lambda outcome, file: stop.set()
    )
    journal = JournalFile(tmp_path / "a.jsonl")
    assert played.ran.partial
    assert journal.ending is JournalMark.PARTIAL
    assert 0 < len(journal) == played.ran.done < 200


def test_a_stop_does_not_wait_for_an_engine_that_hangs(sounds: Sounds, tmp_path: Path) -> None:
    stop = threading.Event()
    files = listed([sounds("a.wav", 1.5), sounds("b.wav", 3, wrong=Wrong.HANG)])
    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", stop=stop, on_outcome=lambda *_: stop.set())
    assert played.ran.partial
    assert played.ran.done == 1
