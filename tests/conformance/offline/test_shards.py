"""Parts of an evaluation: balanced, the same everywhere, and put together as if there had been one run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.model.offline import EngineFacts, EngineKind, ListedFile, ListKind
from harness.offline.journal import Journal, JournalFile
from harness.offline.journal_lines import JournalMark, Shard
from harness.offline.shards import files_of_shard
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.loudness import Wrong
from tests.conformance.offline.offline_runs import evaluation_of, harness, header_for, list_of, untimed
from tests.unit.offline.figures.outcomes import sized

TIMED_KEYS = (
    "start_time", "completion_time", "duration_s", "cpu_s", "peak_memory_mb", "real_time_factor", "command_line",
)  # fmt: skip


def told(*arguments: object, status: int = 0) -> str:
    """What the command line says, with this status."""
    result = harness(*arguments)
    output = result.output + (f"harness: {result.exception}" if result.exception else "")
    assert getattr(result.exception, "exit_code", result.exit_code) == status, output
    return output


def test_parts_have_each_file_once_and_about_as_many_hours(tmp_path: Path) -> None:
    files = sized(tmp_path, [1 + 97 * number % 400 for number in range(100)])
    parts, shards = zip(*(files_of_shard(files, Shard(number, 4)) for number in range(1, 5)), strict=True)
    assert sorted(file.number for part in parts for file in part) == list(range(100))
    assert all([file.number for file in part] == sorted(file.number for file in part) for part in parts)
    hours = [sum(Path(file.path).stat().st_size for file in part) for part in parts]
    assert max(hours) / min(hours) < 1.02
    assert len({shard.cut for shard in shards}) == 1
    assert parts[0][3:5] == [parts[0][3], parts[0][4]]
    _, other = files_of_shard(sized(tmp_path, [1] * 100), Shard(1, 4))
    assert other.cut != shards[0].cut


def test_files_whose_sizes_are_not_known_are_spread_evenly() -> None:
    files = [ListedFile(ListKind.OOV, n, f"s3://bucket/{n}.wav", f"s3://bucket/{n}.wav") for n in range(10)]
    assert [len(files_of_shard(files, Shard(number, 4))[0]) for number in range(1, 5)] == [3, 3, 2, 2]
    assert len(files_of_shard(files[:2], Shard(4, 4))[0]) == 0


@pytest.mark.usefixtures("loudness_plugin")
def test_parts_merge_to_the_bytes_of_one_run(sounds: Sounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inv = [sounds(f"in{number}.wav", 2 + number % 3, [1.5] * (number % 4)) for number in range(12)]
    inv += [sounds("refused.wav", 2, wrong=Wrong.REFUSE), sounds("rate.wav", 2, rate_hz=8000), tmp_path / "none.wav"]
    oov = [sounds(f"out{number}.wav", 10 + 10 * number, [2.0, 8.5]) for number in range(4)]
    for name, files in (("in.txt", inv), ("out.txt", oov)):
        list_of(Path(name), files)
    lists = ("evaluate", "-t", "loudness:boom", "-i", "in.txt", "--oov", "out.txt", "-u", "-l")
    told(*lists, "whole.log", status=3)
    for number in (1, 2, 3):
        part = harness(*lists, f"{number}.log", "--shard", f"{number}/3")
        assert part.exit_code in (0, 3), part.output
    told("merge", "3.log", "1.log", "2.log.jsonl", "-l", "all.log", status=3)
    assert untimed(Path("all.log")) == untimed(Path("whole.log"))
    summaries = [json.loads(Path(f"{name}.log.json").read_text()) for name in ("all", "whole")]
    for summary in summaries:
        for key in TIMED_KEYS:
            del summary[key]
    assert summaries[0] == summaries[1]
    assert JournalFile(tmp_path / "all.log.jsonl").complete
    assert "both shard 1/3" in told("merge", "1.log", "2.log", "1.log", "-l", "b.log", status=2)
    assert "missing: shard 2/3" in told("merge", "1.log", "3.log", "-l", "b.log", status=2)
    assert "it covers whole lists" in told("merge", "whole.log", "-l", "b.log", status=2)
    assert not Path("b.log").exists()
    told("merge", "1.log", "3.log", "-l", "b.log", "--partial", status=3)
    assert re.search(r"^INFO x-partial \d+ of 19 files$", Path("b.log").read_text(), re.MULTILINE)


@pytest.mark.usefixtures("loudness_plugin")
def test_parts_of_other_evaluations_and_partial_ones_are_refused(tmp_path: Path) -> None:
    files = sized(tmp_path, [1] * 4)
    facts = EngineFacts(EngineKind.WAKE, "1", 16000, ("boom",), "00" * 32)

    def part(name: str, settings: dict[str, str], mark: JournalMark) -> Path:
        shard = Shard(int(name[0]), 2, "cut")
        header = header_for(evaluation_of(settings=settings), files, facts, shard)
        Journal.create(tmp_path / f"{name}.log.jsonl", header).close(mark)
        return tmp_path / f"{name}.log"

    first, two = part("1", {}, JournalMark.COMPLETE), part("2", {}, JournalMark.COMPLETE)
    other = part("2-other", {"threshold": "0.5"}, JournalMark.COMPLETE)
    output = told("merge", first, other, "-l", tmp_path / "all.log", status=2)
    assert "settings are none in 1.log.jsonl, threshold=0.5 in 2-other.log.jsonl" in output
    assert "is partial: 0 of 4 files" in told("merge", first, two, "-l", tmp_path / "all.log", status=2)
