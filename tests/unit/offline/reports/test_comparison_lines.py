"""The lines of a comparison of two evaluations."""

from __future__ import annotations

from harness.offline.figures.comparison import Clusters, Evaluated, SpokenFile, SpokenFiles, compare
from harness.offline.reports.comparison import lines


def test_an_end_of_an_interval_is_never_written_with_an_exponent() -> None:
    def heard(name: str, wrong: int) -> Evaluated:
        files = [(f"{talker}/{n}.wav", SpokenFile(talker >= wrong)) for talker in range(3) for n in range(40)]
        spoken = SpokenFiles(files.__getitem__, Clusters("folder"))
        for place, file in enumerate(files):
            spoken.add(*file, place)
        return Evaluated(name, spoken, None, 0, 0.0, {})

    text = "\n".join(lines(compare(heard("a", 2), heard("b", 1))))
    assert "over 3 clusters" in text
    assert not any("e-" in line for line in text.splitlines() if " wrong, " in line)
