"""Keys of annotators: none for two things, those of a label set first, and as the page for annotators says."""

from __future__ import annotations

from pathlib import Path

from harness.model.annotation import (
    KEYS,
    LINE_KEYS,
    MEANINGS,
    AnnotationAction,
    Label,
    LabelSet,
    action_key,
    action_of,
    label_keys,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "annotation.md"
TABLE = "| key | on a page of a group | by hand |\n|---|---|---|\n"


def table() -> str:
    """The table of keys as the page for annotators has it."""
    rows = [
        (" ".join(f"`{key}`" for key in KEYS[action]), on_page or "–", by_hand or "–")
        for action, (on_page, by_hand) in MEANINGS.items()
    ]
    lines = ("`1` … `9` `0` `a` …", "strikes that line, or takes that back", "gives or takes that label")
    return TABLE + "".join(f"| {' | '.join(row)} |\n" for row in (lines, *rows))


def test_the_page_for_annotators_has_the_keys_of_the_code() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"write this table there:\n{table()}"


def test_no_key_is_for_two_things() -> None:
    every = [*LINE_KEYS, *(key for keys in KEYS.values() for key in keys)]
    assert len(every) == len(set(every))
    assert set(KEYS) == set(MEANINGS) == set(AnnotationAction)
    assert all(action_of(key) is action for action, keys in KEYS.items() for key in keys)


def test_keys_of_labels_are_the_files_own_first() -> None:
    labels = LabelSet("x", "", tuple(Label(f"l{n}", key="1" if n == 2 else "") for n in range(70)))
    keys = label_keys(labels)
    assert (keys["l2"], keys["l0"], keys["l1"], keys["l3"]) == ("1", "2", "3", "4")
    given = [key for key in keys.values() if key]
    assert len(given) == len(set(given)) == len(LINE_KEYS)


def test_an_action_is_offered_by_a_key_that_no_label_has_taken() -> None:
    labels = LabelSet("x", "", (Label("one", key="u"), Label("two", key="?")))
    assert (action_key(AnnotationAction.UNDO), action_key(AnnotationAction.UNDO, labels)) == ("u", "backspace")
    assert action_key(AnnotationAction.GUIDE, labels) == "f1"
    every = LabelSet("x", "", tuple(Label(f"l{n}", key=chr(33 + n)) for n in range(94)))
    for action in AnnotationAction:
        assert len(action_key(action, every)) > 1
