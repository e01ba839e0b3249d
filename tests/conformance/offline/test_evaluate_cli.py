"""`harness evaluate`, `report` and `compare` as a user types them, with real engines, voices and processes."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import soundfile
from click.testing import Result

from harness.model.errors import PluginError
from harness.offline.wake_log import differences
from harness.offline.wake_log_reading import read
from tests.command import succeeded
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.engine_rows import GRAMMAR
from tests.conformance.offline.loudness import Wrong
from tests.conformance.offline.offline_runs import COMMAND, harness, list_of, refused
from tests.conformance.offline.said import say
from tests.files import file_with

ALEXA, OTHER = "alexa", "the weather is fine today, and we walk to the lake"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(*arguments: object) -> Result:
    return harness("evaluate", *arguments)


@pytest.fixture
def voices(here: Path) -> None:
    """Lists inv.txt and oov.txt of synthetic voices; their names stand relative to the lists' folder."""
    for name in ("inv", "oov"):
        (here / name).mkdir()
    inv = [
        say(here / "inv" / f"a{number}.wav", ALEXA, voice) for number, voice in enumerate(("en-us", "en-gb", "en-029"))
    ]
    # Said within the lead-in, and then again where it belongs.
    inv.append(here / "inv" / "early, twice.wav")
    say(inv[-1], ALEXA, "en-us", 0.1, 2.0)
    oov = [say(here / "oov" / f"o{number}.wav", OTHER, voice) for number, voice in enumerate(("en-us", "en-gb"))]
    oov.append(say(here / "oov" / "wrong.wav", ALEXA, "en-us"))
    (here / "inv.txt").write_text("".join(f"{file.relative_to(here)}\n" for file in inv))
    (here / "oov.txt").write_text("".join(f"{file.relative_to(here)}\n" for file in oov))


def names(log: str, key: str) -> list[str]:
    return [line.split('"')[1] for line in log.splitlines() if line.startswith(f"{key} ")]


@pytest.mark.usefixtures("voices")
def test_the_seeds_example_at_small_scale(here: Path) -> None:
    result = succeeded(
        evaluate(
            "-v",
            "-v",
            "-v",
            "-t",
            "microwakeword:alexa",
            "-i",
            "inv.txt",
            "--oov",
            "oov.txt",
            "-s",
            "operating-point=10",
        )
    )
    lines = result.stdout.splitlines()
    assert lines[0] == 'Writing log to "microwakeword-alexa.log"'
    assert re.fullmatch(r"INV: 4 files, 0\.\d{3} hr, 0:00:\d\d\.\d{3}", lines[1])
    assert re.fullmatch(r"OOV: 3 files, 0\.\d{3} hr, 0:00:\d\d\.\d{3}", lines[2])
    assert re.fullmatch(r"Total: 7 files, 0\.\d{3} hr, 0:00:\d\d\.\d{3}", lines[3])
    assert lines[4] == "Using operating point 10."
    assert lines[5] == f"Available operating points: {', '.join(map(str, range(1, 21)))}."
    assert re.fullmatch(r"7 files, 0\.\d{3} hr, 1 FA \d+\.\d\d/hr, 0\.00% FR, 4 TA, \d+\.\d+x RT", lines[6])
    assert len(lines) == 7
    log = (here / "microwakeword-alexa.log").read_text()
    assert names(log, "INVTA") == ["inv/a0.wav", "inv/a1.wav", "inv/a2.wav", "inv/early, twice.wav"]
    assert names(log, "INVFA") == names(log, "INVTX") == ["inv/early, twice.wav"]
    assert 'INVTX "inv/early, twice.wav" 2 spots' in log
    assert names(log, "OOVFA") == ["oov/wrong.wav"]
    # An event a line on standard error, as they come.
    events = {line for line in result.stderr.splitlines() if line.startswith(("INV", "OOV"))}
    assert events == {line for line in log.splitlines() if line.startswith(("INV", "OOV"))}
    back = read(log)
    assert differences(back) == ()
    assert back.about("operating-point") == "10"
    assert back.about("x-licence")
    summed = json.loads((here / "microwakeword-alexa.log.json").read_text())
    assert summed["totals"]["FACOUNT"] == 1
    assert summed["samples"]["inv"] == {
        "16000": sum(soundfile.info(path).frames for path in (here / "inv").glob("*.wav"))
    }
    assert not summed["partial"]
    report = succeeded(harness("report", "microwakeword-alexa.log"))
    assert report.stdout.splitlines()[:3] == lines[1:4]
    assert report.stdout.splitlines()[4] == lines[6]

    second = evaluate("-u", "-t", "microwakeword:alexa", "-i", "inv.txt", "--oov", "oov.txt", "-l", "u.log")
    assert re.fullmatch(r"7 files, .* 2 FA .*\n", second.stdout)  # -v 0: the summary alone
    with_u = read((here / "u.log").read_text())
    assert with_u.about("x-false-accept-rate") == "(OOVFA + INVFA) / (oov-hours + inv/oov-hours)"
    assert dict(with_u.totals)["FARATE"] == pytest.approx(
        2 / (with_u.seconds("oov") + with_u.seconds("inv/oov")) * 3600, rel=1e-4
    )


