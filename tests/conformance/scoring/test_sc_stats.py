"""Two systems under the tests of NIST's sc_stats, on what its sclite aligned: equal segments, z, counts and signs.

Its p of McNemar's test is not compared, since it is not binomial: 59 against 46 utterances are below 0.001 (0.241).
Neither is that of Wilcoxon's test, which is normal from 8 speakers on.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest
import scipy

from harness.transcripts.groups import SystemComparison, compare
from harness.transcripts.paired_tests import PairedBy
from tests.conformance.scoring.sclite import CASE_COUNTS, SCLITE, needs_sclite, output
from tests.unit.transcripts.reports.scorings import scored

pytestmark = needs_sclite

WORDS = ("on", "off", "the", "a", "light", "lights", "kitchen")
SPEAKERS = "abcdefghij"


def heard(draw: random.Random, words: list[str], rate: float) -> str:
    out: list[str] = []
    for word in words:
        kind = draw.random() / rate
        inserted = [draw.choice(WORDS)] if kind < 0.3 else []
        out += inserted if 0.3 < kind < 0.6 else [*inserted, draw.choice(WORDS) if kind < 1 else word]
    return " ".join([*out, draw.choice(WORDS)] if draw.random() < rate else out)


def both(folder: Path, rates: tuple[float, float]) -> tuple[SystemComparison, dict[str, str]]:
    """Two systems with errors at some rates, compared here, and what sc_stats prints of each test."""
    draw = random.Random(3)
    utterances = {f"{SPEAKERS[n % 10]}_{n:03d}": draw.choices(WORDS, k=draw.randint(1, 14)) for n in range(300)}
    references = {id_: " ".join(words) for id_, words in utterances.items()}
    systems = [{id_: heard(draw, words, rate) for id_, words in utterances.items()} for rate in rates]
    sgml = ""
    for name, texts in (("ref", references), ("one", systems[0]), ("two", systems[1])):
        path = folder / f"{name}.trn"
        path.write_text("".join(f"{text} ({id_})\n" for id_, text in texts.items()), encoding="utf-8")
        sgml += "" if name == "ref" else output(folder / "ref.trn", path, CASE_COUNTS)
    tests = ("mapsswe", "mcn", "sign")
    for test in tests:
        command = [str(SCLITE.with_name("sc_stats")), "-p", "-t", test, "-v", "-n", "-"]
        ran = subprocess.run(command, input=sgml.encode(), capture_output=True, cwd=folder, timeout=120, check=True)
        (folder / test).write_bytes(ran.stdout)
    (pair,) = compare([scored(references, texts) for texts in systems])
    return pair, {test: (folder / test).read_text(encoding="latin-1") for test in tests}


def numbers(pattern: str, text: str) -> list[float]:
    match = re.search(pattern, text, re.DOTALL)
    assert match, text
    return [float(number) for number in match.groups()]


@pytest.mark.parametrize("rates", [(0.15, 0.2), (0.2, 0.15), (0.15, 0.17)])
def test_segments_counts_and_signs_are_those_of_sc_stats(rates: tuple[float, float], tmp_path: Path) -> None:
    pair, printed = both(tmp_path, rates)
    tests = {test.by: test for test in pair.tests}
    segments = tests[PairedBy.SEGMENTS]
    units, z = numbers(r"# segs: (\d+)\).*Z Stat: (\S+)\)", printed["mapsswe"])
    assert segments.units == units
    assert segments.p == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), rel=5e-3)
    cells = numbers(r"corr +(\d+) +(\d+)\s+incorr +(\d+) +(\d+)", printed["mcn"])
    counts = pair.recognised
    assert [counts.both, counts.only_first, counts.only_second, counts.neither] == cells
    more, less = numbers(r"N\(\+\) = +(\d+).*N\(-\) = +(\d+)", printed["sign"])
    signs = tests[PairedBy.SIGNS]
    assert sorted((signs.first_better, signs.second_better)) == sorted((more, less))
    assert signs.p == pytest.approx(scipy.stats.binomtest(int(more), int(more + less)).pvalue)
