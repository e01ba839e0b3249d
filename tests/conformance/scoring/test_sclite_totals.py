"""The totals of `harness score --like-sclite` against those that sclite prints itself, speaker by speaker.

sclite refuses a hypothesis whose id has no reference, so that it is not given those; we count them nowhere.
"""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import group
from tests.conformance.scoring.sclite import needs_sclite, output

pytestmark = needs_sclite

UTTERANCES = 3000
SPEAKERS = ("amy", "bob", "cat7", "d", "ed")
WORDS = ("to", "the", "light", "lights", "on", "off", "Kitchen", "kitchen", "a", "two", "too", "what's", "twenty-one")
LABELS = ("sentences", "words", "correct", "substitutions", "deletions", "insertions", "errors", "sentences_with_error")
ROW = re.compile(r"\| *([^|]*?) *\| *(\d+) +(\d+) *\| *(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) *\|")
SHARES = re.compile(r"\| *([^|]*?) *\| *\S+ +\S+ *\|" + r" *([\d.]+)" * 6 + r" *\|")


def written(draw: random.Random, words: list[str], networks: bool) -> str:
    """The words, now and then with alternatives or marks around them."""
    out = []
    for word in words:
        kind = draw.random() if networks else 1.0
        if kind < 0.03:
            out.append(f"{{ {word} / {draw.choice(WORDS)} }}")
        elif kind < 0.06:
            out.append(f"{{ {word} {draw.choice(WORDS)} / {draw.choice(WORDS)} / @ }}")
        elif kind < 0.09:
            out.append(f"({word})")
        elif kind < 0.12 and len(word) > 3:
            out.append(f"{word[:2]}-")
        else:
            out.append(word)
    return " ".join(out)


def corpus(folder: Path, networks: bool) -> tuple[Path, Path, Path]:
    """A reference and its hypothesis, and that without surplus ids.

    Ids missing on either side, references and hypotheses without words, another order on the other side.
    """
    draw = random.Random(5)
    references: list[str] = []
    hypotheses: list[str] = []
    for number in range(UTTERANCES):
        speaker = draw.choice(SPEAKERS)
        words = draw.choices(WORDS, k=0 if number % 50 == 0 else draw.randint(1, 16))
        heard: list[str] = []
        for word in words if number % 3 else []:
            kind = draw.random()
            heard += [draw.choice(WORDS)] if kind < 0.12 else [] if kind < 0.2 else [word]
            heard += [draw.choice(WORDS)] if kind > 0.94 else []
        heard = heard if number % 3 else [word.upper() for word in words]
        id_ = f"{speaker}_{number:05}"
        if number % 41:
            references.append(f"{written(draw, words, networks)} ({id_})\n")
        if number % 37:
            hypotheses.append(f"{' '.join(heard)} ({id_})\n")
    draw.shuffle(hypotheses)
    ids = {line.rpartition("(")[2] for line in references}
    paired = [line for line in hypotheses if line.rpartition("(")[2] in ids]
    paths = folder / "ref.trn", folder / "hyp.trn", folder / "paired.trn"
    for path, lines in zip(paths, (references, hypotheses, paired), strict=True):
        path.write_text("".join(lines), encoding="utf-8")
    return paths


def ours(paths: tuple[Path, Path, Path], *options: str) -> Any:
    command = ["score", "-r", str(paths[0]), "-H", str(paths[1]), "--like-sclite", *options]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(group, command)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in options else result.stdout


def row(counts: dict[str, int]) -> dict[str, int]:
    counts["errors"] = counts["substitutions"] + counts["deletions"] + counts["insertions"]
    return {label: counts[label] for label in LABELS}


@pytest.mark.parametrize(
    ("networks", "flags"),
    [
        (False, {}),
        (True, {}),
        (True, {"-D": "--optional-words"}),
        (True, {"-F": "--fragments"}),
        (True, {"-D": "--optional-words", "-F": "--fragments"}),
    ],
)
def test_counts_match_sclite(tmp_path: Path, networks: bool, flags: dict[str, str]) -> None:
    paths = corpus(tmp_path, networks)
    printed = output(paths[0], paths[2], *flags, "-o", "rsum", "stdout")
    expected = {name: dict(zip(LABELS, map(int, figures), strict=True)) for name, *figures in ROW.findall(printed)}
    report = ours(paths, *flags.values(), "--json", "-")
    assert sorted(expected) == sorted(["Sum", *SPEAKERS])
    assert row(report["totals"]) == expected.pop("Sum")
    assert {speaker["speaker"]: row(speaker) for speaker in report["speakers"]} == expected
    assert report["missing_counted"] == 0
    assert len(report["missing"]) > 50
    assert len(report["surplus"]) > 50
    assert report["empty_references"] > 50


def test_shares_are_printed_as_sclite_rounds_them(tmp_path: Path) -> None:
    paths = corpus(tmp_path, False)
    printed = output(paths[0], paths[2], "-o", "sum", "stdout")
    expected = {name: figures for name, *figures in SHARES.findall(printed)}
    lines = [line.split() for line in ours(paths).splitlines()]
    shares = {line[0]: line[-6:] for line in lines if len(line) >= 9}
    assert set(expected) == {*SPEAKERS, "Sum/Avg", "Mean", "S.D.", "Median"}
    for theirs, our_name in [*zip(SPEAKERS, SPEAKERS, strict=True), ("Sum/Avg", "Sum"), ("Median", "Median")]:
        assert shares[our_name] == expected[theirs]
    assert shares["Mean"] == expected["Mean"]
    assert shares["S.D."] == expected["S.D."]