@pytest.mark.usefixtures("voices")
def test_two_folders_are_evaluated_and_broken_down(here: Path) -> None:
    result = succeeded(
        evaluate("-t", "microwakeword:alexa", "--in", "inv/", "--out", "oov", "--by", "folder", "-l", "f.log")
    )
    assert re.match(r"7 files, 0\.\d{3} hr, 1 FA \d+\.\d\d/hr, 0\.00% FR, 4 TA, .*", result.stdout)
    assert "(none)      4  0.00 %" in result.stdout
    (group,) = json.loads((here / "f.log.json").read_text())["groups"][0]["groups"]
    assert (group["rejects"], group["accepts"]) == ({"count": 0, "total": 4}, 1)
    succeeded(evaluate("-t", "microwakeword:alexa", "-i", "inv.txt", "--oov", "oov.txt", "-l", "l.log"))
    folders, from_lists = (read((here / name).read_text()) for name in ("f.log", "l.log"))
    assert dict(folders.totals) == dict(from_lists.totals)
    succeeded(evaluate("-t", "microwakeword:alexa", "--in", "inv/", "--out", "oov", "-l", "f.log", "--resume"))
    (here / "inv" / "new.wav").write_bytes((here / "inv" / "a0.wav").read_bytes())
    other = ("--in", "inv/", "--out", "oov", "-l", "f.log", "--resume")
    assert "belongs to a different evaluation" in str(refused("evaluate", "-t", "microwakeword:alexa", *other))
    expanded = ("--in", "inv/a0.wav", "inv/a1.wav", "inv/a2.wav")
    message = str(refused("evaluate", "-t", "microwakeword:alexa", *expanded))
    assert "inv/a1.wav does not belong to an option, nor do 1 more. Pass the folder, --in inv" in message


def test_grammar_commands_are_scored_by_their_words(here: Path) -> None:
    grammar = file_with(
        here / "light.gram", "#JSGF V1.0;\ngrammar light;\npublic <c> = turn the light (on | off) | stop the music;\n"
    )
    task = f"process:{GRAMMAR} {grammar}"
    rows = []
    for number, (text, reference) in enumerate(
        [("turn the light on", "Turn the light on."), ("stop the music", "turn the light off")]
    ):
        say(here / f"c{number}.wav", text, "en-us", 0.3)
        (here / f"c{number}.txt").write_text(reference + "\n")
        rows.append(f"c{number}.wav,c{number}.txt\n")
    (here / "c.csv").write_text("".join(rows))
    result = succeeded(evaluate("-t", task, "-c", "c.csv", "-n", "-l", "light.log"))
    assert re.fullmatch(r"2 files, 0\.\d{3} hr, 0 FA n/a/hr, 50\.00% FR, 1 TA, \d+\.\dx RT\n", result.stdout)
    log = (here / "light.log").read_text()
    assert re.search(r'^CMDTA "c0.wav" \d+ [\d.]+ "turn the light on" "turn the light on" sv-score 0', log, re.M)
    assert re.search(r'^CMDSB "c1.wav" \d+ [\d.]+ "stop the music" "turn the light off" sv-score 0', log, re.M)
    assert "FR+SBCOUNT 1.0\nFR+SBRATIO 50.0000 %\n" in log
    result = succeeded(
        evaluate("-t", task, "-c", "c.csv", "-w", "-n", "-l", "w.log", "--max-wer", "90%", "--limits-on", "estimate")
    )
    assert re.fullmatch(
        r"2 files, 0\.\d{3} hr, 8 Words, \d Substitutions, 0 Insertions, \d Deletions, (37\.5|50\.0)00% WER, "
        r"\d+\.\d xRT\nLimits: MARGINAL \(1 of 1 limits met\)\n"
        r"  WER ≤ 90 %: found \1 %, holds, but its interval crosses the limit\n",
        result.stdout,
    )
    assert differences(read((here / "w.log").read_text())) == ()
    assert "is a recogniser of commands, and -i" in refused("evaluate", "-t", task, "-i", "c.csv", "-l", "x.log")
    assert not (here / "x.log.jsonl").exists()


