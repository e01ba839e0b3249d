"""The journal: what was acknowledged is in it, whatever ends the run."""

from __future__ import annotations

import os
import random
import re
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError, LogFull, Place
from harness.model.offline import (
    CountingRules,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    LeadInRef,
    ListKind,
    OfflineSpot,
    OperatingPoint,
    RejectReason,
    Said,
    SpotRule,
    Task,
)
from harness.offline.journal import Journal, JournalFile, outcomes_in_order
from harness.offline.journal_lines import (
    JournalHeader,
    JournalMark,
    ListFacts,
    Shard,
    differences,
    has_check,
    outcome_line,
)
from harness.offline.shards import merged_lines

FACTS = EngineFacts(
    EngineKind.WAKE, "2.5", 16000, ("okay nabu",), "ab" * 32, "Apache-2.0", 1000.0, SpotRule(0.5, 16000, 12800), 10,
    (OperatingPoint(1, 0.9), OperatingPoint(2, 0.1)), (("refractory-ms", "1000"),),
)  # fmt: skip
HEADER = JournalHeader(
    Evaluation(Task("microwakeword", "okay_nabu", (("threshold", "0.5"),)), resample=True),
    CountingRules(True, False, False, 500.0, LeadInRef.START),
    FACTS,
    (ListFacts("in.txt", "cd" * 32, ListKind.INV, 3), ListFacts("out.txt", "ef" * 32, ListKind.OOV, 2)),
    5,
    1234.5,
    ("harness", "evaluate", "-t", "a b"),
    (("voice-harness", "0.1"),),
    Shard(2, 3, "00"),
    ("/audio",),
    (("x-y", "z"),),
)
OUTCOMES = [
    FileOutcome(ListKind.OOV, 1, 7, 48000, 16000, (OfflineSpot("okay nabu", 0, 5, 0.1 + 0.2),), cpu_s=0.25),
    FileOutcome(ListKind.INV, 2, rejected=RejectReason.CRASH, detail="why", error='it "ended"\n\x1b[31m\udcff'),
    FileOutcome(ListKind.INV, 0, 10, 16000, 16000, (OfflineSpot("ü", 1, 2), OfflineSpot("b", 3, 4, 1.0))),
    FileOutcome(ListKind.OOV, 0, 5, 8000, 16000, said=Said("a b", 1, 2, 0.5), reference="a c", sha256="00" * 32),
    FileOutcome(ListKind.INV, 1, 5, 8000, 16000),
]


class Time:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def written(path: Path, mark: JournalMark | None = JournalMark.COMPLETE, header: JournalHeader = HEADER) -> Path:
    journal = Journal.create(path, header)
    for outcome in OUTCOMES:
        journal.append(outcome, f"{outcome.kind}{outcome.number}\udce4.wav")
    if mark is None:
        journal.abandon()
    else:
        journal.close(mark)
    return path


def test_what_was_written_reads_back_in_list_order(tmp_path: Path) -> None:
    journal_file = JournalFile(written(tmp_path / "a.jsonl"))
    assert journal_file.header == HEADER
    assert journal_file.complete
    expected = [OUTCOMES[place] for place in (2, 4, 1, 3, 0)]
    assert [entry.outcome for entry in journal_file.outcomes()] == expected
    assert next(entry.listed for entry in journal_file.outcomes()) == "inv0\udce4.wav"
    assert [entry.outcome for entry in outcomes_in_order([journal_file])] == expected
    assert (tmp_path / "a.jsonl").read_bytes().isascii()


def test_outcomes_of_several_journals_are_merged_in_order_without_duplicates(tmp_path: Path) -> None:
    rng = random.Random(1)
    numbers = list(range(200))
    rng.shuffle(numbers)
    for part in range(3):
        journal = Journal.create(tmp_path / f"{part}.jsonl", HEADER)
        for number in numbers[part::3] + numbers[:5]:
            journal.append(FileOutcome(ListKind.INV, number, samples=1 + number, rate_hz=16000), str(number))
        journal.close(JournalMark.COMPLETE)
    outcomes = [
        entry.outcome for entry in outcomes_in_order([JournalFile(tmp_path / f"{part}.jsonl") for part in range(3)])
    ]
    assert [outcome.number for outcome in outcomes] == list(range(200))


