"""`harness score` by groups, as a user types it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError

LIST = "id,voice,level_dbfs\nAMY_1,amy,-26\namy_2,amy,-8\nbob_1,bob,-26\nzed_1,zed,-8\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Reference, hypothesis, and list; the reference bob_2 has no row, and zed_1 is neither said nor heard."""
    texts = {
        "ref.trn": "show me the flights (amy_1)\nto boston (amy_2)\nnever mind (bob_1)\nstop (bob_2)\n",
        "hyp.trn": "show me flights (amy_1)\nto boston (amy_2)\nnever mind it (bob_1)\nstop (bob_2)\n",
        "groups.csv": LIST,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [str(tmp_path / name) for name in texts]


def harness(*arguments: str, stdin: str = "") -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(group, ["score", *arguments], input=stdin)


def test_tables_come_after_the_summary(files: list[str]) -> None:
    done = harness("-r", files[0], "-h", files[1], "--groups", files[2], "--cross", "voice, level_dbfs")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    starts = ("empty references", "by voice", "by level_dbfs", "voice by level_dbfs:", "intervals", "without a row")
    places = [next(at for at, line in enumerate(lines) if line.startswith(start)) for start in starts]
    assert places == sorted(places)
    assert "amy               2      6       1  16.67 %    0.0–100.0 %      50.0" in lines
    assert ["bob", "50.00", "of", "2", "n/a", "n/a", "50.00", "of", "2"] in [line.split() for line in lines]
    assert lines[-2:] == [
        "without a row        1 (bob_2); their group is (none)",
        "rows of no utterance 1 (zed_1); counted nowhere",
    ]


def test_json_says_which_list_it_was(files: list[str]) -> None:
    done = harness("-r", files[0], "-h", files[1], "--groups", files[2], "--json", "-")
    found = json.loads(done.stdout)
    digest = hashlib.sha256(LIST.encode()).hexdigest()
    assert found["groups_file"] == {"file": files[2], "format": "csv", "encoding": "utf-8", "sha256": digest}
    assert [(one["value"], one["words"]) for one in found["groups"][0]["values"]] == [("amy", 6), ("bob", 2), (None, 1)]
    assert (found["without_group"], found["groups_of_no_utterance"]) == (["bob_2"], ["zed_1"])
    piped = json.loads(harness("-r", files[0], "-h", files[1], "--groups", "-", "--json", "-", stdin=LIST).stdout)
    assert piped["groups_file"]["file"] == "<stdin>"
    assert piped["groups"] == found["groups"]


def test_two_systems_are_compared_within_each_value(files: list[str], tmp_path: Path) -> None:
    both = "-r", files[0], "-h", files[1], "-h", files[0], "--groups", files[2]
    lines = harness(*both).stdout.splitlines()
    assert sum(line.startswith("by voice") for line in lines) == 3
    assert [line for line in lines if line.startswith("── ")]
    found = json.loads(harness(*both, "--json", "-").stdout)
    assert [one["by"] for one in found["comparisons"][0]["groups"]] == ["voice", "level_dbfs"]
    assert harness(*both, "--html", str(tmp_path / "out.html")).exit_code == 0
    assert 'id="group' in (page := (tmp_path / "out.html").read_text(encoding="utf-8")) or "id=group-1" in page


def test_labels_of_segments_are_groups_beside_those_of_a_list(tmp_path: Path) -> None:
    stm, ctm, listed = (tmp_path / name for name in ("r.stm", "h.ctm", "g.csv"))
    stm.write_text(
        ';; CATEGORY "0" "Sex" ""\n;; LABEL "M" "Male" ""\nf A bob 0 1 <M> one\nf A ann 1 2 <f> two\n', encoding="utf-8"
    )
    ctm.write_text("f A 0.1 0.1 one\n", encoding="utf-8")
    listed.write_text("id,room\nbob-000,lab\nann-000,hall\n", encoding="utf-8")
    done = harness("-r", str(stm), "-h", str(ctm), "--groups", str(listed), "--cross", "Sex,room")
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("by ")] == ["by room", "by Sex"]
    assert any(line.startswith("Male") and line.endswith("0.0") for line in lines)
    alone = harness("-r", str(stm), "-h", str(ctm), "--json", "-")
    assert [one["by"] for one in json.loads(alone.stdout)["groups"]] == ["Sex"]


def test_names_of_audio_files_keep_their_case(tmp_path: Path) -> None:
    for name, text in (("r.csv", "a.wav,x\nA.wav,y\n"), ("h.csv", "a.wav,x\nA.wav,z\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "g.csv").write_text("id,room\nA.wav,hall\na.wav,lab\n", encoding="utf-8")
    files = [str(tmp_path / name) for name in ("r.csv", "h.csv", "g.csv")]
    done = harness("-r", files[0], "-h", files[1], "--groups", files[2], "--json", "-")
    values = json.loads(done.stdout)["groups"][0]["values"]
    assert [(one["value"], one["substitutions"]) for one in values] == [("hall", 1), ("lab", 0)]


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        (("--cross", "voice,levle_dbfs"), "--cross: there is no grouping 'levle_dbfs'"),
        (("--cross", "voice,levle_dbfs"), "Did you mean 'level_dbfs'?"),
        (("--json", "groups.csv"), "this file is to be read and to be written"),
        (("--groups", "other.csv"), "no id of this list is one of the references"),
        (("--groups", "none.csv"), "there is no such file"),
        (("--groups", "broken.csv"), "broken.csv:3:1: 3 fields, where the header has 2"),
    ],
)
def test_what_is_wrong_with_groups_is_told(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, str], wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("id,voice\nx_1,amy\n", encoding="utf-8")
    (tmp_path / "broken.csv").write_text("id,voice\namy_1,amy\nbob_1,bob,-26\n", encoding="utf-8")
    done = harness("-r", files[0], "-h", files[1], "--groups", files[2], *more)
    assert isinstance(done.exception, InputError), done.output
    assert wrong in str(done.exception)


def test_crossing_needs_groups_and_two_of_them(files: list[str]) -> None:
    done = harness("-r", files[0], "-h", files[1], "--cross", "voice,level_dbfs")
    assert isinstance(done.exception, InputError)
    assert "--groups FILE.csv" in str(done.exception)
    for wrong in ("voice", "voice,voice", "voice,", "a,b,c"):
        assert harness("-r", files[0], "-h", files[1], "--groups", files[2], "--cross", wrong).exit_code == 2
    twice = harness("-r", files[0], "-h", "-", "--groups", "-")
    assert isinstance(twice.exception, InputError)
