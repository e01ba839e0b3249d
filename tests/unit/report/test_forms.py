"""Every form of a session's results: texts of others stay text, and the numbers are the same."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.model import numbers
from harness.model.record import EndReason, NoteWritten, SessionFinished, TrialFinished
from harness.model.scenario import Limits
from harness.model.trial import Outcome
from harness.report.session import read_session
from harness.report.wake_json import as_json
from harness.statistics import text
from tests.command import harness, succeeded
from tests.unit.report.test_prometheus import parsed
from tests.unit.report.test_session_page import page, session, visible, wake_rows
from tests.unit.session.figures.rows import Rows, clip_of, planned
from tests.unit.wake.wake_rows import rows_of, wake_trial

HOSTILE = '=HYPERLINK("http://x","y")|</script><img src=x onerror=alert(1)>\x1b]0;t\x07\x9b31m\x7f\u202e`\nnext\x00end'
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Tags(HTMLParser):
    """What a browser would see as elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A session whose every name and word is hostile, and long."""
    word = HOSTILE + "x" * 5000
    trials = [
        replace(planned(number, word, f"{number}{word}", word), conditions=((word, word), ("axis", str(number))))
        for number in (1, 2)
    ]
    rows = Rows.of(*trials, title=word)
    for trial in trials:
        rows.trial(trial.id, heard=word, text=word, clip=clip_of("none.flac"))
    rows.add(NoteWritten(word, word))
    rows.add(SessionFinished(EndReason.COMPLETED))
    return session(tmp_path / "s", rows, Limits(min_recognised_share=0.5))


def told(*words: object) -> str:
    result = succeeded(harness(*words))
    return result.stdout


def test_hostile_texts_stay_text_in_every_format(hostile: Path, tmp_path: Path) -> None:
    other = shutil.copytree(hostile, tmp_path / "t")
    told("compare", hostile, other, "--html", tmp_path / "c.html", "--markdown", tmp_path / "c.md")
    for html in (page(hostile)[1], (tmp_path / "c.html").read_text(encoding="utf-8")):
        tags = Tags(html).found
        assert not [
            tag
            for tag, attributes in tags
            if any(name.startswith("on") for name in attributes) or attributes.get("src") == "x"
        ]
        assert not CONTROL.search(html)
    markdown = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert "<img" not in re.sub("`[^`\n]*`", "", markdown)  # a code span shows it as text
    assert not CONTROL.search(markdown)
    table = told("export", hostile, "--csv")
    cells = [cell for row in csv.reader(io.StringIO(table), strict=True) for cell in row]
    assert [cell for cell in cells if "HYPERLINK" in cell]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    junit = told("export", hostile, "--junit", "-")
    assert "HYPERLINK" in str([node.attrib for node in ElementTree.fromstring(junit).iter()])
    metrics, events = told("export", hostile, "--prometheus", "-"), told("export", hostile, "--events", "-")
    assert parsed(metrics)
    rows = [json.loads(line) for line in events.splitlines()]
    assert rows[0]["rows"] == len(rows) - 1
    assert HOSTILE in rows[1]["title"]
    told("export", hostile, "--trn", tmp_path / "trn")
    trn = (tmp_path / "trn" / "first.trn").read_text(encoding="utf-8")
    for shown in (
        table,
        junit.replace("\u202e", ""),  # XML gives such a text back as it was
        metrics,
        events,
        trn,
        told("show", hostile),
        told("show", hostile, "--wer"),
    ):
        assert not CONTROL.search(shown)


def test_parquet_and_csv_hold_the_same_table(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder = session(tmp_path / "s", wake_rows())
    told("export", folder, "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8"))))
    assert table.schema.metadata[b"schema"] == b"voice-harness.trials.1"
    assert table.column_names == list(rows[0])
    for ours, theirs in zip(rows, table.to_pylist(), strict=True):
        for name, value in theirs.items():
            is_number = isinstance(value, float)
            assert (float(ours[name]) if is_number else ours[name]) == (
                value if is_number else "" if value is None else str(value)
            ), name
    for words, message in ((("--csv", "--events", "-"), "only one output"), (("--parquet", "-"), "Name a file")):
        assert message in str(harness("export", folder, *words).exception)


def test_the_table_has_a_row_for_each_device_of_a_skipped_trial(tmp_path: Path) -> None:
    trial = wake_trial(1, devices=("kitchen", "den"))
    rows = rows_of(trial)
    rows.add(TrialFinished(trial.id, 1, Outcome.SKIPPED, 0, None, "needless"))
    table = csv.DictReader(io.StringIO(told("export", session(tmp_path / "s", rows), "--csv")))
    assert [(row["device"], row["outcome"], row["hit"]) for row in table] == [
        ("kitchen", "skipped", ""),
        ("den", "skipped", ""),
    ]


def test_every_output_format_has_the_same_numbers(tmp_path: Path) -> None:
    """Those of the JSON, in the text of `show`, the page, the table, JUnit and the metrics."""
    folder = session(tmp_path / "s", wake_rows(), Limits(max_false_reject_share=0.9))
    whole = read_session(folder)
    (device,) = as_json(whole, whole.devices)["devices"]
    rejects, accepts = device["false_rejects"], device["false_accepts_after_review"]
    delays = device["delay_s"]["of"]
    share = f"{rejects['count']} of {rejects['of']} = {numbers.percent(rejects['share'])}"
    hourly = f"{accepts['count']} in {accepts['hours']:.3f} h = {numbers.number(accepts['per_hour'])}/h"
    interval = text.percent_interval(tuple(rejects["interval_95"]))
    for shown in (told("show", folder), visible(page(folder)[1])):
        assert share in shown
        assert interval in shown
        assert hourly in shown
        assert f", n = {delays}" in shown
    table = list(csv.DictReader(io.StringIO(told("export", folder, "--csv"))))
    hits = [row["hit"] for row in table if row["kind"] == "wake"]
    assert (hits.count("0"), len(hits)) == (rejects["count"], rejects["of"])
    ambient = [row for row in table if row["kind"] == "ambient"]
    assert sum(int(row["unmatched"]) for row in ambient) == accepts["count"]
    assert sum(float(row["exposure_s"]) for row in ambient) / 3600 == pytest.approx(accepts["hours"], abs=1e-6)
    assert sum(bool(row["wake_delay_ms"]) for row in table) == delays
    metrics = parsed(told("export", folder, "--prometheus", "-"))
    of_device = {key: value for key, value in metrics.items() if ("device", "kitchen") in key[1]}
    assert rejects["share"] in of_device.values()
    assert accepts["per_hour"] in of_device.values()
    junit = ElementTree.fromstring(told("export", folder, "--junit", "-"))
    missed = [case for case in junit.iter("testcase") if case.find("failure") is not None]
    properties = {entry.get("name"): entry.get("value") for entry in junit.iter("property")}
    assert len(missed) in (0, rejects["count"])
    assert any(str(rejects["count"]) in str(value) for name, value in properties.items() if "reject" in str(name))


def test_queries_have_the_same_numbers_in_every_format(tmp_path: Path) -> None:
    trials = [planned(number) for number in range(1, 9)]
    rows = Rows.of(*trials)
    for number, trial in enumerate(trials):
        rows.trial(trial.id, attempts=1 + number % 2, heard="what time is it", latency_s=0.5 + number / 10)
    rows.add(SessionFinished(EndReason.COMPLETED))
    folder = session(tmp_path / "s", rows, Limits(min_first_attempt_share=0.4))
    totals = read_session(folder).progress.totals
    first = (
        f"{totals.first_attempt.count} of {totals.first_attempt.total} = {numbers.percent(totals.first_attempt.value)}"
    )
    assert first.startswith("4 of 8 = ")
    for shown in (told("show", folder), visible(page(folder)[1])):
        assert first in shown
    table = list(csv.DictReader(io.StringIO(told("export", folder, "--csv"))))
    assert [row["attempts"] for row in table].count("1") == totals.first_attempt.count
    latencies = sorted(float(row["latency_ms"]) for row in table)
    assert len(latencies) == totals.latency.total
    metrics = parsed(told("export", folder, "--prometheus", "-"))
    assert totals.first_attempt.value in metrics.values()
