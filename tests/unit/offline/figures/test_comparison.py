"""Two evaluations against each other: pairing, rates, clusters, warnings."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from harness.base.told_later import ToldLater
from harness.model.errors import InputError
from harness.offline.figures.comparison import (
    AmbientFile,
    AmbientFiles,
    Clusters,
    Evaluated,
    OnSameFiles,
    SpokenFile,
    SpokenFiles,
    compare,
    in_both,
    keys,
    others,
    renumbered,
)
from harness.offline.reports.comparison import as_json, differing_csv, lines, read_evaluated
from harness.statistics.significance import mcnemar, paired_difference, poisson_rates


def ambient(names: list[str], clusters: Clusters | None = None) -> AmbientFiles:
    found = AmbientFiles(clusters)
    for at, name in enumerate(names):
        found.add(name, AmbientFile(at, 1.0))
    return found


def test_the_nth_of_a_name_is_paired_with_the_nth() -> None:
    drawn = random.Random(5)
    for size in (0, 1, 2, 40):
        first, second = ([f"{drawn.randrange(30)}.wav" for _ in range(size)] for _ in range(2))
        one, other = keys(ambient(first)), keys(ambient(second))
        left, right = (
            {(name, names[:row].count(name)): row for row, name in enumerate(names)} for names in (first, second)
        )
        rows = in_both(one, other)
        assert [*zip(*rows, strict=True)] == [(row, right[key]) for key, row in left.items() if key in right]
        assert others(one, rows[0]).tolist() == [row for key, row in left.items() if key not in right]
        assert one.repeated == size - len(set(first))
        assert in_both(one, keys(ambient(first)))[1].tolist() == [*range(size)]


def test_clusters_are_numbered_as_they_come() -> None:
    files = ambient(["b/1", "a/1", "b/2", "c/1", "a/2"], Clusters("folder"))
    every = files.clusters(np.arange(5))
    assert every is not None
    assert every.tolist() == [0, 1, 0, 2, 1]
    assert renumbered(every[1:]).tolist() == [0, 1, 2, 0]
    assert ambient(["a"]).clusters(np.arange(1)) is None


def test_what_is_told_later_is_a_sequence() -> None:
    told = ToldLater(4, lambda at: at * at)
    assert (len(told), told[-1], list(told[1:3]), list(told)) == (4, 9, [1, 4], [0, 1, 4, 9])
    with pytest.raises(IndexError):
        told[4]


def test_another_file_in_its_place_is_noticed() -> None:
    there = [("a.wav", SpokenFile(True))]
    files = SpokenFiles(there.__getitem__)
    files.add(*there[0], 0)
    assert files.told(0) == ("a.wav", SpokenFile(True))
    there[0] = ("b.wav", SpokenFile(True))
    with pytest.raises(InputError, match="has changed"):
        files.told(0)


FAIR = {"the lead-in, ms,": "1000", "-u": "no"}


def spoken_files(files: Iterable[tuple[str, SpokenFile]], clusters: Clusters | None = None) -> SpokenFiles:
    told = list(files)
    found = SpokenFiles(told.__getitem__, clusters)
    for place, (name, file) in enumerate(told):
        found.add(name, file, place)
    return found


def evaluated(
    name: str,
    right: str,
    ambient: dict[str, AmbientFile] | None = None,
    clusters: Clusters | None = None,
    **more: object,
) -> Evaluated:
    """right: a sign a file, + for a true accept."""
    spoken = spoken_files(
        ((f"talker{n // 5}/{n}.wav", SpokenFile(sign == "+")) for n, sign in enumerate(right)), clusters
    )
    audio, heard = AmbientFiles(clusters), ambient or {}
    for file, one in heard.items():
        audio.add(file, one)
    count, hours = sum(one.false_accepts for one in heard.values()), sum(one.hours for one in heard.values())
    told = {"settings": FAIR, **more}
    return Evaluated(name, spoken, audio, count, hours, **told)  # type: ignore[arg-type]


def test_the_same_files_are_paired() -> None:
    found = compare(evaluated("a", "++++++++++----------"), evaluated("b", "+++++++++-+---------"))
    same = found.same_files
    assert same is not None
    both = same.discordance
    assert (both.both, both.only_first, both.only_second, both.neither) == (9, 1, 1, 9)
    assert both.p == mcnemar(1, 1)
    interval = paired_difference(both)
    assert interval is not None
    assert same.difference is not None
    assert same.difference.interval == pytest.approx((-interval.high, -interval.low))
    assert same.difference.p == both.p
    assert [one.file for one in same.differing] == ["talker1/9.wav", "talker2/10.wav"]
    assert (same.first_errors, same.second_errors) == (10, 10)
    assert not found.warnings
    assert found.false_accepts is None
    assert len([*differing_csv(found)]) == 3
    json.dumps(as_json(found))


def test_files_of_one_alone_are_told_and_left_out() -> None:
    found = compare(evaluated("a", "+++-"), evaluated("b", "++"))
    assert found.same_files is not None
    assert found.same_files.discordance.total == 2
    assert "2 in-vocabulary files are only in the first" in found.warnings[0]
    assert "talker0/3.wav,listed,not listed,,\n" in [*differing_csv(found)]


def test_a_name_that_comes_again_is_told() -> None:
    twice = [("a.wav", SpokenFile(False)), ("b.wav", SpokenFile(True)), ("a.wav", SpokenFile(True))]
    first = Evaluated("a", spoken_files(twice), None, 0, 0.0, FAIR)
    found = compare(first, Evaluated("b", spoken_files(twice[:2]), None, 0, 0.0, FAIR))
    assert found.warnings[0] == "a: 1 file has the name of another one: files of one name are paired in their order"
    assert found.same_files is not None
    assert (found.same_files.discordance.both, found.same_files.discordance.neither) == (1, 1)
    assert [*found.same_files.only_first] == ["a.wav"]


def test_clusters_widen_what_talkers_decide() -> None:
    def compared(by: Clusters | None) -> OnSameFiles | None:
        other = "+" * 20 + "-" * 10 + "+" * 10
        return compare(evaluated("a", "+" * 40, clusters=by), evaluated("b", other, clusters=by)).same_files

    alone, clustered = compared(None), compared(Clusters("folder"))
    assert alone is not None
    assert clustered is not None
    assert clustered.clusters == 8
    assert alone.difference is not None
    assert clustered.difference is not None
    assert clustered.difference.p > 10 * alone.difference.p
    assert clustered.second is not None
    assert alone.second is not None
    assert clustered.second[1] > alone.second[1]
    assert clustered.difference.interval[1] <= 1
    by_talker = compared(Clusters(r"talker(\d)"))
    assert by_talker is not None
    assert (by_talker.clusters, by_talker.difference) == (8, clustered.difference)
    with pytest.raises(InputError, match="regular expression"):
        Clusters("(")


def test_two_rates_on_different_and_on_the_same_audio() -> None:
    quiet = {f"{n}.wav": AmbientFile(0, 1.0) for n in range(10)}
    busy = {f"{n}.wav": AmbientFile(3, 1.0) for n in range(10)}
    other = {f"x{n}.wav": AmbientFile(3, 1.0) for n in range(10)}
    same = compare(evaluated("a", "", quiet), evaluated("b", "", busy))
    assert same.same_files is None
    assert same.false_accepts is not None
    assert same.false_accepts.p == poisson_rates(0, 10.0, 30, 10.0)
    assert same.false_accepts.same_audio
    assert same.false_accepts.difference is not None
    assert same.false_accepts.difference.difference == pytest.approx(-3)
    apart = compare(evaluated("a", "", quiet), evaluated("b", "", other))
    assert apart.false_accepts is not None
    assert apart.false_accepts.difference is None
    assert any("different audio" in warning for warning in apart.warnings)
    never = compare(evaluated("a", "", quiet), evaluated("b", "", quiet)).false_accepts
    assert never is not None
    assert never.p == 1.0
    assert never.difference is None


def test_four_false_accepts_against_none_are_not_called_significant() -> None:
    files = range(20)
    some = {f"{n}.wav": AmbientFile(int(n < 4), 0.05) for n in files}
    none = {f"{n}.wav": AmbientFile(0, 0.05) for n in files}
    found = compare(evaluated("a", "", some), evaluated("b", "", none))
    assert found.false_accepts is not None
    difference = found.false_accepts.difference
    assert difference is not None
    assert difference.p == 0.125
    assert difference.interval[0] < 0 < difference.interval[1]
    assert any(line.endswith(", exact p = 0.125") for line in lines(found))
    assert as_json(found)["false_accepts"]["difference_per_hour"]["exact"]


def test_word_errors_on_the_same_files() -> None:
    first = {f"{n}": SpokenFile(n > 3, 0 if n > 3 else 2, 10) for n in range(20)}
    second = {f"{n}": SpokenFile(n > 9, 0 if n > 9 else 1, 10 if n else 11) for n in range(20)}
    found = compare(
        Evaluated("a", spoken_files(first.items()), AmbientFiles(), 0, 0.0, FAIR, has_words=True),
        Evaluated("b", spoken_files(second.items()), AmbientFiles(), 0, 0.0, FAIR, has_words=True),
    )
    assert found.same_files is not None
    assert found.same_files.word_errors == (6, 9, 190)
    assert found.same_files.other_references == 1
    assert found.same_files.words is not None
    assert found.same_files.words.difference == pytest.approx(-3 / 190)
    assert any("left out of the WER" in warning for warning in found.warnings)
    assert any("WER" in line for line in lines(found))


def test_what_makes_it_unfair_is_told_first() -> None:
    first = evaluated("a", "++", settings={"the lead-in, ms,": "1000", "-u": "no"})
    second = evaluated("b", "++", settings={"the lead-in, ms,": "500"}, notes=("it is partial, 2 of 9 files",))
    warnings = compare(first, second).warnings
    assert any(one.startswith("the lead-in, ms, differs: 1000 and 500") for one in warnings)
    assert any(one.startswith("-u is told by a alone") for one in warnings)
    assert "b: it is partial, 2 of 9 files" in warnings
    with pytest.raises(InputError, match="in common"):
        compare(evaluated("a", "++"), evaluated("b", "", {"x": AmbientFile(1, 1.0)}))


def test_a_log_of_the_original_tool_can_be_compared(tmp_path: Path) -> None:
    text = (
        'INVTA "/data/1.wav" 1510 2310 "hey" sv-score 0\nINVFR "/data/2.wav"\n'
        'OOVFA "/data/long.wav" 100 900 "hey" sv-score 0\nINFO inv-files 2\nINFO inv-seconds 7\n'
        "INFO oov-files 1\nINFO oov-seconds 7200\nINFO oov-hours 2:00:00.000\nFACOUNT 1\n"
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.log").write_text(text if name == "a" else text.replace("INVFR", "REJECT").replace(
            'REJECT "/data/2.wav"', 'REJECT "/data/2.wav" unreadable'))  # fmt: skip
    first, second = read_evaluated(tmp_path / "a.log"), read_evaluated(tmp_path / "b.log")
    assert [first.spoken.told(row) for row in range(2)] == [
        ("/data/1.wav", SpokenFile(True, said="hey")),
        ("/data/2.wav", SpokenFile(False)),
    ]
    assert first.ambient is None
    assert (first.false_accepts, first.hours) == (1, 2.0)
    found = compare(first, second)
    assert any(one.endswith("rejected: 1 file") for one in found.warnings)
    assert found.false_accepts is not None
    assert not found.false_accepts.same_audio
    with pytest.raises(InputError, match="cannot be read"):
        read_evaluated(tmp_path / "none.log")
