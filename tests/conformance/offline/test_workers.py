"""Supervised workers, runs that are killed and go on, and files heard as one sound."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.base.processor import host_facts
from harness.model.errors import DeviceError, EngineError, InputError
from harness.model.offline import FileOutcome, ListedFile, ListKind, RejectReason
from harness.offline.continuous import ContinuousListening
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import JournalMark
from harness.offline.one_file import FilePlayer
from harness.offline.pool import WorkerLimits
from harness.offline.wake_log import differences
from harness.offline.wake_log_reading import read
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.loudness import RATE_HZ, Loudness, LoudnessScores, LoudnessSpots, LoudnessWords, Wrong
from tests.conformance.offline.offline_runs import (
    COMMAND,
    Played,
    comparable,
    evaluation_of,
    list_of,
    listed,
    refused,
    untimed,
    workers_of,
)
from tests.seen import gone, until

pytestmark = pytest.mark.usefixtures("loudness_plugin")


def test_two_workers_find_what_one_finds(sounds: Sounds, tmp_path: Path) -> None:
    files = listed(
        [sounds(f"in{number}.wav", 2 + number % 3, [1.5]) for number in range(20)],
        [sounds("out.wav", 60, [10, 30]), sounds("quiet.wav", 20)],
    )
    for jobs in (1, 2):
        played = Played(evaluation_of(), files, tmp_path / f"{jobs}.jsonl", jobs=jobs)
        assert (played.ran.partial, played.ran.done, played.ran.rejected, played.ran.errors) == (False, 22, 0, 0)
    first, two = (JournalFile(tmp_path / f"{jobs}.jsonl") for jobs in (1, 2))
    assert first.complete
    assert two.complete
    assert [comparable(entry) for entry in first.outcomes()] == [comparable(entry) for entry in two.outcomes()]
    assert [len(entry.outcome.spots) for entry in first.outcomes()] == [1] * 20 + [2, 0]
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    assert first.used.host == two.used.host == tuple((dict(host_facts()) | {"threads": threads}).items())
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
    assert all(len(outcome.spots) == 1 for outcome in played.outcomes if outcome.number != 15)
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


def test_engine_error_rejects_the_file_but_keeps_the_worker(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 2, wrong=Wrong.REFUSE), sounds("b.wav", 2, [1.5], wrong=Wrong.CHATTER)])
    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", jobs=1)
    assert played.outcome(0).rejected is RejectReason.ERROR
    assert played.outcome(0).error == "the sound is too loud for this engine"
    assert len(played.outcome(1).spots) == 1


def test_permanently_lost_device_ends_the_run_and_keeps_results(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 3, [1.5]), sounds("b.wav", 2, wrong=Wrong.GONE), sounds("c.wav", 1.5)])
    with pytest.raises(DeviceError, match="the board is gone") as gone:
        Played(evaluation_of(), files, tmp_path / "a.jsonl", jobs=1)
    assert gone.value.what.startswith("loudness:boom at ")
    assert "b.wav: the board is gone" in gone.value.what
    assert gone.value.remedy == "Plug it in"
    left = JournalFile(tmp_path / "a.jsonl")
    assert left.ending is JournalMark.PARTIAL
    assert [entry.outcome.number for entry in left.outcomes()] == [0]


def test_what_an_engine_prints_reaches_neither_of_our_streams(
    sounds: Sounds, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    played = Played(evaluation_of(), listed([sounds("a.wav", 2, wrong=Wrong.CHATTER)]), tmp_path / "a.jsonl")
    assert played.ran.rejected == 0
    assert capfd.readouterr() == ("", "")


def test_child_processes_of_a_worker_end_with_the_worker(sounds: Sounds, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    files = listed([sounds("a.wav", 2, wrong=Wrong.PARENT_OF_SLEEPER)])
    Played(evaluation_of(settings={"flag": str(flag)}), files, tmp_path / "a.jsonl")
    until(lambda: gone(int(flag.read_text())))


def test_an_engine_that_does_not_load_ends_the_run_before_anything_is_written(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds("a.wav", 2)])
    with pytest.raises(InputError, match="there is no model 'boom'") as refused:
        Played(evaluation_of(settings={"start": "refuse"}), files, tmp_path / "a.jsonl")
    assert refused.value.remedy == "It has: boom"
    with pytest.raises(EngineError, match="was ended by SIGABRT: no licence was found"):
        Played(evaluation_of(settings={"start": "abort"}), files, tmp_path / "a.jsonl")
    with pytest.raises(EngineError, match="ended with status 7"):
        Played(evaluation_of(settings={"start": "leave"}), files, tmp_path / "a.jsonl")
    with pytest.raises(EngineError, match="cannot be loaded"):
        Played(
            evaluation_of(settings={"start": "hang"}),
            files,
            tmp_path / "a.jsonl",
            limits=WorkerLimits(load_within_s=0.5),
        )
    assert not (tmp_path / "a.jsonl").exists()


def test_an_engine_that_crashes_on_everything_ends_the_run(sounds: Sounds, tmp_path: Path) -> None:
    files = listed([sounds(f"{number}.wav", 2, wrong=Wrong.ABORT) for number in range(12)])
    with pytest.raises(EngineError, match=r"loudness:boom ended on each of 8 files.* at \S+\.wav"):
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
            until(lambda: not workers_of(os.getpid()))  # otherwise another may play all files before one has ended

    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", on_outcome=kill_all)
    assert (played.ran.done, played.ran.rejected) == (40, 0)
    lost = JournalFile(tmp_path / "a.jsonl").lost_workers
    assert len(lost) == len(killed) == 2
    assert all(message.startswith("a worker was ended by SIGKILL") for message in lost)


def test_a_stop_does_not_wait_for_an_engine_that_hangs(sounds: Sounds, tmp_path: Path) -> None:
    stop = threading.Event()
    files = listed([sounds("a.wav", 1.5), sounds("b.wav", 3, wrong=Wrong.HANG)])
    played = Played(evaluation_of(), files, tmp_path / "a.jsonl", stop=stop, on_outcome=lambda *_: stop.set())
    assert played.ran.partial
    assert played.ran.done == 1


def begun(*arguments: object, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(*arguments: object, folder: Path, status: int = 0) -> str:
    child = begun(*arguments, folder=folder)
    out, err = child.communicate(timeout=300)
    assert child.returncode == status, out + err
    return out + err


def test_killed_and_resumed_run_equals_an_uninterrupted_one(sounds: Sounds, tmp_path: Path) -> None:
    """With a file that hangs the engine while `flag` is not there, so that a run is caught in its middle."""
    flag = tmp_path / "flag"
    inv = [sounds(f"in{number:03}.wav", 2 + number % 3, [1.5] if number % 5 else []) for number in range(40)]
    inv[20] = sounds("hang.wav", 1.5, [1.2], wrong=Wrong.HANG_ONCE)
    inv[21] = sounds("short.wav", 0.5)
    oov = [sounds(f"out{number}.wav", 40 + 10 * number, [12.0, 20.5]) for number in range(4)]
    for name, files in (("in.txt", inv), ("out.txt", oov)):
        list_of(tmp_path / name, files)
    arguments = ("evaluate", "-t", "loudness:boom", "-i", "in.txt", "--oov", "out.txt", "-j", "2", "-u")
    arguments += ("-s", f"flag={flag}", "-l")
    flag.touch()
    ended(*arguments, "whole.log", folder=tmp_path)

    flag.unlink()
    journal = tmp_path / "a.log.jsonl"
    child = begun(*arguments, "a.log", folder=tmp_path)
    until(lambda: flag.exists() and _outcomes(journal) > 0, 60)
    workers = workers_of(child.pid)
    child.kill()
    child.communicate()
    assert len(workers) == 2
    until(lambda: not any(Path(f"/proc/{worker}/exe").exists() for worker in workers), 60)
    # Torn in the middle of a line, as a power cut leaves it.
    with journal.open("ab") as file:
        file.write(b'{"k":"inv","n":20,"file":"/a')
    done = len(JournalFile(journal))
    assert 0 < done < 44

    flag.unlink()
    child = begun(*arguments, "a.log", "--resume", folder=tmp_path)
    until(flag.exists, 60)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=300)
    assert child.returncode == 130
    assert "the log is partial. Continue with the same command and --resume" in err
    interrupted = JournalFile(journal)
    assert interrupted.ending is JournalMark.PARTIAL
    assert done <= len(interrupted) < 44
    partial = (tmp_path / "a.log").read_text()
    assert f"INFO x-partial {len(interrupted)} of 44 files" in partial
    assert differences(read(partial)) == ()
    assert json.loads((tmp_path / "a.log.json").read_text())["partial"]
    assert ended("report", "a.log", folder=tmp_path).startswith("Partial: ")
    assert "It is incomplete: use --resume to continue" in ended(*arguments, "a.log", folder=tmp_path, status=2)

    ended(*arguments, "a.log", "--resume", folder=tmp_path)
    assert untimed(tmp_path / "a.log") == untimed(tmp_path / "whole.log")
    assert JournalFile(journal).complete
    assert _outcomes(journal) == 44
    journals = [JournalFile(tmp_path / f"{name}.log.jsonl").outcomes() for name in ("a", "whole")]
    assert [comparable(entry) for entry in journals[0]] == [comparable(entry) for entry in journals[1]]


def _outcomes(journal: Path) -> int:
    return journal.read_bytes().count(b'\n{"k":') if journal.exists() else 0


def test_a_second_ctrl_c_does_not_wait(sounds: Sounds, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{sounds('a.wav', 2)}\n{sounds('b.wav', 3, wrong=Wrong.HANG_DEAF)}\n")
    child = begun("evaluate", "-t", "loudness:boom", "-i", "in.txt", "-l", "a.log", folder=tmp_path)
    journal = tmp_path / "a.log.jsonl"
    until(lambda: journal.exists() and bool(workers_of(child.pid)))
    workers = workers_of(child.pid)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=300)
    assert child.returncode == 130
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def test_an_engine_that_carries_state_plays_all_files_in_list_order(sounds: Sounds, tmp_path: Path) -> None:
    inv = [sounds(f"{'i' * (number + 1)}.wav", 1.0 + number % 3, [0.5]) for number in range(9)]
    oov = [sounds(f"{'o' * (number + 1)}.wav", 3.0 - number % 3, [0.5]) for number in range(9)]
    program = Path(__file__).parents[2] / "data" / "engines" / "loud_engine.py"
    evaluation = evaluation_of(f"process:{sys.executable} {program} --carries-state", hashes=True, cache=str(tmp_path))
    files = listed(inv, oov)
    Played(evaluation, files, tmp_path / "a.jsonl", jobs=2)
    scores = [spot.score for entry in JournalFile(tmp_path / "a.jsonl").outcomes() for spot in entry.outcome.spots]
    assert scores == [number / 100 for number in range(1, len(files) + 1)]
    assert not list(tmp_path.rglob("*.scores"))
    for options in (("--shard", "1/2"), ("--continuous",)):
        lists = "-i", list_of(tmp_path / "i.txt", inv), "--oov", list_of(tmp_path / "o.txt", oov)
        assert "carries its state" in refused(
            "evaluate", "-t", evaluation.task.name, *lists, "-l", tmp_path / "l", *options
        )


def test_continuous_resume_replays_earlier_files_to_restore_engine_state(sounds: Sounds, tmp_path: Path) -> None:
    """The engine's state cannot be kept, so that what was played is played again, and its outcomes stay."""
    files = listed(oov=[sounds(f"{number}.wav", 3, [1.0]) for number in range(60)])
    evaluation = evaluation_of("loudness_spots", continuous=True)
    stop = threading.Event()
    first = Played(evaluation, files, tmp_path / "a.jsonl", stop=stop, on_outcome=lambda *_: stop.set())
    assert first.ran.partial
    assert 0 < first.ran.done < 60
    second = Played(evaluation, files, tmp_path / "a.jsonl", resume=True)
    assert first.ran.done + second.ran.done == 60
    at_once = Played(evaluation, files, tmp_path / "b.jsonl")
    assert at_once.ran.done == 60
    journals = [
        [comparable(entry) for entry in JournalFile(tmp_path / name).outcomes()] for name in ("a.jsonl", "b.jsonl")
    ]
    assert journals[0] == journals[1]
    assert {len(outcome.spots) for outcome in at_once.outcomes} == {1}


