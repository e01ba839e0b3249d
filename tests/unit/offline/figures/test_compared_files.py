"""Files as columns: names that come again, pairs in order, clusters numbered as they come."""

import random

import numpy as np
import pytest

from harness.model.errors import InputError
from harness.offline.figures.comparison import (
    AmbientFile,
    AmbientFiles,
    Clusters,
    SpokenFile,
    SpokenFiles,
    ToldLater,
    in_both,
    keys,
    others,
    renumbered,
)


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
