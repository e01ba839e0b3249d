"""Label set files: what they hold, what is wrong with them, and those that come with the tool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.model.errors import InputError, InputProblems
from harness.understanding.files.grammar_file import load_grammar
from harness.understanding.files.label_set_file import load_label_map, load_label_set

ROOT = Path(__file__).parents[4]
HEAD = "label_set: t\nlabels:\n  - {id: a, description: is a, key: 1}\n  - {id: b, description: is b}\n"


def load(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "labels.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputProblems) as raised:
        load_label_set(path)
    return [str(problem).removeprefix(f"{path}:") for problem in raised.value.problems]


def test_the_example_of_the_page_is_read_whole(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "format-labels.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "lamps.yaml"
    path.write_text(example, encoding="utf-8")
    found = load_label_set(path)
    assert found.ids == ("switch_on", "switch_off", "ask", "thank", "filler")
    assert found.never_together == (("switch_on", "switch_off"),)
    first = found.labels[0]
    assert (first.key, first.examples[1].labels) == ("o", ("switch_on", "thank"))
    assert first.counterexamples[0].labels == ("ask",)
    assert found.labels[4].alone


@pytest.mark.parametrize(
    ("more", "line", "what"),
    [
        ("  - {id: a, description: again}\n", 5, "the id 'a' is there already, in line 3"),
        ("  - {id: c, description: c, key: '1'}\n", 5, "the key '1' is there already, in line 3"),
        ("  - {id: c, description: c, key: ab}\n", 5, "'ab' is no key"),
        ("  - {id: 'c d', description: c}\n", 5, "'c d' cannot stand as a label in files"),
        ("  - {id: 'c#d', description: c}\n", 5, "'c#d' cannot stand as a label in files"),
        ("  - {id: c}\n", 5, "the key 'description' is missing"),
        ("never_together: [[a, x]]\n", 5, "there is no label 'x'"),
        ("never_together: [[a, a]]\n", 5, "'a' cannot exclude itself"),
        ("never_together: [[a]]\n", 5, "1 labels, where a pair is wanted"),
        ("never_together: [[a, b]]\nmay_be_empty: maybe\n", 6, "expected true or false"),
        (
            "  - id: c\n    description: c\n    examples: [{text: x, labels: [a]}]\n",
            7,
            "an example of 'c' is not given it",
        ),
        (
            "  - id: c\n    description: c\n    alone: true\n    examples: [{text: x, labels: [a, c]}]\n",
            8,
            "the rules of this file forbid these labels: c stands alone",
        ),
        (
            "  - id: c\n    description: c\n    counterexamples: [{text: x, labels: [c], why: no}]\n",
            7,
            "it is given 'c' all the same",
        ),
        ("  - id: c\n    description: c\n    counterexamples: [{text: x, labels: [a]}]\n", 7, "'why' is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, more: str, line: int, what: str) -> None:
    (problem,) = load(tmp_path, HEAD + more)
    assert problem.startswith(f"{line}:")
    assert what in problem


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    assert len(load(tmp_path, HEAD + "  - {id: a, description: x}\nnever_together: [[a, x], [b, b]]\n")) == 3


def test_the_set_of_the_generated_corpus_has_all_intents_of_its_grammars() -> None:
    found = load_label_set(ROOT / "scenarios" / "labels" / "generated.yaml")
    grammars = [load_grammar(path) for path in sorted((ROOT / "scenarios" / "understanding").glob("*.yaml"))]
    assert set(found.ids) == {one for grammar in grammars for intent in grammar.intents for one in intent.label}


def test_the_set_of_media_is_what_the_preset_leads_to() -> None:
    found = load_label_set(ROOT / "scenarios" / "labels" / "media.yaml")
    assert set(found.ids) == set(load_label_map("media").values())
    assert [label.id for label in found.labels if label.alone] == ["discourse_marker"]
    assert all(label.key and label.examples for label in found.labels)


def test_maps_of_names(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text("from,to\nalt,a\nneu, b \n", encoding="utf-8")
    assert load_label_map(str(path)) == {"alt": "a", "neu": "b"}
    path.write_text("from,to\nalt,a\nalt,b\n", encoding="utf-8")
    with pytest.raises(InputProblems, match=r"map.csv:3.*'alt' is there already"):
        load_label_map(str(path))
    with pytest.raises(InputError, match="neither a file nor a preset"):
        load_label_map("nedia")
