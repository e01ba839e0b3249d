"""Several engines in one command, and the page and JUnit of evaluations, with real engines and processes."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser

from harness.offline.evaluation_results import read_engines
from harness.statistics.intervals import clopper_pearson
from harness.statistics.word_intervals import share_difference
from tests.command import succeeded
from tests.conformance.accessible import barriers
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.offline_runs import harness, refused, untimed
from tests.known import known
from tests.unit.report.junit_schema import problems

FOLDERS = ("--in", "yes", "--out", "no")
SCORES, SPOTS = "loudness:boom", "loudness_spots:boom"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loudness_plugin: Path, sounds: Sounds) -> Path:
    """Three recordings with a loud place, one without; and one of two that should have none."""
    monkeypatch.chdir(tmp_path)
    for folder, files in (
        ("yes", {"a.wav": [1.5], "b.wav": [1.5], "c.wav": [], "d.wav": [1.5]}),
        ("no", {"quiet.wav": [], "loud.wav": [2.0]}),
    ):
        (tmp_path / folder).mkdir()
        for name, loud in files.items():
            sounds(name, 3.0, loud).rename(tmp_path / folder / name)
    return tmp_path


def test_several_engines_are_compared_on_the_same_recordings(here: Path) -> None:
    # Two builds of one engine: the second never goes above its threshold, and so misses everything at its own point.
    result = succeeded(harness("evaluate", "-t", SCORES, "-t", SPOTS, *FOLDERS, "--sweep", "-l", "x.log"))
    assert harness("evaluate", "-t", SCORES, *FOLDERS, "--cache", "k").exit_code == 0
    assert untimed(here / "x.loudness-boom.log") == untimed(here / "loudness-boom.log")
    summary = json.loads((here / "x.det.json").read_text())
    first, second = summary["engines"]
    rate = first["as_run"]["fa_per_hour"]
    assert summary["fa_per_hour_at_most"] == rate == pytest.approx(3600 / 6)
    for engine in (first, second):
        assert (engine["as_run"]["false_rejects"], engine["at_most"]["false_rejects"], engine["at_most"]["files"]) == (
            1,
            1,
            4,
        )
        assert engine["peak_memory_mb"] > 10
        assert engine["cpu_s_per_hour"] > 0
    apart = known(share_difference([0, 0, 1, 0], [0, 0, 1, 0]))
    assert second["less_the_first"]["difference"] == apart.difference == 0
    assert second["less_the_first"]["interval"] == pytest.approx(list(apart.interval))
    rows = list(csv.DictReader((here / "x.det.csv").read_text().splitlines()))
    assert {row["engine"] for row in rows} == {"loudness", "loudness_spots"}
    assert (here / "x.det.png").stat().st_size > 10_000
    assert re.search(r"^loudness_spots .*\+0\.00 ", result.stdout, re.M)
    assert "loudness_spots is counted only as it ran" in result.stderr


def test_stored_scores_are_not_taken_for_the_speed_of_the_engine(here: Path) -> None:
    command = ("evaluate", "-t", SCORES, *FOLDERS, "-l", "x.log", "--html", "page.html", "--audio", "none", "--force")
    first = harness(*command)
    assert re.search(r", \d+\.\dx RT$", first.stdout, re.M)
    assert "They were scored earlier, or are copies of other listed files." in first.stderr
    assert "scores of 2 files came from x.log.scores" in first.stderr  # b.wav and d.wav have the bytes of a.wav
    cached = harness(*command)
    assert cached.stdout.splitlines()[0] == re.sub(r", [\d.]+x RT", "", first.stdout.splitlines()[0])
    note = "scores of 6 files came from x.log.scores, not from the engine"
    assert f"harness: {note}" in cached.stderr
    assert note in (here / "page.html").read_text()
    assert json.loads((here / "x.log.json").read_text())["real_time_factor"] is None
    with_scores = harness("report", "x.log").stdout
    assert re.search(r"^Threshold: 0\.\d+\.$", with_scores, re.M)
    assert re.search(r"^Missed: yes/c\.wav, highest score 0\.\d{3}\.$", with_scores, re.M)
    shutil.rmtree(here / "x.log.scores")
    assert "\nMissed: yes/c.wav.\n" in harness("report", "x.log").stdout


def test_a_target_and_talkers_decide_the_comparison(here: Path) -> None:
    rows = [f"yes/{name}.wav,{talker},1.7" for name, talker in zip("abcd", "xxyz", strict=True)]
    (here / "m.csv").write_text("\n".join(["audio,talker,phrase_end_s", *rows]) + "\n")
    command = ("evaluate", "-t", SCORES, "-t", SPOTS, "--in", "m.csv", "--out", "no", "--sweep", "p", "--no-picture")
    succeeded(harness(*command, "--target-fa-per-hour", "0"))
    summary = json.loads((here / "p.json").read_text())
    assert (summary["fa_per_hour_at_most"], summary["clustered_by"], summary["delay_from"]) == (0, "talker", "label")
    first, second = summary["engines"]
    # No threshold keeps the loud place out and finds the others; the engine without scores has no other point.
    assert (first["at_most"]["false_rejects"], first["at_most"]["false_accepts"]) == (4, 0)
    assert second["at_most"] is None
    assert first["delay"]["total"] == 3
    assert first["delay"]["p50"]["value_s"] == pytest.approx(1.51 - 1.7, abs=0.011)


def test_a_report_from_the_log_knows_the_talkers_and_gives_the_same_verdict(here: Path) -> None:
    rows = [f"yes/{name}.wav,{talker}" for name, talker in zip("abcd", "xxyz", strict=True)]
    (here / "m.csv").write_text("\n".join(["audio,talker", *rows]) + "\n")
    inputs = ("-t", SCORES, "--in", "m.csv", "--out", "no", "--max-fr", "60", "-l", "x.log")
    assert harness("evaluate", *inputs, "--junit", "1.xml", "--html", "1.html").exit_code == 1
    assert harness("report", "x.log", "--junit", "2.xml", "--html", "2.html").exit_code == 0
    verdict = "false rejects ≤ 60 %: found 25.0 % (interval up to 87.5 %), fails"
    assert all(verdict in (here / name).read_text() for name in ("1.xml", "2.xml"))
    for name in ("1.html", "2.html"):
        text = re.sub("<[^>]+>", " ", (here / name).read_text())
        assert re.search(r"\(--max-fr\)\s+FAIL\s+≤ 60 %\s+25\.0 %\s+0\.70–87\.5 %", text), name
        assert "over 3 voices" in text
    refused = harness("evaluate", *inputs, "--resume", "--cluster-by", "")
    assert "the talker column is talker then, none now" in str(refused.exception)
    (here / "m.csv").write_text("\n".join(["audio,talker", *rows]).replace("a.wav,x", "a.wav,z") + "\n")
    refused = harness("evaluate", *inputs, "--resume")
    assert "the column talker has other values for some files" in str(refused.exception)


@pytest.mark.parametrize("conditions", [(), ("--conditions", "c.yaml")])
def test_results_as_run_have_the_intervals_of_the_log_in_json_and_on_the_page(
    here: Path, conditions: tuple[str, ...]
) -> None:
    rows = [f"yes/{name}.wav,{talker}" for name, talker in zip("abcd", "xxyz", strict=True)]
    (here / "m.csv").write_text("\n".join(["audio,talker", *rows]) + "\n")
    (here / "c.yaml").write_text("conditions: gains\nmatrix:\n  axes:\n    gain_db: [0, -0.5]\n")
    engines = ("-t", SCORES, "-t", SPOTS)
    outputs = ("-l", "x.log", "--html", "page.html")
    succeeded(harness("evaluate", *engines, "--in", "m.csv", "--out", "no", *conditions, "--sweep", *outputs))
    page = html.unescape((here / "page.html").read_text())
    for engine in json.loads((here / "x.det.json").read_text())["engines"]:
        lines = (here / f"x.{engine['engine']}-boom.log").read_text()
        own = engine["as_run"]
        for name, scale, key, digits in (("frratio", 100, "fr_95", 1), ("farate", 1, "fa_per_hour_95", 0)):
            ends = re.search(rf"^INFO x-{name}-interval ([\d.]+) to ([\d.]+) ", lines, re.M)
            assert ends is not None
            low, high = map(float, ends.groups())
            assert [scale * end for end in own[key]] == pytest.approx([low, high], abs=1e-3)
            assert f"–{high:.{digits}f}" in page


def test_development_lists_choose_the_point_of_each_engine(here: Path, sounds: Sounds) -> None:
    for folder, loud in (("dev-yes", [1.5]), ("dev-no", [])):
        (here / folder).mkdir()
        sounds("e.wav", 4.0, loud).rename(here / folder / "e.wav")
    command = ("evaluate", "-t", SCORES, "-t", SPOTS, *FOLDERS, "--sweep", "p", "--no-picture", "--target-fa-per-hour")
    on_one_list = harness(*command, "0")
    assert "thresholds           chosen and reported on the same list, so" in on_one_list.stdout
    assert "\nn/a                  No threshold meets this target." in on_one_list.stdout
    assert json.loads((here / "p.json").read_text())["engines"][0]["at_most"]["false_rejects"] == 4
    dev = ("--dev-inv", "dev-yes", "--dev-oov", "dev-no")
    result = succeeded(harness(*command, "0", *dev, "--force", "--html", "page.html", "--audio", "none"))
    # No development file without the phrase is loud, so the loud place of the reported list is a false accept.
    summary = json.loads((here / "p.json").read_text())
    at_most = summary["engines"][0]["at_most"]
    assert (summary["one_list"], at_most["false_rejects"], at_most["false_accepts"]) == (False, 1, 1)
    words = "chosen on the development lists: at most 0 false accepts per hour (the estimate)"
    assert f"thresholds {words} n/a No threshold meets" in " ".join(result.stdout.split())
    assert re.search(r"FR as chosen .*FA/h as chosen", result.stdout)
    page = (here / "page.html").read_text()
    assert f"Thresholds: {words}." in page
    assert page.count('<circle class="chosen ') == 1  # the other engine meets the target nowhere
    assert "the same list" not in result.stdout + page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dev-inv", "yes", "--dev-oov", "no", "--target-fa-per-hour", "1"), "Add --sweep"),
        (("--dev-inv", "yes", "--dev-oov", "no", "--sweep"), "Add --target-fa-per-hour"),
        (("-s", "colour=red"), "none of the engines has the setting 'colour'"),
        (("--sweep", "--twv"), "--twv can be used with only one engine"),
        (("--sweep", "--shard", "1/2"), "a sweep needs whole lists and cannot be used with --shard"),
        (("--sweep", "--continuous"), "a sweep cannot be used with --continuous"),
        (("--sweep", "--target-fr", "0"), "--target-fr can be used with only one engine"),
        (("--sweep", "--sweep-refractory-ms", "0"), "--sweep-refractory-ms can be used with only one engine"),
        (("--label-tolerance", "2"), "--label-tolerance requires --long"),
        (("--html", "nowhere/page.html"), "the folder nowhere does not exist"),
        (("--html", "yes/a.wav", "-i", "yes/a.wav"), "yes/a.wav"),
    ],
)
def test_incompatible_options_are_refused_first(here: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused("evaluate", "-t", SCORES, "-t", SPOTS, *FOLDERS, *options)
    assert not list(here.glob("*.log"))


def test_one_command_leads_from_two_folders_to_a_page(here: Path, browser: Browser) -> None:
    limits = ("--max-fr", "30", "--max-fa-per-hour", "1")
    result = harness("evaluate", "-t", SCORES, *FOLDERS, "--by", "folder", *limits, "--limits-on", "estimate",
                   "--html", "page.html", "--junit", "j.xml")  # fmt: skip
    assert result.exit_code == 1
    assert (result.stdout.splitlines()[-1], result.stderr.splitlines()[-1]) == ("FAIL.", "harness: wrote page.html")
    page = (here / "page.html").read_text()
    assert (
        page.count("data:audio/flac;base64,") == page.count('<svg class="sound score"') == 2
    )  # a miss, a false accept
    assert problems((here / "j.xml").read_bytes()) == []
    run, limit, files = ElementTree.parse(here / "j.xml").getroot()
    assert [(case.get("name"), len(case.findall("error"))) for case in run.iter("testcase")] == [("run", 0)]
    assert [case.find("failure") is not None for case in limit.iter("testcase")] == [True, False]
    # The limits decide, so no single file fails.
    assert [(case.get("name"), case.find("failure")) for case in files.iter("testcase")] == [
        ("yes/c.wav", None),
        ("no/loud.wav", None),
    ]
    # From the log alone: the same page but for times and the delays.
    succeeded(harness("report", "loudness-boom.log", "--html", "again.html", "--junit", "again.xml"))
    assert (here / "again.xml").read_bytes() == (here / "j.xml").read_bytes()
    assert _untimed(here / "again.html") == _untimed(here / "page.html")
    for width in (1280, 390):
        with browser.new_context(viewport={"width": width, "height": 800}) as context:
            shown, messages = context.new_page(), list[str]()
            shown.on("console", lambda message, messages=messages: messages.append(message.text))
            shown.goto((here / "page.html").as_uri())
            shown.wait_for_load_state("load")
            assert (messages, barriers(shown)) == ([], [])
            assert shown.evaluate("document.documentElement.scrollWidth") == width
            played = "new Audio(document.querySelector('audio').src).play().then(() => 'plays')"
            assert shown.evaluate(played) == "plays"


def test_the_page_names_the_chosen_point_in_the_words_of_the_console(here: Path) -> None:
    command = ("evaluate", "-t", SCORES, *FOLDERS, "--sweep", "--no-picture", "--audio", "none", "--html", "page.html")
    result = succeeded(harness(*command, "--target-fr", "25"))
    lines = re.search(r"^Target: at most 25 % false rejects .*--dev-inv, --dev-oov$", result.stdout, re.M | re.S)
    page = html.unescape((here / "page.html").read_text())
    assert known(lines)[0] in page
    chosen = json.loads((here / "loudness-boom.det.json").read_text())["choice"]["chosen"]
    assert f"<th scope=row class=n>chosen<td class=n>{chosen['threshold']}<td>1 of 4" in page
    assert page.count('<circle class="chosen ') == 1
    assert "ring: the chosen point" in page
    rows = [f"yes/{name}.wav,{talker}" for name, talker in zip("abcd", "xxyz", strict=True)]
    (here / "m.csv").write_text("\n".join(["audio,talker", *rows]) + "\n")
    by_talker = harness(*command[:3], "--in", "m.csv", "--out", "no", *command[7:], "--target-fr", "25", "--force")
    assert re.search(r"1 of 4 FR = 25\.0 % \([\d.]+–[\d.]+ %, over 3 voices\)$", by_talker.stdout, re.M)
    assert "Intervals of false rejects are over 3 voices" in (here / "page.html").read_text()
    harness(*command, "--force")
    page = (here / "page.html").read_text()
    assert ("Target:" in page, "; ring:" in page, '<circle class="chosen ' in page) == (False, False, False)


def test_errors_in_conditions_have_the_sound_that_the_engine_heard(here: Path) -> None:
    (here / "c.yaml").write_text("conditions: faint\nmatrix:\n  axes:\n    gain_db: [-40, -60]\n")
    result = harness(
        "evaluate", "-t", SCORES, *FOLDERS, "--conditions", "c.yaml", "--html", "faint.html", "--audio", "beside",
        "--sweep", "--no-picture",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    clips = sorted(here.glob("faint*/*.flac"))
    assert len(clips) == 8  # every phrase is missed in both conditions
    levels = [float(np.abs(soundfile.read(clip)[0]).max()) for clip in clips]
    assert 0 < max(levels) <= 10 ** (-40 / 20)
    strictest = next(csv.DictReader((here / "loudness-boom.det.csv").read_text().splitlines()))
    assert (strictest["files"], strictest["false_rejects"]) == ("8", "8")
    assert float(strictest["fr_low"]) == pytest.approx(known(clopper_pearson(4, 4))[0], rel=1e-5)


def test_a_file_by_its_address_has_its_sound_in_a_condition_too(here: Path) -> None:
    (here / "c.yaml").write_text("conditions: faint\nmatrix:\n  axes:\n    gain_db: [-40]\n")
    (here / "in.txt").write_text(f"file://{here}/yes/a.wav\n")
    succeeded(
        harness(
            "evaluate", "-t", SCORES, "-i", "in.txt", "--conditions", "c.yaml", "--html", "a.html", "--audio", "beside"
        )
    )
    assert len([*here.glob("a*/*.flac")]) == 1


def test_labelled_phrases_have_clips_and_count_alike_at_their_own_threshold(here: Path) -> None:
    shutil.copy(here / "no" / "loud.wav", here / "long.wav")
    (here / "long.csv").write_text("start,end,phrase,talker\n0.4,0.8,boom,x\n1.9,2.1,boom,y\n")
    succeeded(
        harness("evaluate", "-t", SCORES, "-t", SPOTS, "--long", "long.wav", "--by", "talker", "--html", "p.html")
    )
    engine = read_engines([here / "loudness-boom.log"], print)[0]
    as_run = {key: phrase.detected_s is None for key, phrase in engine.phrases.items()}
    assert engine.missed_at(engine.as_run.threshold) == as_run == {("labelled", 0, 0): True, ("labelled", 0, 1): False}
    page = (here / "p.html").read_text()
    assert "“boom” at 0.400 s, talker x" in page
    assert "0 with the phrase, 1 without or with labels, 2 labelled phrases" in page
    assert "phrases treated as independent" in page
    assert "from the end of the phrase, by labels" in page


def _untimed(page: Path) -> str:
    return re.sub(r"written [\d-]+ [\d:]+ UTC|<title>.*?</title>", "", page.read_text())


def test_a_page_of_several_is_bounded_and_says_what_it_lacks(here: Path) -> None:
    succeeded(harness("evaluate", "-t", SCORES, "-t", SPOTS, *FOLDERS, "--html", "two.html", "--audio", "none"))
    page = (here / "two.html").read_text()
    assert "<audio" not in page
    assert "loudness_spots</bdi> has one point, and its errors have no score curve" in page
    for name in ("Errors of", "At equal false accepts per hour", "NO LIMITS"):
        assert name in page
    (here / "alone.log").write_bytes((here / "loudness-boom.log").read_bytes())
    assert "alone.log.jsonl is not next to the log" in refused("report", "alone.log", "--html", "no.html")
    assert "belongs" not in refused("report", "loudness-boom.log", "nothing", "--html", "no.html")
