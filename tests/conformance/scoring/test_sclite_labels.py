"""The figures by label of an stm file against sclite's report by subset (`-o lur`), position by position."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from tests.conformance.scoring.sclite import SCLITE, needs_sclite

pytestmark = needs_sclite

HEAD = """;; CATEGORY "0" "" ""
;; LABEL "O" "Overall" "All"
;; CATEGORY "1" "Focus" "Conditions"
;; LABEL "F0" "Baseline//Broadcast" "Read"
;; LABEL "F1" "Spontaneous" "Free"
;; LABEL "FX" "Others" "Rest"
;; CATEGORY "2" "Sex" ""
;; LABEL "M" "Male" ""
;; LABEL "F" "Female" ""
"""
TITLES = ("Overall", "Baseline Broadcast", "Spontaneous", "Others", "Male", "Female")
WORDS = ("a", "b", "c", "d", "e")
SUMS = re.compile(r"\| *Set Sum/Avg *\|(.*)\|")
FIGURES = re.compile(r"\[(\d+)\] +([\d.]+)")


def drawn(folder: Path, seed: int) -> tuple[Path, Path]:
    """A reference with labels in either case, places left empty, and segments without any; and what was heard."""
    draw = random.Random(seed)
    segments: list[str] = []
    heard: list[str] = []
    for start_s in range(300):
        label = f"<{draw.choice('Oo')},{draw.choice(('F0', 'f0', 'F1', 'FX', ''))},{draw.choice('MmFf')}> "
        label = draw.choice((label, label, label, "<O> ", ""))
        text = "IGNORE_TIME_SEGMENT_IN_SCORING" if draw.random() < 0.05 else " ".join(draw.choices(WORDS, k=5))
        segments.append(f"f A {draw.choice(('ann', 'bob', 'cy'))} {start_s} {start_s + 1} {label}{text}")
        words = [draw.choice(WORDS) if draw.random() < 0.3 else word for word in text.split() if draw.random() > 0.1]
        heard += [f"f A {start_s + 0.1 * number + 0.05:.2f} 0.05 {word}" for number, word in enumerate(words[:8])]
    stm, ctm = folder / "r.stm", folder / "h.ctm"
    stm.write_text(HEAD + "\n".join(segments) + "\n", encoding="utf-8")
    ctm.write_text("\n".join(heard) + "\n", encoding="utf-8")
    return stm, ctm


def theirs(stm: Path, ctm: Path) -> dict[str, tuple[int, str]]:
    """Words and per cent of errors of each subset, in the order in which the file declares them."""
    command = [str(SCLITE), "-r", stm.name, "stm", "-h", ctm.name, "ctm", "-f", "0", "-s", "-o", "lur", "stdout"]
    ran = subprocess.run(command, capture_output=True, cwd=stm.parent, timeout=120, check=True, text=True)
    (line,) = SUMS.findall(ran.stdout)
    figures = [(int(words), wer) for words, wer in FIGURES.findall(line)]
    return dict(zip(TITLES, figures, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_subsets_have_the_figures_that_sclite_prints(tmp_path: Path, seed: int) -> None:
    stm, ctm = drawn(tmp_path, seed)
    result = CliRunner().invoke(group, ["score", "-r", str(stm), "-H", str(ctm), "--json", "-"])
    assert result.exit_code == 0, result.output
    groups = json.loads(result.stdout)["groups"]
    assert [grouping["by"] for grouping in groups] == ["label 1", "Focus", "Sex"]
    figures = {
        row["value"]: (row["words"], f"{100 * row['wer']:.1f}") for grouping in groups for row in grouping["values"]
    }
    assert figures.pop(None)[0] > 0  # segments without labels, which sclite leaves out
    assert figures == theirs(stm, ctm)