@pytest.fixture
def loud(sounds: Sounds, here: Path, loudness_plugin: Path) -> Sounds:
    inv = [sounds(f"in{number}.wav", 3, [] if number == 2 else [1.5]) for number in range(4)]
    list_of(here / "i.txt", inv)
    (here / "o.txt").write_text(f"{sounds('out.wav', 20, [5, 12])}\n")
    return sounds


BOOM = ("-t", "loudness:boom", "-i", "i.txt", "--oov", "o.txt")


@pytest.mark.usefixtures("loud")
def test_limits_decide_the_status() -> None:
    result = evaluate(*BOOM, "--max-fr", 30)
    assert result.exit_code == 1
    assert "--max-fr: false rejects ≤ 30 %: found 25.0 % (interval up to 80.6 %), fails" in result.stderr
    result = evaluate(*BOOM, "--force", "--max-fa-per-hour", 300, "--limits-on", "estimate")
    assert result.exit_code == 1
    assert "--max-fa-per-hour: false accepts per hour ≤ 300: found 360, fails" in result.stderr


@pytest.mark.usefixtures("loud")
def test_the_verdict_on_limits_is_printed_with_the_results() -> None:
    result = evaluate(*BOOM, "--max-fr", 30, "--max-fa-per-hour", 300, "--limits-on", "estimate")
    assert result.stdout.splitlines()[1:] == [
        "Limits: FAIL (1 of 2 limits met)",
        "  false accepts per hour ≤ 300: found 360, fails",
        "  false rejects ≤ 30 %: found 25.0 %, holds, but its interval crosses the limit",
    ]
    assert "Limits" not in evaluate(*BOOM, "--force").stdout


@pytest.mark.usefixtures("loud")
def test_junit_of_an_evaluation_without_limits_has_the_case_of_the_run(here: Path) -> None:
    evaluate("-t", "loudness:boom", "--oov", "o.txt", "--junit", "j.xml")
    cases = list(ElementTree.parse(here / "j.xml").getroot().iter("testcase"))
    assert cases[0].get("name") == "run"
    assert len(cases[0]) == 1  # its output, and no reason


