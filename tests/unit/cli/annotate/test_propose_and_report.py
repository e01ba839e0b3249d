"""`harness annotate propose` and `report`, from the data to the counts."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.annotate import command
from harness.model.errors import InputError
from harness.model.understanding import Corpus
from harness.understanding.files.corpus_writing import jsonl_lines
from tests.unit.annotation.wrong_classifiers import LABELS, spoken


def _run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def _project(folder: Path, labelled: int, *options: str) -> str:
    given = [replace(one, intents=one.intents if at < labelled else None) for at, one in enumerate(spoken(150))]
    (folder / "data.jsonl").write_text("".join(jsonl_lines(Corpus("", tuple(given)))))
    labels = "".join(f"  - {{id: {one}, description: said}}\n" for one in LABELS)
    (folder / "labels.yaml").write_text(f"label_set: t\nlabels:\n{labels}")
    made = _run("new", str(folder / "p"), "--data", str(folder / "data.jsonl"), "--labels", str(folder / "labels.yaml"),
                "--take-labels", *options)  # fmt: skip
    assert made.exit_code == 0, made.output
    return str(folder / "p")


def test_proposals_are_kept_as_one_batch_and_counted(tmp_path: Path) -> None:
    project = _project(tmp_path, 60)
    told = _run("propose", project, "--seed", "1", "--triads", "2")
    assert told.exit_code == 0
    assert "90 utterances to propose for" in told.output
    assert "kept triad" in told.output
    found = json.loads(_run("report", project, "--json").output)
    assert (found["utterances"], found["labelled_before"], found["proposed"], found["batches"]) == (150, 60, 90, 1)
    assert found["consensus"] + found["without_consensus"] == 90
    assert found["unreviewed"] == found["consensus"] > 45
    rows = list(csv.reader(io.StringIO(_run("report", project, "--csv").output)))
    assert ["utterances", "", "labelled by consensus", str(found["consensus"])] in rows
    assert "labelled by consensus" in _run("report", project).output


def test_what_waits_for_a_second_annotator_is_learnt_from_too(tmp_path: Path) -> None:
    project = _project(tmp_path, 60, "--double", "1")
    told = _run("propose", project, "--seed", "1")
    assert "90 utterances to propose for" in told.output
    trained, held_out = (int(one.split()[-1]) for one in told.output.splitlines()[0].split(", ")[:2])
    assert trained + held_out == 60


def test_what_is_wrong_is_refused_and_keeps_nothing(tmp_path: Path) -> None:
    project = _project(tmp_path, 20)
    for words, what in (
        ((), "20 utterances are labelled"),
        (("-s", "strength"), "sets nothing"),
        (("-s", "strenth=1"), "Did you mean 'strength'"),
    ):
        with pytest.raises(InputError) as caught:
            _run("propose", project, *words)
        assert what in str(caught.value)
    assert json.loads(_run("report", project, "--json").output)["batches"] == 0