@pytest.mark.parametrize("left", [1, 20, 60])
def test_a_torn_last_line_is_ignored_and_truncated(tmp_path: Path, left: int) -> None:
    path = written(tmp_path / "a.jsonl", None)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:left])
    journal_file = JournalFile(path)
    assert (len(journal_file), journal_file.torn, journal_file.ending) == (4, True, None)
    journal = Journal.reopen(path, HEADER)
    assert journal.earlier is not None
    assert len(journal.earlier) == 4
    journal.append(OUTCOMES[-1], "again")
    journal.close(JournalMark.COMPLETE)
    assert JournalFile(path).complete


def unchecked(path: Path) -> list[bytes]:
    """The lines of a journal as versions before ours wrote them, without CRCs."""
    lines = path.read_bytes().splitlines(keepends=True)
    assert all(has_check(line) for line in lines)
    return [re.sub(rb',"crc":"[0-9a-f]{8}"}\n', b"}\n", line) for line in lines]


def test_a_journal_without_crcs_is_read_and_continued(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", None)
    path.write_bytes(b"".join(unchecked(path)[:-1]))
    journal = Journal.reopen(path, HEADER)
    journal.append(OUTCOMES[-1], "again")
    journal.close(JournalMark.COMPLETE)
    journal_file = JournalFile(path)
    assert journal_file.complete
    assert [entry.outcome for entry in journal_file.outcomes()] == [OUTCOMES[place] for place in (2, 4, 1, 3, 0)]
    assert has_check(path.read_bytes().splitlines(keepends=True)[-1])


def test_a_flipped_bit_is_reported_with_its_line(tmp_path: Path) -> None:
    """In the header it is no journal any more; at a line's end it joins two lines, or tears the last."""
    path = written(tmp_path / "a.jsonl")
    content = path.read_bytes()
    rng = random.Random(4)
    number, offset = 1, 0
    for line in content.splitlines(keepends=True):
        inner = len(line) - 19 if number == 1 else len(line)  # a header that lost its CRC alone is one of before
        for place in [*rng.sample(range(inner), 12), len(line) - 2, len(line) - 1]:
            damaged = bytearray(content)
            damaged[offset + place] ^= 1 << rng.randrange(7)
            path.write_bytes(damaged)
            if offset + place == len(content) - 1:
                journal_file = JournalFile(path)
                assert journal_file.torn
                assert not journal_file.complete
                continue
            with pytest.raises(InputError) as refused:
                JournalFile(path)
            assert (
                "is not an evaluation journal" in str(refused.value)
                if number == 1
                else refused.value.place == Place(str(path), number)
            )
        number, offset = number + 1, offset + len(line)


def test_removing_a_damaged_line_loses_only_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    journal_file = JournalFile(path)
    assert (len(journal_file), journal_file.complete) == (4, False)


@pytest.mark.parametrize("content", [b"", b"\n", b"INFO start-time\n", b'{"journal":2}\n', b'{"journal":1}\n', b"[]\n"])
def test_invalid_journal_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="is not an evaluation journal"):
        JournalFile(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        JournalFile(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(HEADER, evaluation=replace(HEADER.evaluation, resample=False)), "resample is on then, off now"),
        (replace(HEADER, evaluation=Evaluation(Task("a", "b"), True)), "the task is microwakeword:okay_nabu then"),
        (replace(HEADER, counting=CountingRules()), "count in vocabulary is on then, off now"),
        (replace(HEADER, facts=replace(FACTS, fingerprint="00")), "fingerprint is abababababab then, 00 now"),
        (replace(HEADER, facts=replace(FACTS, rule=None)), "other facts"),
        (replace(HEADER, lists=HEADER.lists[:1]), "lists have sha256 cdcdcdcdcdcd, efefefefefef then, cdcd"),
        (replace(HEADER, versions=(("voice-harness", "0.2"),)), "voice-harness=0.1 then, voice-harness=0.2 now"),
        (replace(HEADER, shard=Shard(1, 3, "00")), "the shard is 2/3 then, 1/3 now"),
        (replace(HEADER, shard=Shard(2, 3, "01")), "file sizes differed"),
    ],
)
def test_a_journal_of_another_evaluation_is_not_continued(tmp_path: Path, other: JournalHeader, words: str) -> None:
    path = written(tmp_path / "a.jsonl", JournalMark.PARTIAL)
    before = path.read_bytes()
    with pytest.raises(InputError) as refused:
        Journal.reopen(path, other)
    assert words in str(refused.value)
    assert path.read_bytes() == before