def heard(engine: Loudness, files: Sequence[ListedFile]) -> list[FileOutcome]:
    listening = ContinuousListening(engine, evaluation_of(continuous=True))
    outcomes = [outcome for file in files for outcome in listening.play_file(file)]
    return outcomes + listening.finish()


def places(outcome: FileOutcome) -> list[tuple[float, float]]:
    return [(spot.start / RATE_HZ, spot.end / RATE_HZ) for spot in outcome.spots]


def cut(path: Path, at_s: Sequence[float], folder: Path) -> list[Path]:
    """A file cut into several."""
    samples, _ = soundfile.read(path, dtype="int16")
    paths = []
    for number, part in enumerate(np.split(samples, [round(place_s * RATE_HZ) for place_s in at_s])):
        paths.append(folder / f"part{number}.wav")
        soundfile.write(paths[-1], part, RATE_HZ, subtype="PCM_16")
    return paths


@pytest.mark.parametrize("kind", [LoudnessScores, LoudnessSpots])
def test_continuous_spots_do_not_depend_on_where_files_are_cut(
    sounds: Sounds, tmp_path: Path, kind: type[Loudness]
) -> None:
    whole = sounds("whole.wav", 40, [3.0, 3.9, 9.95, 20.0, 20.7, 31.0, 39.9])
    engine = kind("boom", {})
    reference = FilePlayer(engine, evaluation_of()).play(listed(oov=[whole])[0])
    assert len(reference.spots) > 3
    for cuts in ([10.0], [3.1], [9.96, 10.1, 10.2], [0.01, 20.003, 20.5001], [30.0, 39.95]):
        outcomes = heard(engine, listed(oov=cut(whole, cuts, tmp_path)))
        assert [outcome.number for outcome in outcomes] == list(range(len(cuts) + 1))
        before = np.cumsum([0, *(outcome.samples for outcome in outcomes)])
        joined = [
            spot.end + int(begin) for outcome, begin in zip(outcomes, before, strict=False) for spot in outcome.spots
        ]
        assert joined == [spot.end for spot in reference.spots]
        assert all(0 <= spot.start <= spot.end <= outcome.samples for outcome in outcomes for spot in outcome.spots)


