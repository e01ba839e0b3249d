"""`harness annotate`: a project made, labelled, settled, imported into and exported; what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.annotation.project import AnnotationRoom
from harness.annotation.view import AnnotationPhase
from harness.cli.annotate import command as annotate
from harness.model.annotation import Accepted, AnnotationRow, Labelled, LabelProposal, Proposed, Struck, Withdrawn
from harness.model.errors import HarnessError, InputError, InputProblems
from harness.model.understanding import Corpus, Slot
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.corpus_writing import jsonl
from tests.annotation_projects import give, sitting
from tests.command import succeeded
from tests.unit.annotation.sittings import SPOKEN_LABELS, spoken

LABELS = """label_set: test
labels:
  - {id: play, title: play music, description: Plays., key: p, examples: [{text: a song}]}
  - {id: stop, description: Stops.}
  - {id: thank, description: Thanks., key: 3}
  - {id: well, description: Fills., alone: true}
never_together: [[play, stop]]
"""
DATA = [
    {"id": "d#1", "text": "play it", "intents": ["play"], "groups": {"split": "train"}},
    {"id": "d#2", "text": "stop", "intents": ["stop"], "groups": {"split": "train"}},
    {"id": "d,3", "text": "play [bold] it", "groups": {"split": "test"}},
    {"id": "4", "text": "merci", "tags": ["B-word"], "groups": {"split": "test"}},
]
Run = Callable[..., Result]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "labels.yaml").write_text(LABELS, encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in DATA)
    (tmp_path / "data.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(files: Path) -> Run:
    def of(*arguments: object) -> Result:
        return CliRunner().invoke(annotate, [str(argument) for argument in arguments])

    return of


def new(run: Run, files: Path, *options: object, project: str = "p") -> Result:
    return run("new", files / project, "--data", files / "data.jsonl", "--labels", files / "labels.yaml", *options)


def rows(project: Path) -> list[AnnotationRow]:
    room = AnnotationRoom(project)
    try:
        return list(room.rows)
    finally:
        room.close()


def propose(project: Path, proposals: dict[str, tuple[str, ...] | None]) -> None:
    room = AnnotationRoom(project)
    room.write([Proposed("batch", "test", tuple(LabelProposal(id_, intents) for id_, intents in proposals.items()))])
    room.close()


def test_a_project_is_created_labelled_and_exported(run: Run, files: Path) -> None:
    created = succeeded(new(run, files))
    assert "4 utterances, 4 labels" in created.output
    project = files / "p"
    with sitting(project, "ann") as desk:
        give(desk, "play thank", "thank", "play", "well")
        assert (desk.view.count.done, desk.view.count.left) == (4, 0)
    chosen = {row.utterance: row.intents for row in rows(project) if isinstance(row, Labelled)}
    out = files / "out.jsonl"
    assert run("export", project, "--output", out).exit_code == 0
    corpus = read_corpus(out).utterances
    assert {utterance.id: utterance.intents for utterance in corpus} == chosen
    assert corpus[3].tags == ("B-word",), "slots of the data stay"
    assert run("export", project, "--output", files / "out.csv", "--split", "test").exit_code == 0
    assert [utterance.id for utterance in read_corpus(files / "out.csv").utterances] == ["d,3", "4"]
    printed = run("export", project, "--output", "-")
    assert printed.stdout == out.read_text(encoding="utf-8")
    assert isinstance(run("export", project, "--output", "-", "--output-format", "bio").exception, InputError)
    assert not Path("-").exists()


def test_invalid_input_creates_no_project(run: Run, files: Path) -> None:
    (files / "p").mkdir()
    result = new(run, files)
    assert isinstance(result.exception, InputError)
    assert "the path already exists" in str(result.exception)
    (files / "double.jsonl").write_text((files / "data.jsonl").read_text(), encoding="utf-8")
    for options, message in (
        (("--data", files / "double.jsonl"), "the id 'd#1' is already in"),
        (("--labels", files / "none.yaml"), "none.yaml"),
        (("--rename-labels", "media"), "--rename-labels has no labels to rename"),
        (("--annotator", "ann", "--annotator", "ann"), "listed twice"),
        (("--annotator", "ann", "--double", "1"), "needs two annotators"),
        (("--split", "dev"), "there is no split"),
    ):
        result = new(run, files, *options, project="q")
        assert isinstance(result.exception, HarnessError), options
        assert result.exception.exit_code == 2
        assert message in str(result.exception)
    (files / "wrong.csv").write_text("id,intent\nd#1,pley\nd#2,well#stop\n4,pley\n", encoding="utf-8")
    result = new(run, files, "--intents", files / "wrong.csv", project="q")
    assert isinstance(result.exception, InputProblems)
    first, second = map(str, result.exception.problems)
    assert "wrong.csv:2: there is no label 'pley'. Did you mean 'play'?" in first
    assert "wrong.csv:3: the label set forbids stop#well: well must be the only label" in second
    assert sorted(path.name for path in files.iterdir()) == [
        "data.jsonl",
        "double.jsonl",
        "labels.yaml",
        "p",
        "wrong.csv",
    ]


def test_labels_in_the_data_are_imported_only_on_request(run: Run, files: Path) -> None:
    new(run, files)
    assert rows(files / "p") == []
    assert all(utterance.intents is None for utterance in read_corpus(files / "p" / "utterances.jsonl").utterances)
    result = new(run, files, "--import-labels", project="q")
    assert "labelled 2 utterances" in result.output
    labels = [(row.annotator, row.utterance, row.intents) for row in rows(files / "q") if isinstance(row, Labelled)]
    assert labels == [("imported", "d#1", ("play",)), ("imported", "d#2", ("stop",))]
    assert "imported: 2 from files\n" in run("status", files / "q").output


def test_a_file_of_intents_is_joined_by_id(run: Run, files: Path) -> None:
    new(run, files)
    file = files / "intents.csv"
    file.write_text('ID,intent\nd#1,jouer\n"d,3",merci#jouer\nxx,jouer\n4,\n', encoding="utf-8")
    refused = run("import", files / "p", file)
    assert isinstance(refused.exception, InputProblems)
    assert rows(files / "p") == [], "all or nothing"
    (files / "map.csv").write_text("from,to\njouer,play\nmerci,thank\n", encoding="utf-8")
    result = succeeded(run("import", files / "p", file, "--rename-labels", files / "map.csv"))
    assert result.output.splitlines() == [
        "labelled 2 utterances",
        "1 id in the file matches no utterance of this project: xx",
        "2 utterances have no labels in the file: d#2, 4",
    ]
    repeated = run("import", files / "p", file, "--rename-labels", files / "map.csv")
    assert repeated.output.splitlines()[0] == "labelled 0 utterances, 2 already had the same labels"
    assert len(rows(files / "p")) == 2


def test_pages_can_be_struck_accepted_and_undone(run: Run, files: Path) -> None:
    new(run, files)
    project = files / "p"
    propose(project, {"d#1": ("play",), "d#2": ("play",), "d,3": ("play",), "4": None})
    with sitting(project, "ann") as desk:
        desk.strike_number(3)
        desk.accept_page()
        desk.undo()
        assert [line.struck for line in desk.view.page] == [False, False, True]
        desk.strike_number(3)
        desk.strike_number(2)
        desk.accept_page()
        assert not desk.go_to(AnnotationPhase.REVIEWING), "nothing is left to review"
    kinds = [type(row) for row in rows(project)[1:]]
    assert kinds == [Accepted, Struck, Withdrawn, Accepted, Struck]
    last = rows(project)[-1]
    assert isinstance(last, Struck)
    assert last.utterances == ("d#1",), "the second by its text"
    status = json.loads(run("status", project, "--json").output)
    assert (status["states"]["struck"], status["states"]["single"], status["final"]) == (1, 2, 2)


def test_two_annotators_disagree_and_a_third_settles(run: Run, files: Path) -> None:
    new(run, files, "--double", "1")
    project = files / "p"
    for name, last in (("ann", "play"), ("ben", "thank")):
        with sitting(project, name) as desk:
            give(desk, "play", "play", "play", last)
    refused = run("export", project, "--output", files / "x.jsonl")
    assert isinstance(refused.exception, InputError)
    assert "1 of 4 utterances have no final labels" in str(refused.exception)
    assert not (files / "x.jsonl").exists()
    succeeded(run("export", project, "--output", files / "x.jsonl", "--mark"))
    states = [dict(utterance.groups)["state"] for utterance in read_corpus(files / "x.jsonl").utterances]
    assert sorted(states) == ["agreed", "agreed", "agreed", "disputed"]
    figures = json.loads(run("agreement", project, "--json").output)["pairs"][0]
    assert (figures["shared"], figures["exact"]["count"], figures["annotators"]) == (4, 3, ["ann", "ben"])
    assert figures["labels"]["thank"]["second"] == 1
    assert "75.0 %" in run("agreement", project).output
    assert "ben: thank" in run("agreement", project, "--disagreements").output
    assert run("agreement", project, "--min-alpha", "0.99").exit_code == 1
    with sitting(project, "cem", adjudicating=True) as desk:
        assert desk.view.item is not None
        assert [answer.intents for answer in desk.view.item.inputs] == [("play",), ("thank",)]
        give(desk, "thank")
    assert run("export", project, "--output", files / "y.jsonl").exit_code == 0


def test_labels_are_changed_and_settled_again(run: Run, files: Path) -> None:
    new(run, files)
    project = files / "p"
    with sitting(project, "ann") as desk:
        give(desk, "play", "play", "play", "play")
    with sitting(project, "ann", "d#1", "d,3") as desk:
        give(desk, "thank")
        assert desk.view.item is not None
        assert desk.view.item.chosen == ("play",)
        desk.save()
        assert desk.view.count.done == 2
    with sitting(project, "cem", "d#2", adjudicating=True) as desk:
        give(desk, "stop")
    assert run("export", project, "--output", files / "x.jsonl").exit_code == 0
    final = {utterance.id: utterance.intents for utterance in read_corpus(files / "x.jsonl").utterances}
    assert final == {"d#1": ("thank",), "d#2": ("stop",), "d,3": ("play",), "4": ("play",)}
    assert json.loads(run("status", project, "--json").output)["changed_since_settled"] == []
    with sitting(project, "ann", "d#2") as desk:
        give(desk, "thank")
    assert json.loads(run("status", project, "--json").output)["changed_since_settled"] == ["d#2"]
    assert "1 settled utterance was labelled differently since: d#2" in run("status", project).output
    with sitting(project, "cem", "d#2", adjudicating=True) as desk:
        give(desk, "stop")
    assert json.loads(run("status", project, "--json").output)["changed_since_settled"] == []


def test_names_that_a_project_does_not_know_are_refused(run: Run, files: Path) -> None:
    new(run, files, "--annotator", "ann", "--annotator", "ben", "--double", "0.5")
    result = run("review", files / "p", "--annotator", "cem")
    assert isinstance(result.exception, InputError)
    assert "Its annotators: ann, ben" in str(result.exception)
    for name in ("imported", "Imported "):
        reserved = [run("review", files / "p", "--annotator", name), new(run, files, "--annotator", name, project="q")]
        assert ["is reserved for labels from files" in str(result.exception) for result in reserved] == [True, True]
    totals = []
    for name in ("ann", "ben"):
        with sitting(files / "p", name) as desk:
            totals.append(desk.view.count.total)
    assert sum(totals) == 6, "two of four go to both"


@pytest.mark.parametrize(
    ("options", "replacement"),
    [
        (["--plain"], "--plain was removed: utterances are annotated in a browser"),
        (["--utterance", "4"], "--utterance was removed. Press / on the site"),
        (["--find", "play"], "--find was removed. Press / on the site"),
    ],
)
def test_removed_option_names_its_replacement(run: Run, files: Path, options: list[str], replacement: str) -> None:
    new(run, files)
    refused = run("review", files / "p", *options)
    assert isinstance(refused.exception, InputError)
    assert replacement in str(refused.exception)


def test_a_project_whose_copy_was_changed_is_refused(run: Run, files: Path) -> None:
    new(run, files)
    with (files / "p" / "utterances.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"id": "5", "text": "more"}\n')
    result = run("status", files / "p")
    assert isinstance(result.exception, HarnessError)
    assert "is not the file that the project was created with" in str(result.exception)
    shutil.rmtree(files / "p")
    assert isinstance(run("status", files / "p").exception, InputError)


def _run(*words: str) -> Result:
    return CliRunner().invoke(annotate, list(words), catch_exceptions=False)


def _project(folder: Path, labelled: int, *options: str) -> str:
    utterances = [
        replace(utterance, intents=utterance.intents if number < labelled else None)
        for number, utterance in enumerate(spoken(150))
    ]
    (folder / "data.jsonl").write_text(jsonl(Corpus("", tuple(utterances))))
    labels = "".join(f"  - {{id: {label}, description: said}}\n" for label in SPOKEN_LABELS)
    (folder / "labels.yaml").write_text(f"label_set: t\nlabels:\n{labels}")
    created = _run("new", str(folder / "p"), "--data", str(folder / "data.jsonl"),
                   "--labels", str(folder / "labels.yaml"), "--import-labels", *options)  # fmt: skip
    assert created.exit_code == 0, created.output
    return str(folder / "p")


def test_proposals_are_kept_as_one_batch_and_counted(tmp_path: Path) -> None:
    project = _project(tmp_path, 60)
    result = succeeded(_run("propose", project, "--seed", "1", "--triads", "2"))
    assert "90 utterances to propose for" in result.output
    assert "kept triad" in result.output
    report = json.loads(_run("report", project, "--json").output)
    assert (report["utterances"], report["labelled_before"], report["proposed"], report["batches"]) == (150, 60, 90, 1)
    assert report["consensus"] + report["without_consensus"] == 90
    assert report["unreviewed"] == report["consensus"] > 45
    rows = list(csv.reader(io.StringIO(_run("report", project, "--csv").output)))
    assert ["utterances", "", "labelled by consensus", str(report["consensus"])] in rows
    assert "labelled by consensus" in _run("report", project).output


def test_one_classifier_proposes_and_states_its_expected_error(tmp_path: Path) -> None:
    project = _project(tmp_path, 60)
    status = json.loads(_run("status", project, "--json").stdout)
    result = succeeded(_run("propose", project, "--method", "classifier"))
    assert "learnt from 60 utterances, proposed labels for" in result.stdout
    report = json.loads(_run("report", project, "--json").output)
    assert (report["consensus"], report["unanimous"]) == (90, 0), "there was only one vote"
    assert f"estimated error of the proposals: {100 * status['estimated_error']:.2f} % (target 1.00 %)" in result.stdout
    assert status["target_error"] == 0.01
    (tmp_path / "sub").mkdir()
    lenient = _project(tmp_path / "sub", 60, "--target-error", "99%")
    assert f"Next: harness understand annotate propose {lenient} --method classifier" in _run("status", lenient).output
    out = tmp_path / "out.jsonl"
    with pytest.raises(InputError, match="have no final labels"):
        _run("export", project, "--output", str(out))
    exported = succeeded(_run("export", project, "--output", str(out), "--proposed"))
    assert "with unreviewed labels" in exported.stderr
    assert all(utterance.intents for utterance in read_corpus(out).utterances)
    with pytest.raises(InputError, match="--triads applies to tri-training only"):
        _run("propose", project, "--method", "classifier", "--triads", "2")


def test_proposals_also_learn_from_utterances_with_one_annotator(tmp_path: Path) -> None:
    project = _project(tmp_path, 60, "--double", "1")
    result = _run("propose", project, "--seed", "1")
    assert "90 utterances to propose for" in result.output
    trained, held_out = (int(part.split()[-1]) for part in result.output.splitlines()[0].split(", ")[:2])
    assert trained + held_out == 60


def test_wrong_usage_of_propose_is_refused_and_stores_nothing(tmp_path: Path) -> None:
    project = _project(tmp_path, 20)
    (tmp_path / "many").mkdir()
    with pytest.raises(InputError, match="Choose another --held-out-split"):
        _run("propose", _project(tmp_path / "many", 60), "--held-out-split", "nosuch")
    for words, message in (
        (("--held-out", "0.3", "--held-out-split", "dev"), "--held-out cannot be combined with --held-out-split"),
        ((), "20 utterances are labelled"),
        (("-s", "strength"), "the value is missing"),
        (("-s", "strenth=1"), "Did you mean 'strength'"),
    ):
        with pytest.raises(InputError) as caught:
            _run("propose", project, *words)
        assert message in str(caught.value)
    assert json.loads(_run("report", project, "--json").output)["batches"] == 0


CONCEPTS = """concepts:
  - {id: city, description: Where.}
  - {id: day}