def test_another_cache_time_or_command_line_is_the_same_evaluation() -> None:
    evaluation = replace(HEADER.evaluation, cache="/elsewhere")
    assert not differences(HEADER, replace(HEADER, evaluation=evaluation, started_s=5.0, command_line=("b",)))


def test_durations_of_resumed_runs_add_up(tmp_path: Path) -> None:
    time = Time()
    journal = Journal.create(tmp_path / "a.jsonl", HEADER, time)
    time.now += 5
    journal.append(OUTCOMES[0], "a")
    time.now += 7
    journal.append(OUTCOMES[1], "a")  # so far: 12 s
    time.now += 1
    journal.abandon()
    journal = Journal.reopen(tmp_path / "a.jsonl", HEADER, time)
    time.now += 3
    journal.close(JournalMark.PARTIAL)
    journal_file = JournalFile(tmp_path / "a.jsonl")
    assert journal_file.duration_s == 15
    assert journal_file.ending is JournalMark.PARTIAL
    assert [mark.mark for mark in journal_file.marks] == [
        JournalMark.BEGUN,
        JournalMark.SO_FAR,
        JournalMark.BEGUN,
        JournalMark.PARTIAL,
    ]


def test_an_error_in_the_run_leaves_a_partial_journal(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Journal.create(tmp_path / "a.jsonl", HEADER):
        raise ZeroDivisionError("nought")
    journal_file = JournalFile(tmp_path / "a.jsonl")
    assert (journal_file.ending, journal_file.marks[-1].why) == (JournalMark.PARTIAL, "nought")


def test_a_journal_that_the_disk_has_no_room_for_keeps_what_it_has(tmp_path: Path) -> None:
    """With a limit on the size of files, which refuses writing in the same place as a full disk does."""
    path = tmp_path / "a.jsonl"
    child = os.fork()
    if not child:
        status = 1
        try:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            journal = Journal.create(path, HEADER)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
            acknowledged = 0
            try:
                while True:
                    journal.append(replace(OUTCOMES[4], number=acknowledged), "a" * 100)
                    acknowledged += 1
            except OSError:
                status = 2
            except Exception as error:  # noqa: BLE001 – the parent is told
                journal_file = JournalFile(path)
                message = str(error)
                status = (
                    0
                    if len(journal_file) == acknowledged > 5 and not journal_file.torn and "--resume" in message
                    else 3
                )
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported_with_a_remedy() -> None:
    with pytest.raises(LogFull, match="Free some space, then continue with --resume"):
        Journal.create(Path("/dev/full"), HEADER)


def test_a_million_outcomes_are_read_in_order_in_bounded_memory(tmp_path: Path) -> None:
    """Of a twentieth of them here; benchmarks/bench_offline.py has the million."""
    count = 50_000
    path = tmp_path / "a.jsonl"
    journal = Journal.create(path, HEADER)
    numbers = list(range(count))
    random.Random(2).shuffle(numbers)
    journal.append_lines(
        b"".join(outcome_line(FileOutcome(ListKind.INV, number, 16000, 16000), "a") for number in numbers)
    )
    journal.close(JournalMark.COMPLETE)
    journal_file = JournalFile(path)
    assert journal_file.keys.nbytes + journal_file.offsets.nbytes + journal_file.lengths.nbytes == 20 * count
    assert all(entry.outcome.number == place for place, entry in enumerate(journal_file.outcomes()))


@pytest.mark.parametrize("make", [Journal.create, Journal.reopen])
def test_two_runs_do_not_write_the_same_journal(tmp_path: Path, make: Callable[[Path, JournalHeader], Journal]) -> None:
    path = written(tmp_path / "a.jsonl", None)
    with Journal.reopen(path, HEADER):
        before = path.read_bytes()
        with pytest.raises(InputError, match="being written by another run"):
            make(path, HEADER)
        assert path.read_bytes() == before
    make(path, HEADER).abandon()


def test_a_shorter_journal_replaces_a_longer_one_completely(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl")
    Journal.create(path, HEADER).close(JournalMark.PARTIAL)
    journal_file = JournalFile(path)
    assert (len(journal_file), journal_file.ending, journal_file.torn) == (0, JournalMark.PARTIAL, False)


@pytest.mark.parametrize(
    "line",
    [
        b"{]\n",
        b'{"k":"inv","n":7,"file":"\xff"}\n',
        b'{"k":"inv","n":7,"file":"a","spots":[["x"]]}\n',
        b'{"k":"inv","n":99999999999999999999,"file":"a"}\n',
        b'{"k":"nav","n":7,"file":"a"}\n',
    ],
)
def test_damage_in_the_middle_is_reported_with_its_line(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path / "a.jsonl")
    lines = unchecked(path)
    path.write_bytes(b"".join([*lines[:4], line, *lines[4:]]))
    with pytest.raises(InputError, match="a damaged line") as refused:
        list(JournalFile(path).outcomes())
    assert str(refused.value.place) == f"{path}:5"


def test_journal_knows_audio_played_after_the_last_time_mark(tmp_path: Path) -> None:
    time, path = Time(), tmp_path / "a.jsonl"
    journal = Journal.create(path, HEADER, time)
    journal.append(FileOutcome(ListKind.INV, 0, 16_000 * 50, 16_000), "a")
    time.now += 11
    journal.append(FileOutcome(ListKind.INV, 1, 16_000 * 60, 16_000), "b")  # and marks 11 s
    time.now += 5
    journal.append(FileOutcome(ListKind.INV, 2, 16_000 * 30, 16_000), "c")
    journal.abandon()
    journal_file = JournalFile(path)
    assert (journal_file.duration_s, journal_file.untimed_s) == (11.0, 30.0)
    journal = Journal.reopen(path, HEADER, time)
    journal.append(FileOutcome(ListKind.OOV, 0, 16_000 * 7, 16_000), "d")
    time.now += 1
    journal.close(JournalMark.PARTIAL)
    journal_file = JournalFile(path)
    assert (journal_file.duration_s, journal_file.untimed_s) == (12.0, 30.0)


def test_lost_workers_are_reported_without_ending_the_sitting(tmp_path: Path) -> None:
    time, path = Time(), tmp_path / "a.jsonl"
    journal = Journal.create(path, HEADER, time)
    time.now += 2
    journal.append(OUTCOMES[0], "a")
    journal.note_lost_worker("a worker was ended by SIGKILL at a.wav")
    time.now += 3
    journal.close(JournalMark.PARTIAL)
    journal_file = JournalFile(path)
    assert journal_file.lost_workers == ("a worker was ended by SIGKILL at a.wav",)
    assert (journal_file.ending, journal_file.duration_s, journal_file.untimed_s) == (JournalMark.PARTIAL, 5.0, 0.0)


def test_killed_parts_are_assumed_to_have_run_at_the_same_speed(tmp_path: Path) -> None:
    time, parts = Time(), []
    for number, timed in ((0, True), (1, False)):
        journal = Journal.create(tmp_path / f"{number}.jsonl", replace(HEADER, shard=Shard(number + 1, 3, "00")), time)
        if timed:
            time.now += 11
        journal.append(FileOutcome(ListKind.INV, number, 16_000 * 60, 16_000), "a")
        if timed:
            journal.note_lost_worker(f"worker {number}")
        journal.abandon()
        parts.append(JournalFile(tmp_path / f"{number}.jsonl"))
    merged = tmp_path / "all.jsonl"
    merged.write_bytes(b"".join(merged_lines(parts, replace(HEADER, shard=None))))
    journal_file = JournalFile(merged)
    assert (len(journal_file), journal_file.duration_s, journal_file.untimed_s) == (2, 22.0, 0.0)
    assert journal_file.lost_workers == ("worker 0",)