def test_unusable_files_are_reported_and_left_out_of_all_figures(loud: Sounds, here: Path) -> None:
    whole = evaluate(*BOOM, "-l", "whole.log").stdout
    bad = [
        loud("rate.wav", 3, rate_hz=48_000),
        loud("short.wav", 0.5),
        loud("empty.wav", 0),
        loud("abort.wav", 3, wrong=Wrong.ABORT),
        loud("refuse.wav", 3, wrong=Wrong.REFUSE),
    ]
    noise = file_with(here / "noise.wav", b"RIFF" + bytes(range(200)))
    with (here / "i.txt").open("a") as inv_list:
        inv_list.writelines(f"{file}\n" for file in [*bad, noise, here / "gone.wav", bad[0], here / "sounds/out.wav"])
    result = evaluate(*BOOM, "-l", "bad.log", "-j", 2)
    assert result.exit_code == 3, result.output
    log = (here / "bad.log").read_text()
    reasons = dict(re.findall(r'^REJECT ".*/(\w+\.wav)" ([a-z -]+?)(?: x-detail=.*)?$', log, re.M))
    # rate.wav comes twice, and the second line counts here.
    assert reasons == {
        "rate.wav": "listed twice",
        "short.wav": "shorter than the lead-in",
        "empty.wav": "empty",
        "abort.wav": "engine crash",
        "refuse.wav": "engine error",
        "noise.wav": "unreadable",
        "gone.wav": "unreadable",
        "out.wav": "listed in both lists",
    }
    assert re.search(r'^REJECT ".*/rate.wav" wrong rate', log, re.M)
    assert len(re.findall(r"^ERROR ", log, re.M)) == 2
    assert "INFO rejected-files 10\n" in log
    assert re.search(r"10 files rejected: .*1 wrong rate \(--resample accepts them\)", result.stderr)
    assert re.search(r"The REJECT lines of \S+\.log list each; the first is \S+\.wav: ", result.stderr)
    assert "2 errors: the ERROR lines of the log say what went wrong" in result.stderr
    assert re.search(
        r"went wrong \(\S+\.log\)\. The first is \S+abort\.wav: the engine was ended by SIGABRT", result.stderr
    )
    # The out-of-vocabulary file stands in both lists by now, and is out; the in-vocabulary figures are as before.
    assert re.findall(r"25\.00% FR, 3 TA", result.stdout) == re.findall(r"25\.00% FR, 3 TA", whole) != []
    assert " 0 FA n/a/hr" in result.stdout
    assert differences(read(log)) == ()


def test_file_rejected_for_lack_of_an_option_makes_result_undecided(loud: Sounds, here: Path) -> None:
    with (here / "i.txt").open("a") as inv_list:
        inv_list.write(f"{loud('rate.wav', 3, rate_hz=48_000)}\n")
    limited = (*BOOM, "--max-fr", 100, "--html", "page.html", "--force")
    result = evaluate(*limited)
    assert result.exit_code == 3, result.output
    assert "UNDECIDED" in result.stdout
    assert re.search(r"1 file rejected: 1 wrong rate .* the first is \S*rate\.wav: 48000 Hz", result.stderr), (
        result.stderr
    )
    assert "1 file rejected: 1 wrong rate" in (here / "page.html").read_text("utf-8")
    assert re.search(r"to evaluate the rejected files too: harness .*--resample --force\n", result.stderr), (
        result.stderr
    )
    resampled = evaluate(*limited, "--resample")
    assert (resampled.exit_code, "rejected" in resampled.stderr) == (0, False), resampled.output


@pytest.mark.usefixtures("loud")
def test_a_log_is_replaced_only_when_that_is_asked_for(here: Path) -> None:
    assert evaluate(*BOOM).exit_code == 0
    before = (here / "loudness-boom.log").read_bytes()
    message = refused("evaluate", *BOOM)
    assert (
        "loudness-boom.log: this file already exists. Replace it with --force, or choose another log with -l" in message
    )
    lines = refused("evaluate", *BOOM, "--in", "nowhere").splitlines()
    assert lines[0].startswith("nowhere: there is no such file or folder")
    assert lines[1].startswith("loudness-boom.log: this file already exists")
    assert (here / "loudness-boom.log").read_bytes() == before
    assert evaluate(*BOOM, "--force").exit_code == 0
    assert evaluate(*BOOM, "--resume").exit_code == 0  # nothing is left to be done
    assert "belongs to a different evaluation" in refused("evaluate", *BOOM, "-u", "--resume")
    (here / "precious.txt").write_text("a letter\n")
    assert "not a wake-evaluation log" in refused("evaluate", *BOOM, "-l", "precious.txt", "--force")
    assert "both an input and an output" in refused("evaluate", *BOOM, "-l", "i.txt", "--force")
    assert (here / "precious.txt").read_text() == "a letter\n"


