"""Where an evaluation's files may go, and that nothing is written over what is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.cli.evaluate import EvaluationTerminal
from harness.model.errors import InputError
from harness.offline.evaluating import EvaluationFiles

LOG = 'INFO inv-files 2\nINVTA "a.wav" 1200 1900 "alexa" sv-score 0\nINVFR "b.wav"\n'


@pytest.mark.parametrize("name", ["", ".", "x" * 252 + ".log", "folder.log", "missing/a.log"])
def test_a_log_that_cannot_be_there_is_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.log").mkdir()
    log = tmp_path / name if name.strip(".") else Path(name)
    with pytest.raises(InputError):
        EvaluationFiles(log).demand_room(resume=False, force=True)


@pytest.mark.parametrize("target", ["a.log", "b.log", "link.csv", "b.log.jsonl"])
def test_the_table_of_a_comparison_replaces_none_of_its_inputs(tmp_path: Path, target: str) -> None:
    for name in ("a.log", "b.log", "b.log.jsonl"):
        (tmp_path / name).write_text(LOG)
    (tmp_path / "link.csv").symlink_to("a.log")
    arguments = ["compare", str(tmp_path / "a.log"), str(tmp_path / "b.log"), "--csv", str(tmp_path / target)]
    result = CliRunner().invoke(group, arguments)
    assert isinstance(result.exception, InputError)
    assert "to be read and to be written" in str(result.exception)
    assert {(tmp_path / name).read_text() for name in ("a.log", "b.log", "b.log.jsonl")} == {LOG}


def test_lines_that_nobody_reads_end_no_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with monkeypatch.context() as streams, os.fdopen(write, "w", 1) as closed:
        streams.setattr(sys, "stderr", closed)
        line = EvaluationTerminal(quiet=True)
        line.tell("one")
        line.tell("two")
        assert sys.stderr is not closed
        sys.stderr.close()
        with pytest.raises(BrokenPipeError):  # what it could not take is given up with it
            closed.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), closed.fileno())