"""


def test_slots_are_marked_imported_compared_and_exported(run: Run, files: Path) -> None:
    (files / "labels.yaml").write_text(LABELS + CONCEPTS, encoding="utf-8")
    data = [
        {"id": "1", "text": "play it in new york", "intents": ["play"], "tags": ["O", "O", "O", "B-city", "I-city"]},
        {"id": "2", "text": "stop on monday in rome"},
    ]
    (files / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
    assert new(run, files, "--import-labels", "--double", "1").exit_code == 0
    project = files / "p"
    assert [row.slots for row in rows(project) if isinstance(row, Labelled)] == [(Slot("city", None, 3, 5),)]
    (files / "intents.csv").write_text("id,intent\n1,thank\n", encoding="utf-8")
    run("import", project, files / "intents.csv")
    assert [(row.intents, row.slots) for row in rows(project) if isinstance(row, Labelled)][1:] == [
        (("thank",), (Slot("city", None, 3, 5),))
    ], "a file of intents leaves slots as they are"
    for name, marks in (("ann", [("day", 2, 3), ("city", 4, 5)]), ("ben", [("day", 1, 3)])):
        with sitting(project, name, "2") as desk:
            for mark in marks:
                assert desk.mark(*mark)
            give(desk, "stop")
            assert "saved as stop (day: " in desk.view.said
    agreed = run("agreement", project).output
    assert re.search(r"^same labels +100 %", agreed, re.MULTILINE)
    assert re.search(r"^slot F1 +0.000 ", agreed, re.MULTILINE)
    assert re.search(r"^slot F1, overlapping +0.667 ", agreed, re.MULTILINE)
    assert re.search(r"^city +0 +1 +0$", agreed, re.MULTILINE)
    assert "they agree on every utterance" not in agreed
    assert "ben: stop (day: on monday)" in run("agreement", project, "--disagreements").output
    assert run("agreement", project, "--spans").output == "ann,day,2,3\nann,city,4,5\nben,day,1,3\n"
    strangers = ("--annotator", "ann", "--annotator", "imported")
    assert run("agreement", project, "--spans", *strangers).output == ""
    assert (
        run("agreement", project, *strangers).output == "no utterance was labelled by two of the annotators compared\n"
    )
    alone = run("agreement", project, "--annotator", "ann")
    assert isinstance(alone.exception, InputError)
    assert "--annotator names only 'ann', but a comparison needs two annotators" in str(alone.exception)
    assert re.search(r"^disputed +1  annotators disagree", run("status", project).output, re.M)
    with sitting(project, "zoe", adjudicating=True) as desk:
        assert desk.view.item is not None
        assert desk.view.item.inputs[0].slots == ("day: monday", "city: rome")
        desk.mark("day", 2, 3)
        give(desk, "stop")
    out = files / "out.jsonl"
    assert run("export", project, "--output", out, "--final-only").exit_code == 0
    (only,) = read_corpus(out).utterances
    assert (only.tags, only.slots) == (("O", "O", "B-day", "O", "O"), (Slot("day", "monday", 2, 3),))
    (files / "labels.yaml").write_text(LABELS + CONCEPTS.replace("city", "town"), encoding="utf-8")
    wrong = new(run, files, "--import-labels", project="r")
    assert "the label set has no concept 'city'" in str(wrong.exception)


@pytest.mark.parametrize("method", ["classifier", "tri-training"])
def test_slots_are_proposed_and_accepted_with_their_labels(run: Run, files: Path, method: str) -> None:
    pytest.importorskip("pycrfsuite")
    (files / "labels.yaml").write_text(LABELS + CONCEPTS, encoding="utf-8")
    cities = ["rome", "paris", "new york", "lyon", "bonn"]
    data = []
    for number in range(60):
        city = cities[number % 5].split()
        text = [("play", "stop")[number % 2], f"w{number}", "in", *city]
        tags = ["O", "O", "O", "B-city", *["I-city"] * (len(city) - 1)]
        labels = {"intents": [text[0]], "tags": tags} if number < 50 else {}
        data.append({"id": f"u{number}", "text": " ".join(text), **labels})
    (files / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
    new(run, files, "--import-labels")
    result = run("propose", files / "p", "--method", method)
    assert "slots learnt from 50 utterances" in result.output, result.output
    with sitting(files / "p", "ann") as desk:
        texts = []
        while page := desk.view.page:
            texts += [line.text for line in page]
            if len(texts) == len(page):
                desk.strike_number(1)
            desk.accept_page()
    assert "play w58 in [lyon: city]" in texts
    out = files / "out.jsonl"
    run("export", files / "p", "--output", out, "--final-only")
    marked = [utterance for utterance in read_corpus(out).utterances if int(utterance.id[1:]) >= 50]
    assert len(marked) == 9
    assert all(slot.value in cities for utterance in marked for slot in utterance.slots or [Slot("none", "none")])