@pytest.mark.usefixtures("loud")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-t", "loudness:boom"], "no recordings are given"),
        ([*BOOM, "-c", "i.txt"], "-c cannot be used with -i, --in or --long"),
        ([*BOOM, "-w"], "-w needs -c"),
        (["-t", "loudness:boom", "-c", "i.txt", "-w", "-u"], "-u cannot be used with -w"),
        ([*BOOM, "-s", "operating-pint=10"], "Did you mean 'operating-point'?"),
        ([*BOOM, "-s", "operating-point=21"], "it must be at most 20"),
        ([*BOOM, "-s", "operating-point"], "Use -s setting=value"),
        ([*BOOM, "-f", "operating-point", "gone.txt"], "cannot be read as the setting operating-point"),
        ([*BOOM, "-f", "operating-point", "i.txt"], "operating-point cannot be"),
        ([*BOOM, "-s", "threshold=0.5", "-s", "operating-point=3"], "threshold and operating-point are both set"),
        (["-t", "loudness:boom", "-i", "gone.txt"], "gone.txt: this list cannot be read"),
        (["-t", "loudness:boom", "-i", "i.txt", "--max-fa-per-hour", "1"], "needs out-of-vocabulary files"),
        ([*BOOM, "--max-wer", "5%"], "--max-wer needs transcripts"),
        ([*BOOM, "--resume", "--force"], "Remove --resume or --force"),
        ([*BOOM, "--continuous", "--shard", "1/2"], "--continuous cannot be used with --shard"),
        ([*BOOM, "-l", "nowhere/x.log"], "mkdir -p nowhere"),
        (["-t", "what is this", "-i", "i.txt"], "is neither an engine nor a model file"),
    ],
)
def test_wrong_usage_is_refused_before_any_audio_is_read(here: Path, arguments: list[str], message: str) -> None:
    assert message in refused("evaluate", *arguments)


@pytest.mark.parametrize(
    ("task", "program"),
    [("livekit:house.onnx", "livekit_engine.py FILE.onnx"), ("house.gram", "grammar_engine.py FILE.gram")],
)
def test_an_engine_that_was_removed_names_the_program_that_replaces_it(here: Path, task: str, program: str) -> None:
    error = harness("evaluate", "-t", task, "-i", "i.txt").exception
    assert isinstance(error, PluginError)
    assert error.exit_code == 2
    assert f"process:python3 examples/{program}" in error.remedy
    assert not list(here.glob("*.log*"))


def test_an_unknown_engine_is_named_also_if_its_model_looks_like_a_file(here: Path) -> None:
    error = harness("evaluate", "-t", "vosk2:model-0.15", "-i", "i.txt").exception
    assert isinstance(error, PluginError)
    assert "Did you mean 'vosk'?" in error.remedy


@pytest.mark.usefixtures("loud")
def test_the_last_of_a_setting_wins_and_the_lead_in_can_be_set(here: Path) -> None:
    settings = ("-s", "operating-point=21", "-s", "operating-point=12", "-s", "min-in-vocab-duration=1600")
    assert evaluate(*BOOM, *settings, "--lead-in-ref", "start").exit_code == 0
    log = read((here / "loudness-boom.log").read_text())
    assert (log.about("operating-point"), log.about("x-lead-in-ms")) == ("12", "1600")
    assert dict(log.totals)["TACOUNT"] == 0  # all of them are heard at 1.5 s
    assert log.about("x-lead-in-ref") == "start"


@pytest.mark.usefixtures("loud")
def test_phrases_can_be_told_apart_by_references_and_come_before_other_audio(here: Path) -> None:
    files = (here / "i.txt").read_text().split()
    (here / "boom.txt").write_text("Boom!\n")
    (here / "bang.txt").write_text("bang\n")
    (here / "c.csv").write_text(
        "".join(f"{file},{'bang' if number == 1 else 'boom'}.txt\n" for number, file in enumerate(files))
    )
    result = succeeded(evaluate("-t", "loudness:boom", "-c", "c.csv", "--oov", "o.txt", "-n", "-j", 2))
    assert " 2 FA 360.00/hr, 50.00% FR, 2 TA," in result.stdout
    log = (here / "loudness-boom.log").read_text()
    keys = re.findall(r"^(?:CMD|OOV|INV)[A-Z]{2}", log, re.M)
    assert keys == ["CMDTA", "CMDSB", "CMDFR", "CMDTA", "OOVFA", "OOVFA"]
    assert differences(read(log)) == ()