def test_spot_across_a_cut_belongs_to_the_later_file(sounds: Sounds, tmp_path: Path) -> None:
    parts = cut(sounds("whole.wav", 10, [5.0]), [4.9], tmp_path)
    outcomes = heard(LoudnessScores("boom", {}), listed(oov=parts))
    assert places(outcomes[0]) == []
    assert places(outcomes[1]) == [(0.0, pytest.approx(0.11))]


def test_the_refractory_time_goes_on_over_the_border(sounds: Sounds) -> None:
    files = listed(oov=[sounds("a.wav", 5, [4.5]), sounds("b.wav", 5, [0.2]), sounds("c.wav", 5, [2.0])])
    engine = LoudnessScores("boom", {})
    assert [len(outcome.spots) for outcome in heard(engine, files)] == [1, 0, 1]
    afresh = [FilePlayer(engine, evaluation_of()).play(file) for file in files]
    assert [len(outcome.spots) for outcome in afresh] == [1, 1, 1]


def test_continuous_mode_skips_unusable_files(sounds: Sounds, tmp_path: Path) -> None:
    paths = [
        sounds("a.wav", 5, [4.5]),
        tmp_path / "none.wav",
        sounds("r.wav", 5, rate_hz=8000),
        sounds("b.wav", 5, [0.2]),
    ]
    outcomes = heard(LoudnessScores("boom", {}), listed(oov=paths))
    assert [outcome.rejected for outcome in outcomes] == [None, RejectReason.UNREADABLE, RejectReason.RATE, None]
    assert [len(outcome.spots) for outcome in outcomes] == [1, 0, 0, 0]


def test_a_recogniser_has_no_state_to_carry_on() -> None:
    with pytest.raises(InputError, match="recognises one file at a time"):
        ContinuousListening(LoudnessWords("boom", {}), evaluation_of("loudness_words", continuous=True))


def test_crash_in_continuous_mode_restarts_without_the_crashing_file(sounds: Sounds, tmp_path: Path) -> None:
    oov = [sounds(f"{number}.wav", 10, [9.5 if number == 1 else 0.2]) for number in range(8)]
    oov[2] = sounds("bad.wav", 2, wrong=Wrong.ABORT)
    files = listed([sounds("in.wav", 2, [1.5])], oov)
    played = Played(evaluation_of(continuous=True), files, tmp_path / "a.jsonl")
    assert (played.ran.done, played.ran.rejected) == (9, 1)
    assert played.outcome(2, ListKind.OOV).rejected is RejectReason.CRASH
    # The file after it goes on where the one before it ended, within the refractory time.
    spots = [len(played.outcome(number, ListKind.OOV).spots) for number in range(8)]
    assert spots == [1, 1, 0, 0, 1, 1, 1, 1]
