"""`harness evaluate --sweep` and `harness compare` as a user types them, with a real engine, voices and processes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.offline_runs import harness, list_of, refused
from tests.conformance.offline.said import say

ALEXA = "microwakeword:alexa"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lists() -> None:
    voices = ("en-us", "en-gb", "en-gb-scotland", "en-us+f3", "en-us+m3", "en-gb+f2")
    inv = [
        say(Path(f"inv{n}.wav"), "alexa", voice, 1.25, gain=0.5, noise=0.02 * (n % 3)) for n, voice in enumerate(voices)
    ]
    text = "alas, a lexicon. a lecture, he said. Alex and Alexander ask a question. electric sir. " * 2
    oov = [say(Path(f"oov{n}.wav"), text, voice, 1.25, gain=0.5, noise=0.003) for n, voice in enumerate(voices[:2])]
    for name, files in (("inv", inv[::2]), ("oov", oov[::2]), ("dev-inv", inv[1::2]), ("dev-oov", oov[1::2])):
        list_of(Path(f"{name}.txt"), files)


def test_a_sweep_says_what_the_log_of_each_operating_point_says() -> None:
    """One evaluation, and the points of the sweep are those of further evaluations; the point is chosen elsewhere."""
    lists()
    lines, dev = ("-i", "inv.txt", "-o", "oov.txt"), ("--dev-inv", "dev-inv.txt", "--dev-oov", "dev-oov.txt")
    result = harness("evaluate", "-t", ALEXA, *lines, "-u", "-l", "a.log", "--sweep", "--twv", *dev, "--target-fr", "0")
    assert result.exit_code == 0, result.output
    told = json.loads(Path("a.det.json").read_text())
    assert told["choice"]["one_list"] is False
    assert told["choice"]["chosen"]["fr"] == 0
    assert "on the development list:" in result.output
    assert "reported:" in result.output
    assert re.search(r"^MTWV -?[\d.]+ at threshold", result.output, re.M)
    for ending, first in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert Path(f"a.det.{ending}").read_bytes().startswith(first)
    rows = list(csv.DictReader(Path("a.det.csv").read_text().splitlines()))
    assert [row["operating_point"] for row in rows if row["operating_point"]] == [str(n) for n in range(1, 21)]
    assert sum(row["chosen"] == "yes" for row in rows) == 1
    own = next(one for one in told["operating_points"] if one["operating_point"] == 10)
    chosen = told["choice"]["reported"]
    assert len({one["false_accepts"] for one in told["operating_points"]}) > 1
    # A threshold that was recommended is a setting that gives back the same counts.
    again = harness("evaluate", "-t", ALEXA, *lines, "-u", "-l", "b.log", "--cache", "a.log.scores", "-s",
                    f"threshold={chosen['threshold']}")  # fmt: skip
    assert again.exit_code == 0, again.output
    for name, expected in (("a.log", own), ("b.log", chosen)):
        log = Path(name).read_text()
        assert f"\nFACOUNT {expected['false_accepts']}\n" in log
        assert float(re.findall(r"^FRCOUNT (\S+)", log, re.M)[0]) == expected["false_rejects"]
        assert float(re.findall(r"^FARATE (\S+)", log, re.M)[0]) == pytest.approx(expected["fa_per_hour"], abs=1e-4)
    compared = harness("compare", "a.log", "b.log", "--cluster-by", r"inv(\d)", "--csv", "differing.csv")
    assert compared.exit_code == 0, compared.output
    assert "McNemar" in compared.output
    assert "the same audio" in compared.output
    assert "Warning" not in compared.output


def test_what_cannot_be_swept_is_refused_before_any_audio_is_read(sounds: Sounds) -> None:
    Path("oov.txt").write_text(f"{sounds('a.wav', 2.0, [1.5])}\n")
    evaluate = ("evaluate", "-t", ALEXA, "-o", "oov.txt")
    assert "Add --sweep" in refused(*evaluate, "--target-fr", "5")
    assert "Give both -i and -o" in refused(*evaluate, "--sweep", "--target-fr", "5")
    assert "two targets" in refused(*evaluate, "--sweep", "--target-fr", "5", "--target-fa-per-hour", "1")
    assert "--dev-inv and --dev-oov" in refused(
        *evaluate, "--sweep", "--target-fr", "5", "--dev-inv", "oov.txt"
    )  # fmt: skip
    assert "begin afresh" in refused(*evaluate, "--sweep", "--continuous")
    assert "part" in refused(*evaluate, "--sweep", "--shard", "1/2")
    assert "no folder" in refused(*evaluate, "--sweep", "nowhere/det")
    dev = ("--dev-inv", "gone.txt", "--dev-oov", "oov.txt", "--target-fr", "5")
    assert "gone.txt" in refused(*evaluate, "--sweep", *dev)
    assert "tells no scores" in refused("evaluate", "-t", "pocketsphinx:hey jarvis", "-o", "oov.txt", "--sweep")
    assert not list(Path().glob("*.log*"))


@pytest.mark.usefixtures("loudness_plugin")
def test_a_development_file_that_cannot_be_read_sets_the_status_as_any_other_does(sounds: Sounds) -> None:
    for name, files in {
        "inv": [sounds("a.wav", 3.0, [1.5])],
        "oov": [sounds("b.wav", 3.0)],
        "dev-inv": [sounds("c.wav", 4.0, [1.5]), Path("gone.wav")],
        "dev-oov": [sounds("d.wav", 4.0)],
    }.items():
        list_of(Path(f"{name}.txt"), files)
    dev = ("--dev-inv", "dev-inv.txt", "--dev-oov", "dev-oov.txt", "--target-fr", "0", "--no-picture")
    result = harness(
        "evaluate", "-t", "loudness:boom", "-i", "inv.txt", "-o", "oov.txt", "-l", "a.log", "--sweep", *dev
    )
    assert result.exit_code == 3, result.output
    assert "1 development file rejected: 1 unreadable" in result.output
    assert "Chosen: threshold" in result.output
    assert Path("a.log").exists()


def test_damaged_scores_are_told_and_worked_out_anew(sounds: Sounds) -> None:
    files = [sounds(f"{name}.wav", 4.0, [1.5]) for name in ("a", "bb")]
    list_of(Path("oov.txt"), files)
    evaluate = ("evaluate", "-t", ALEXA, "-o", "oov.txt", "--sweep", "det", "--force", "-l", "a.log")
    assert harness(*evaluate).exit_code == 0
    before = Path("det.csv").read_text()
    damaged, removed = Path("a.log.scores").rglob("*.scores")
    content = bytearray(damaged.read_bytes())
    content[-20] ^= 1
    damaged.write_bytes(content)
    removed.unlink()
    again = harness(*evaluate)
    assert again.exit_code == 0, again.output
    assert again.output.count("worked out anew") == 1
    assert Path("det.csv").read_text() == before
    assert damaged.read_bytes() != bytes(content)
    assert removed.exists()