@pytest.mark.usefixtures("loud")
def test_progress_is_drawn_on_a_terminal_and_nowhere_else() -> None:
    command = [*COMMAND, "evaluate", *BOOM]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert piped.stderr == ""
    for term, drawn in (("xterm", True), ("dumb", False)):
        ours, theirs = pty.openpty()
        environment = os.environ | {"TERM": term}
        with subprocess.Popen(
            [*command, "--force"], stdout=subprocess.DEVNULL, stderr=theirs, env=environment
        ) as child:
            os.close(theirs)
            shown = b""
            while piece := _read(ours):
                shown += piece
        os.close(ours)
        assert child.returncode == 0, shown
        assert (b"of 5 files" in shown) == drawn
        assert shown.endswith(b"\r\x1b[K") == drawn  # the line goes when all is done


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end has closed
        return b""


MODEL = "microwakeword:alexa"


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
    lines, dev = ("-i", "inv.txt", "--oov", "oov.txt"), ("--dev-inv", "dev-inv.txt", "--dev-oov", "dev-oov.txt")
    result = succeeded(
        harness("evaluate", "-t", MODEL, *lines, "-u", "-l", "a.log", "--sweep", "--twv", *dev, "--target-fr", "0")
    )
    summary = json.loads(Path("a.det.json").read_text())
    assert summary["choice"]["one_list"] is False
    assert summary["choice"]["chosen"]["fr"] == 0
    assert "on the development list:" in result.output
    assert "on the reported list:" in result.output
    assert re.search(r"^MTWV -?[\d.]+ at threshold", result.output, re.M)
    for ending, first in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert Path(f"a.det.{ending}").read_bytes().startswith(first)
    assert re.search(r">as run: threshold 0\.\d+</text>", Path("a.det.svg").read_text())
    rows = list(csv.DictReader(Path("a.det.csv").read_text().splitlines()))
    assert [row["operating_point"] for row in rows if row["operating_point"]] == [str(n) for n in range(1, 21)]
    assert sum(row["chosen"] == "yes" for row in rows) == 1
    point_10 = next(point for point in summary["operating_points"] if point["operating_point"] == 10)
    chosen = summary["choice"]["reported"]
    assert len({point["false_accepts"] for point in summary["operating_points"]}) > 1
    # A threshold that was recommended is a setting that gives back the same counts.
    second = harness("evaluate", "-t", MODEL, *lines, "-u", "-l", "b.log", "--cache", "a.log.scores", "-s",
                    f"threshold={chosen['threshold']}")  # fmt: skip
    assert second.exit_code == 0, second.output
    for name, expected in (("a.log", point_10), ("b.log", chosen)):
        log = Path(name).read_text()
        assert f"\nFACOUNT {expected['false_accepts']}\n" in log
        assert float(re.findall(r"^FRCOUNT (\S+)", log, re.M)[0]) == expected["false_rejects"]
        assert float(re.findall(r"^FARATE (\S+)", log, re.M)[0]) == pytest.approx(expected["fa_per_hour"], abs=1e-4)
    compared = succeeded(harness("compare", "a.log", "b.log", "--cluster-by", r"inv(\d)", "--csv", "differing.csv"))
    assert "McNemar" in compared.output
    assert "the same audio" in compared.output
    assert "Warning" not in compared.output


