"""`harness score`, as a user types it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import group, streams
from harness.model.choices import AlignmentSelection
from harness.model.errors import HarnessError, InputError
from harness.transcripts.reports.text import report
from tests.command import succeeded
from tests.files import file_with
from tests.unit.transcripts.reports.scorings import HOSTILE, every_sort, reported

REFERENCE = "show me the flights (amy_1)\nto Boston (amy_2)\n(bob_1)\nnever heard (bob_2)\n"
TOO_LONG = f"{'a' * 300}.trn"
HYPOTHESIS = "show me flights (amy_1)\nto boston (amy_2)\nuh (bob_1)\nwoof (dog_1)\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    reference, hypothesis = tmp_path / "ref.trn", tmp_path / "hyp.trn"
    reference.write_text(REFERENCE, encoding="utf-8")
    hypothesis.write_text(HYPOTHESIS, encoding="utf-8")
    return reference, hypothesis


def harness(*arguments: str | Path, stdin: str | bytes = "") -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(group, ["score", *map(str, arguments)], input=stdin)


def refused(result: Result) -> InputError:
    """The error of wrong input, whose status is 2."""
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    return result.exception


def test_files_with_different_utterances_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    other = file_with(tmp_path / "other.trn", "show me the flights (amy-1\u202e)\n")
    error = refused(harness("-r", files[0], "-H", other))
    assert error.what == f"no hypothesis matches a reference: {other} has amy-1\\u202e, {files[0]} has amy_1"
    assert "spell their ids the same way" in error.remedy
    assert harness("-r", files[0], "-H", files[1]).stderr == ""


def test_like_sclite_drops_what_has_no_hypothesis_and_the_case(files: tuple[Path, Path]) -> None:
    result = harness("-r", files[0], "-H", files[1], "--like-sclite")
    assert "Sum / avg          3      6     83.3  0.0  16.7  16.7  33.3      66.7" in result.stdout.splitlines()
    assert "missing hypotheses   1 (bob_2); left out" in result.stdout
    assert "normalisation        verbatim, A-Z without case" in result.stdout


def test_alignments_and_confusions_come_before_the_summary(files: tuple[Path, Path]) -> None:
    errors = harness("-r", files[0], "-H", files[1], "--alignments", "--confusions", "1").stdout
    assert "HYP:  show me *** flights" in errors
    assert "deleted words: 3 in all, 3 different\n  1  heard\n  … and 2 more" in errors
    assert errors.index("id: amy_1") < errors.index("substitution pairs") < errors.index("speaker    sentences")
    folded = "-r", files[0], "-H", files[1], "--like-sclite"
    assert "amy_2" not in harness(*folded, "--alignments").stdout
    assert "amy_2" in harness(*folded, "--alignments", "all").stdout
    assert "… and" not in harness(*folded, "--confusions").stdout


def test_json_names_the_files_read(files: tuple[Path, Path], tmp_path: Path) -> None:
    target = file_with(tmp_path / "out.json", "old")
    result = harness("-r", files[0], "-H", files[1], "--json", target)
    report = json.loads(target.read_text(encoding="ascii"))
    assert "Sum / avg" in result.stdout
    assert [utterance["path"] for utterance in report["utterances"]] == ["CCDC", "CS", "I", "DD"]
    assert report["hypothesis"] == {
        "file": str(files[1]),
        "format": "trn",
        "encoding": "utf-8",
        "sha256": hashlib.sha256(HYPOTHESIS.encode()).hexdigest(),
    }
    alone = harness("-r", files[0], "-H", files[1], "--json", "-")
    assert json.loads(alone.stdout) == report
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hyp.trn", "out.json", "ref.trn"]


def test_a_page_on_standard_output_is_the_only_output(files: tuple[Path, Path]) -> None:
    result = succeeded(harness("-r", files[0], "-H", files[1], "--html", "-"))
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("limit", "status"), [("0.62", 1), ("62%", 1), ("0.625", 0), ("62.5 %", 0), ("1", 0), ("200%", 0), ("0", 1)]
)
def test_a_limit_decides_the_status(files: tuple[Path, Path], limit: str, status: int) -> None:
    result = harness("-r", files[0], "-H", files[1], "--max-wer", limit)
    assert result.exit_code == status
    assert ("fails" in result.stderr) == (status == 1)


def test_a_percentage_limit_equals_its_decimal(tmp_path: Path) -> None:
    """The float 0.7 / 100 is below 0.007."""
    reference, heard = tmp_path / "r.trn", tmp_path / "h.trn"
    reference.write_text("a " * 1000 + "(s_1)\n", encoding="utf-8")
    heard.write_text("b " * 7 + "a " * 993 + "(s_1)\n", encoding="utf-8")
    assert harness("-r", reference, "-H", heard, "--max-wer", "0.7%").exit_code == 0
    assert harness("-r", reference, "-H", heard, "--max-wer", "0.69%").exit_code == 1


def test_no_limit_allows_a_rate_over_nothing(tmp_path: Path) -> None:
    path = file_with(tmp_path / "empty.trn", "(a_1)\n")
    assert harness("-r", path, "-H", path).exit_code == 0
    result = harness("-r", path, "-H", path, "--max-wer", "1")
    assert result.exit_code == 1
    assert "no data" in result.stderr


@pytest.mark.parametrize("limit", ["8", "nan", "inf", "-0.1", "-1%", "eight", "%", ""])
def test_invalid_limit_is_refused(files: tuple[Path, Path], limit: str) -> None:
    assert harness("-r", files[0], "-H", files[1], f"--max-wer={limit}").exit_code == 2


def test_characters_are_named_wherever_they_are_counted(files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("-r", files[0], "-H", files[1], "-H", files[0], "--unit", "char", "--confusions", "--html", page)
    result = succeeded(harness(*arguments))
    for text in (result.stdout, page.read_text(encoding="utf-8")):
        assert "CER" in text
        assert "characters" in text
        assert "WER" not in text
    assert "harness: CER of" in harness(*arguments, "--max-wer", "0").stderr


@pytest.mark.parametrize("option", [["--optional-words"], ["--fragments"], ["--normalise", "expanded_snor"]])
def test_word_options_are_refused_with_unit_char(files: tuple[Path, Path], option: list[str]) -> None:
    error = refused(harness("-r", files[0], "-H", files[1], "--unit", "char", *option))
    assert error.what == f"{' '.join(option)} applies to whole words, not to --unit char"


def test_one_file_may_come_from_standard_input(files: tuple[Path, Path]) -> None:
    whole = json.loads(harness("-r", files[0], "-H", files[1], "--json", "-").stdout)
    piped = harness("-r", "-", "--reference-format", "trn", "-H", files[1], "--json", "-", stdin=REFERENCE)
    assert json.loads(piped.stdout) | {"reference": None} == whole | {"reference": None}
    assert json.loads(piped.stdout)["reference"]["file"] == "<stdin>"
    assert json.loads(piped.stdout)["reference"]["sha256"] == whole["reference"]["sha256"]
    heard = harness("-r", files[0], "-H", "-", "-H", files[1], "--hypothesis-format", "trn", stdin=HYPOTHESIS)
    assert "system: <stdin>" in heard.stdout
    assert "one file" in refused(harness("-r", "-", "-H", "-")).what
    assert refused(harness("-r", "-", "-H", files[1])).place is not None


def test_mistakes_on_standard_input_name_their_line() -> None:
    bad = "fine (a_1)\nno id at all\nfine (a_1)\n"
    error = refused(
        harness("-r", "-", "--reference-format", "trn", "-H", __file__, "--hypothesis-format", "csv", stdin=bad)
    )
    assert "<stdin>:2:" in str(error)
    assert "<stdin>:3:" in str(error)
    assert "/tmp" not in str(error)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"caf\xe9 (a_1)\n", b"nul \x00 (a_1)\n", b"x (a_1)\ny (A_1)\n", b"x (a_1\n", b"x\n"]
)
def test_broken_files_are_refused_with_their_name(files: tuple[Path, Path], tmp_path: Path, content: bytes) -> None:
    bad = file_with(tmp_path / "bad.trn", content)
    for arguments in (("-r", bad, "-H", files[1]), ("-r", files[0], "-H", bad)):
        assert str(bad) in str(refused(harness(*arguments)))


def test_wrong_usage_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    arguments = "-r", files[0], "-H", files[1]
    assert harness().exit_code == harness("-r", files[0]).exit_code == 2
    for wrong in (
        ("-r", tmp_path / "none.trn", "-H", files[1]),
        ("-r", tmp_path, "-H", files[1]),
        ("-r", files[0], "-H", tmp_path),
        (*arguments, "--reference-format", "stm"),
        (*arguments, "--encoding", "klingon"),
        (*arguments, "--normalise", "nosuch"),
        (*arguments, "--normalise", tmp_path / "none.yaml"),
        (*arguments, "--by", "nosuch"),
        (*arguments, "--json", files[0]),
        (*arguments, "--html", files[1]),
        (*arguments, "--json", "x", "--html", "x"),
        ("-r", TOO_LONG, "-H", files[1]),
        (*arguments, "--groups", TOO_LONG),
        (*arguments, "--normalise", f"{TOO_LONG}.yaml"),
    ):
        refused(harness(*wrong))
    assert "Usage" in harness("--help").stdout


def test_a_target_that_cannot_be_written_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    targets = tmp_path, tmp_path / "no" / "such", tmp_path / TOO_LONG, tmp_path / "circle"
    for option, target in [*product(["--json"], targets), *product(["--html"], targets[:3])]:
        result = harness("-r", files[0], "-H", files[1], option, target)
        assert isinstance(result.exception, HarnessError)
        assert result.exception.exit_code == (2 if target.parent.name == "no" else 3)  # refused before anything is read
        assert str(target) in str(result.exception)


def test_normalisation_speaker_and_format_options_are_applied(files: tuple[Path, Path], tmp_path: Path) -> None:
    sro, word_list = tmp_path / "ref.sro", tmp_path / "home.yaml"
    sro.write_text("<show> me [uh] the fli- flights. (amy_1)\nto boston (amy_2)\n(bob_1)\n", encoding="utf-8")
    word_list.write_text("normalisation: home\nbase: plain\nsame: [[me the, me]]\n", encoding="utf-8")
    assert "normalisation        snor" in harness("-r", sro, "-H", files[1]).stdout
    as_hypothesis = harness("-r", files[0], "-H", sro, "-H", files[1]).stdout
    assert as_hypothesis.count("normalisation        snor") == 2
    assert "5 of 8" in harness("-r", files[0], "-H", files[1], "--normalise", "verbatim").stdout
    assert "4 of 8" in harness("-r", files[0], "-H", files[1], "--normalise", "plain").stdout
    with_list = harness("-r", files[0], "-H", files[1], "--normalise", word_list)
    assert "normalisation        home" in with_list.stdout
    assert "3 of 7" in with_list.stdout
    single = harness("-r", files[0], "-H", files[1], "--by", "none").stdout
    assert "(no speaker)" in single


@pytest.mark.parametrize(
    ("options", "names", "wer"),
    [
        ((), "verbatim", "2 of 3"),
        (("--optional-words",), "verbatim, optional words", "1 of 3"),
        (("--fragments", "--like-sclite"), "verbatim, A-Z without case, fragments", "1 of 3"),
        (("--optional-words", "--marks", "none"), "verbatim, no marks", "2 of 3"),
    ],
)
def test_applied_normalisations_are_named_beside_the_figures(
    options: tuple[str, ...], names: str, wer: str, tmp_path: Path
) -> None:
    reference, hypothesis = tmp_path / "ref.trn", tmp_path / "hyp.trn"
    reference.write_text("turn (uh) kitch- (a_1)\n", encoding="utf-8")
    hypothesis.write_text("turn kitchen (a_1)\n", encoding="utf-8")
    result = harness("-r", reference, "-H", hypothesis, *options)
    assert f"normalisation        {names}\n" in result.stdout
    assert f" {wer} = " in result.stdout


def test_hostile_text_reaches_no_terminal(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.trn", "show \u202eme\u200b (\u202eamy\u200b_1)\n")
    result = succeeded(harness("-r", path, "-H", path, "--alignments", "all", "--confusions"))
    assert all(line.isprintable() for line in result.stdout.splitlines())
    lines = report(reported(every_sort(HOSTILE)), AlignmentSelection.ALL, 0, 100, colour=False)
    assert all(line.isprintable() for line in lines)


def test_a_reader_that_stops_early_is_not_an_error(tmp_path: Path) -> None:
    path = file_with(tmp_path / "many.trn", "".join(f"one two ({'x' * 40}{n}_1)\n" for n in range(1500)))
    command = [sys.executable, "-c", "from harness.cli import main; main()", "score", "-r", path, "-H", path]
    for more in (["--alignments", "all"], ["--json", "-"]):
        with subprocess.Popen([*map(str, command), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            assert len(running.stdout.read(10)) == 10
            running.stdout.close()
            assert running.stderr.read() == b""
            assert running.wait(60) == 0


def test_a_full_disk_is_reported(files: tuple[Path, Path]) -> None:
    command = [sys.executable, "-c", "from harness.cli import main; main()", "score", "-r", files[0], "-H", files[1]]
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run(list(map(str, command)), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 3
    assert result.stderr.startswith("harness: standard output cannot be written: No space left")


class Terminal:
    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
    ],
)
def test_colour_is_printed_only_on_terminals_that_allow_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert streams.uses_colour(Terminal(terminal)) is coloured  # type: ignore[arg-type]


def test_json_is_streamed_into_a_pipe(files: tuple[Path, Path], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert harness("-r", files[0], "-H", files[1], "--json", pipe).exit_code == 0
        assert reader.stdout is not None
        assert json.loads(reader.stdout.read())["totals"]["words"] == 8
    assert pipe.is_fifo()


LIST = "id,voice,level_dbfs\nAMY_1,amy,-26\namy_2,amy,-8\nbob_1,bob,-26\nzed_1,zed,-8\n"


@pytest.fixture
def grouped(tmp_path: Path) -> list[str]:
    """Reference, hypothesis, and list; the reference bob_2 has no row, and zed_1 is neither said nor heard."""
    texts = {
        "ref.trn": "show me the flights (amy_1)\nto boston (amy_2)\nnever mind (bob_1)\nstop (bob_2)\n",
        "hyp.trn": "show me flights (amy_1)\nto boston (amy_2)\nnever mind it (bob_1)\nstop (bob_2)\n",
        "groups.csv": LIST,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [str(tmp_path / name) for name in texts]


def test_json_names_the_groups_list_and_its_hash(grouped: list[str]) -> None:
    result = harness("-r", grouped[0], "-H", grouped[1], "--groups", grouped[2], "--json", "-")
    report = json.loads(result.stdout)
    digest = hashlib.sha256(LIST.encode()).hexdigest()
    assert report["groups_file"] == {"file": grouped[2], "format": "csv", "encoding": "utf-8", "sha256": digest}
    assert [(row["value"], row["words"]) for row in report["groups"][0]["values"]] == [
        ("amy", 6),
        ("bob", 2),
        (None, 1),
    ]
    assert (report["without_group"], report["groups_of_no_utterance"]) == (["bob_2"], ["zed_1"])
    piped = json.loads(harness("-r", grouped[0], "-H", grouped[1], "--groups", "-", "--json", "-", stdin=LIST).stdout)
    assert piped["groups_file"]["file"] == "<stdin>"
    assert piped["groups"] == report["groups"]


def test_segment_labels_and_list_columns_are_both_groups(tmp_path: Path) -> None:
    stm, ctm, groups = (tmp_path / name for name in ("r.stm", "h.ctm", "g.csv"))
    stm.write_text(
        ';; CATEGORY "0" "Sex" ""\n;; LABEL "M" "Male" ""\nf A bob 0 1 <M> one\nf A ann 1 2 <f> two\n', encoding="utf-8"
    )
    ctm.write_text("f A 0.1 0.1 one\n", encoding="utf-8")
    groups.write_text("id,room\nbob-000,lab\nann-000,hall\n", encoding="utf-8")
    result = harness("-r", str(stm), "-H", str(ctm), "--groups", str(groups), "--cross", "Sex,room")
    lines = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("by ")] == ["by room", "by Sex"]
    assert any(line.startswith("Male") and line.endswith("0.0") for line in lines)
    alone = harness("-r", str(stm), "-H", str(ctm), "--json", "-")
    assert [grouping["by"] for grouping in json.loads(alone.stdout)["groups"]] == ["Sex"]


def test_names_of_audio_files_keep_their_case(tmp_path: Path) -> None:
    for name, text in (("r.csv", "a.wav,x\nA.wav,y\n"), ("h.csv", "a.wav,x\nA.wav,z\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "g.csv").write_text("id,room\nA.wav,hall\na.wav,lab\n", encoding="utf-8")
    grouped = [str(tmp_path / name) for name in ("r.csv", "h.csv", "g.csv")]
    result = harness("-r", grouped[0], "-H", grouped[1], "--groups", grouped[2], "--json", "-")
    values = json.loads(result.stdout)["groups"][0]["values"]
    assert [(row["value"], row["substitutions"]) for row in values] == [("hall", 1), ("lab", 0)]


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        (("--cross", "voice,levle_dbfs"), "--cross: there is no grouping 'levle_dbfs'"),
        (("--cross", "voice,levle_dbfs"), "Did you mean 'level_dbfs'?"),
        (("--json", "groups.csv"), "this file is both an input and an output"),
        (("--groups", "other.csv"), "no id in this list matches a reference"),
        (("--groups", "none.csv"), "there is no such file"),
        (("--groups", "broken.csv"), "broken.csv:3:1: 3 fields, but the header has 2"),
    ],
)
def test_invalid_groups_file_is_reported(
    grouped: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, str], wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("id,voice\nx_1,amy\n", encoding="utf-8")
    (tmp_path / "broken.csv").write_text("id,voice\namy_1,amy\nbob_1,bob,-26\n", encoding="utf-8")
    result = harness("-r", grouped[0], "-H", grouped[1], "--groups", grouped[2], *more)
    assert isinstance(result.exception, InputError), result.output
    assert wrong in str(result.exception)


def test_a_list_and_its_texts_are_of_one_language(tmp_path: Path) -> None:
    (tmp_path / "r.trn").write_text("im Bad 2 mal (a_1)\n", encoding="utf-8")
    (tmp_path / "h.trn").write_text("in dem Bad zweimal (a_1)\n", encoding="utf-8")
    pairs = "normalisation: bad\nbase: spoken\nsame: [[im, in dem], [zweimal, 2 mal]]\n"
    (tmp_path / "bad.yaml").write_text(pairs, encoding="utf-8")
    files = ("-r", str(tmp_path / "r.trn"), "-H", str(tmp_path / "h.trn"))
    result = harness(*files, "--normalise", str(tmp_path / "bad.yaml"), "--language", "de", "--json", "-")
    assert json.loads(result.stdout)["wer"] == 0
    assert "--language needs --normalise spoken" in str(refused(harness(*files, "--language", "de")))


def test_crossing_needs_two_groups(grouped: list[str]) -> None:
    result = harness("-r", grouped[0], "-H", grouped[1], "--cross", "voice,level_dbfs")
    assert isinstance(result.exception, InputError)
    assert "--groups FILE.csv" in str(result.exception)
    for wrong in ("voice", "voice,voice", "voice,", "a,b,c"):
        assert harness("-r", grouped[0], "-H", grouped[1], "--groups", grouped[2], "--cross", wrong).exit_code == 2
    twice = harness("-r", grouped[0], "-H", "-", "--groups", "-")
    assert isinstance(twice.exception, InputError)


def test_a_cross_without_utterances_is_empty(grouped: list[str], tmp_path: Path) -> None:
    (tmp_path / "r.trn").write_text("one (amy_1)\n", encoding="utf-8")
    (tmp_path / "h.trn").write_text("", encoding="utf-8")
    files = ("-r", str(tmp_path / "r.trn"), "-H", str(tmp_path / "h.trn"), "--like-sclite", "--json", "-")
    result = harness(*files, "--groups", grouped[2], "--cross", "voice,level_dbfs")
    assert json.loads(result.stdout)["crossed"][0]["cells"] == []


DOCS = Path(__file__).parents[3] / "docs"
HOW_TO = (DOCS / "how-to" / "score-transcripts.md").read_text(encoding="utf-8")
SCORING = (DOCS / "reference" / "scoring.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", HOW_TO, re.DOTALL | re.MULTILINE)
EXAMPLES = [text.removeprefix("$ ").partition("\n") for kind, text in BLOCKS if kind == "console"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the page shows: reference and hypothesis side by side, another hypothesis, a list."""
    block, other = [text for kind, text in BLOCKS if not kind and "(ann_1)" in text]
    columns = [re.split(r" {2,}", line) for line in block.splitlines()]
    (conditions,) = [text for kind, text in BLOCKS if kind == "csv"]
    files = {
        "ref.trn": "".join(f"{row[0]}\n" for row in columns),
        "hyp.trn": "".join(f"{row[1]}\n" for row in columns if len(row) > 1),
        "hyp2.trn": other,
        "conditions.csv": conditions,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    program = file_with(
        tmp_path / "bin" / "harness",
        f'#!/bin/sh\nexec {sys.executable} -c "from harness.cli import main; main()" "$@"\n',
    )
    program.chmod(0o755)
    return tmp_path


def printed(folder: Path, command: str) -> str:
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    environment.pop("COLUMNS", None)
    ran = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert not ran.stderr
    return ran.stdout


def test_the_documentation_has_examples_of_score() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize(("command", "expected"), [(command, text) for command, _, text in EXAMPLES])
def test_documentation_examples_match_the_output(folder: Path, command: str, expected: str) -> None:
    assert command.startswith("harness score ")
    assert printed(folder, command).splitlines() == expected.splitlines()


def keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from keys(value)
    elif isinstance(node, list):
        for child in node:
            yield from keys(child)


def test_every_key_of_the_json_is_named(folder: Path) -> None:
    options = "--groups conditions.csv --cross noise,level_dbfs --json -"
    report = json.loads(printed(folder, f"harness score -r ref.trn -H hyp.trn -H hyp2.trn {options}"))
    assert [key for key in dict.fromkeys(keys(report)) if f"`{key}`" not in SCORING] == []


def test_speakers_are_paired_and_options_that_contradict_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r.stm").write_text("m 1 ann 0 2 turn it on\nm 1 bob 1 3 what time is it\n", "utf-8")
    (tmp_path / "h.stm").write_text("m 1 s2 1 3 what time it is\nm 1 s1 0 2 turn it on\n", "utf-8")
    files = ("-r", tmp_path / "r.stm", "-H", tmp_path / "h.stm")
    result = harness(*files, "--speakers", "tcp", "--collar", "2", "--json")
    assert json.loads(result.stdout)["talkers"] == [
        {"recording": "m", "reference": "ann", "hypothesis": "s1"},
        {"recording": "m", "reference": "bob", "hypothesis": "s2"},
    ]
    assert (
        "verbatim, no marks, tcpWER with a collar of 2 s"
        in harness(*files, "--speakers", "tcp", "--collar", "2").stdout
    )
    for options, message in (
        (("--collar", "2"), "--collar needs --speakers tcp"),
        (("--by-time",), "--by-time needs the times of words"),
        (("--speakers", "cp", "-H", tmp_path / "r.stm"), "--speakers takes one hypothesis"),
        (("--speakers", "cp", "--optional-words"), "--optional-words cannot be combined with --speakers"),
        (("--speakers", "cp", "--id-type", "wsj"), "--id-type cannot be combined with --speakers"),
        (("--speakers", "cp", "--marks", "reference"), "--marks cannot be combined with --speakers"),
        ((), "With --speakers: two files in stm or seglst"),
    ):
        assert message in str(refused(harness(*files, *options)))
    (tmp_path / "h.stm").write_text("", "utf-8")
    assert "7 of 7 = 100.00 %" in harness(*files, "--speakers", "cp").stdout  # as a recogniser that crashed leaves it