def test_what_cannot_be_swept_is_refused_before_any_audio_is_read(sounds: Sounds) -> None:
    Path("oov.txt").write_text(f"{sounds('a.wav', 2.0, [1.5])}\n")
    evaluate = ("evaluate", "-t", MODEL, "--oov", "oov.txt")
    assert "Add --sweep" in refused(*evaluate, "--target-fr", "5")
    assert "Use both -i (or --in) and --oov (or --out)" in refused(*evaluate, "--sweep", "--target-fr", "5")
    assert "only one target" in refused(*evaluate, "--sweep", "--target-fr", "5", "--target-fa-per-hour", "1")
    assert "--dev-inv and --dev-oov" in refused(
        *evaluate, "--sweep", "--target-fr", "5", "--dev-inv", "oov.txt"
    )  # fmt: skip
    assert "each file must start with a new engine state" in refused(*evaluate, "--sweep", "--continuous")
    assert "whole lists" in refused(*evaluate, "--sweep", "--shard", "1/2")
    assert "does not exist" in refused(*evaluate, "--sweep", "nowhere/det")
    dev = ("--dev-inv", "gone.txt", "--dev-oov", "oov.txt", "--target-fr", "5")
    assert "gone.txt" in refused(*evaluate, "--sweep", *dev)
    assert "reports no scores" in refused("evaluate", "-t", "pocketsphinx:hey jarvis", "--oov", "oov.txt", "--sweep")
    assert not list(Path().glob("*.log*"))


@pytest.mark.usefixtures("loudness_plugin")
def test_a_development_file_that_cannot_be_read_sets_the_status_as_any_other_does(sounds: Sounds) -> None:
    for name, files in {
        "inv": [sounds("a.wav", 3.0, [1.5])],
        "oov": [sounds("b.wav", 3.0)],
        "dev-inv": [sounds("c.wav", 4.0, [1.5]), Path("gone.wav")],
    }.items():
        list_of(Path(f"{name}.txt"), files)
    Path("dev-oov").mkdir()
    sounds("d.wav", 4.0).rename("dev-oov/d.wav")
    dev = ("--dev-inv", "dev-inv.txt", "--dev-oov", "dev-oov", "--target-fr", "0", "--no-picture")
    result = harness(
        "evaluate", "-t", "loudness:boom", "-i", "inv.txt", "--oov", "oov.txt", "-l", "a.log", "--sweep", *dev
    )
    assert result.exit_code == 3, result.output
    assert "1 development file rejected: 1 unreadable" in result.output
    assert "Chosen: threshold" in result.output
    assert Path("a.log").exists()


@pytest.mark.usefixtures("loudness_plugin")
def test_development_files_come_from_a_manifest_and_one_without_a_usable_file_is_refused(sounds: Sounds) -> None:
    list_of(Path("inv.txt"), [sounds("a.wav", 3.0, [1.5])])
    list_of(Path("oov.txt"), [sounds("b.wav", 3.0)])
    Path("dev-inv.csv").write_text(f"audio,talker,rate\n{sounds('c.wav', 4.0, [1.5])},ann,16000\n")
    Path("dev-oov.csv").write_text(f"audio,talker,rate\n{sounds('d.wav', 4.0)},,16000\n")
    command = ("evaluate", "-t", "loudness:boom", "-i", "inv.txt", "--oov", "oov.txt", "-l", "a.log", "--force",
               "--sweep", "--target-fr", "0", "--no-picture", "--dev-inv", "dev-inv.csv", "--dev-oov")  # fmt: skip
    result = succeeded(harness(*command, "dev-oov.csv"))
    assert "Chosen: threshold" in result.output
    assert "rejected" not in result.output
    Path("gone.txt").write_text("gone.wav\n")
    result = harness(*command, "gone.txt")
    assert "no file of --dev-oov could be used, so no point can be chosen" in str(result.exception)
    assert "No threshold meets" not in result.output


def test_damaged_stored_scores_are_reported_and_recomputed(sounds: Sounds) -> None:
    files = [sounds(f"{name}.wav", 4.0, [1.5]) for name in ("a", "bb")]
    list_of(Path("oov.txt"), files)
    evaluate = ("evaluate", "-t", MODEL, "--oov", "oov.txt", "--sweep", "det", "--force", "-l", "a.log")
    assert harness(*evaluate).exit_code == 0
    before = Path("det.csv").read_text()
    damaged, removed = Path("a.log.scores").rglob("*.scores")
    content = bytearray(damaged.read_bytes())
    content[-20] ^= 1
    damaged.write_bytes(content)
    removed.unlink()
    second = succeeded(harness(*evaluate))
    assert second.output.count("computed again") == 1
    assert Path("det.csv").read_text() == before
    assert damaged.read_bytes() != bytes(content)
    assert removed.exists()
