"""Finding utterances in a browser, to label them again: one's own only, and only what the page shows is done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

import pytest

from harness.annotation.project import AnnotationLog
from harness.model.annotation import Adjudicated, AnnotationRow, Labelled, Withdrawn
from harness.model.errors import LogFull
from tests.annotation_projects import annotation_project, repeated
from tests.unit.web.annotation.visitors import Browser, Premises, fields_of, heading

FOUND = re.compile(r'<button class="line" name="do" value="again\.(u\d+)".*?<span class="quiet">(.*?)</span></button>')


def listed(page: str) -> dict[str, str]:
    """Utterance → the labels that it is listed with."""
    return {utterance: unescape(labels) for utterance, labels in FOUND.findall(page)}


def look_for(browser: Browser, words: str, place: str = "/annotate") -> str:
    """The page of what is found."""
    browser.press("find", place=place)
    assert browser.press("find", place=place, words=[words]).status_code == 303
    return browser.page(place)


def label_by_hand(browser: Browser, utterance: str, label: str, comment: str = "") -> None:
    browser.press("go.labelling")
    while utterance not in (page := browser.page()):
        browser.press("skip", page)
    browser.press("save", page, label=[label], comment=[comment])


def test_labels_are_changed_and_what_was_in_sight_comes_back(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("accept", struck=["2"])
    ann.press("draft.quiet", struck=["1"])
    before = heading(ann.page())
    page = look_for(ann, "YES please")
    assert listed(page) == {"u0": "yes_please", "u6": "not labelled yet"}
    assert ann.press("again.u0", page).status_code == 303
    page = ann.page()
    assert fields_of(page)["label"] == ["yes_please"]
    ann.press("save", page, label=["yes_please", "booking"], comment=["and a room"])
    row = premises.rows[-1]
    assert isinstance(row, Labelled)
    assert (row.annotator, row.utterance, row.intents) == ("ann", "u0", ("booking", "yes_please"))
    page = ann.page()
    assert "saved as booking#yes_please" in page
    assert listed(page)["u0"] == "booking + yes_please"
    ann.press("back", page)
    assert (heading(ann.page()), fields_of(ann.page())["struck"]) == (before, ["1"])


def test_undo_takes_back_just_the_change(premises: Premises) -> None:
    ann = premises.annotator("ann")
    label_by_hand(ann, "u5", "filler")
    first = premises.rows[-1]
    ann.press("again.u5", look_for(ann, "er"))
    ann.press("save", label=["greeting"])
    changed = premises.rows[-1]
    assert ann.press("undo").status_code == 303
    withdrawn = premises.rows[-1]
    assert isinstance(first, Labelled)
    assert isinstance(changed, Labelled)
    assert isinstance(withdrawn, Withdrawn)
    assert withdrawn.rows == (changed.id,)
    page = ann.page()
    assert fields_of(page)["label"] == ["greeting"], "it is in sight again as it was saved"
    ann.press("back", page)
    assert listed(ann.page())["u5"] == "filler"
    assert "Undo" not in ann.page(), "what was done before is not of this"


def test_what_is_left_is_left_as_it_was(premises: Premises) -> None:
    ann = premises.annotator("ann")
    label_by_hand(ann, "u5", "filler", "a sound")
    given = premises.rows
    page = look_for(ann, "u5")
    assert list(listed(page)) == ["u5"], "an id is found, too"
    ann.press("again.u5", page)
    page = ann.page()
    assert (fields_of(page)["label"], fields_of(page)["comment"]) == (["filler"], ["a sound"])
    ann.press("draft.quiet", page, label=["booking"])
    assert fields_of(ann.page())["label"] == ["booking"], "a reload has the draft"
    ann.press("back")
    assert listed(ann.page()) == {"u5": "filler"}
    ann.press("again.u5")
    ann.press("save")  # just so
    assert "kept as filler" in ann.page()
    ann.press("back")
    assert listed(ann.page()) == {}
    assert premises.rows == given


def test_the_rules_hold_there_too(premises: Premises) -> None:
    ann = premises.annotator("ann")
    label_by_hand(ann, "u5", "filler")
    given = premises.rows
    ann.press("again.u5", look_for(ann, "er"))
    ann.press("save", label=["filler", "booking"])
    page = ann.page()
    assert "filler stands alone" in page
    assert premises.rows == given


def test_nobody_finds_or_opens_what_is_of_others(premises: Premises) -> None:
    project = annotation_project(premises.project.parent / "named", repeated(2), annotators=("ann", "bob"))
    made = Premises(project.parent, project)
    try:
        ann, bob = made.annotator("ann"), made.annotator("bob")
        own = {name: set(listed(look_for(one, "e"))) for name, one in (("ann", ann), ("bob", bob))}
        assert own["ann"]
        assert own["bob"]
        assert not own["ann"] & own["bob"]
        page = ann.page()
        for utterance in (*own["bob"], "u999", "", "u0\0"):
            answer = ann.press(f"again.{utterance}", page)
            assert answer.status_code == 400
            assert listed(answer.text) == listed(page)
        assert made.rows == []
    finally:
        made.close()


def test_labels_of_another_do_not_show(premises: Premises) -> None:
    ann, bob = premises.annotator("ann"), premises.annotator("bob")
    label_by_hand(ann, "u5", "filler", "ann-was-here")
    page = look_for(bob, "er")
    assert listed(page)["u5"] == "not labelled yet"
    bob.press("again.u5", page)
    opened = bob.page()
    assert "label" not in fields_of(opened)
    for text in (page, opened):
        assert "ann-was-here" not in text
        assert not re.search(r"\bann\b", text)


def test_who_settles_finds_what_anybody_labelled_and_it_is_final(premises: Premises) -> None:
    ann, zoe = premises.annotator("ann"), premises.annotator("zoe")
    label_by_hand(ann, "u5", "filler")
    assert listed(look_for(zoe, "e", "/adjudicate")) == {"u5": "not settled"}, "nobody labelled the others"
    zoe.press("again.u5", place="/adjudicate")
    zoe.press("save", place="/adjudicate", label=["greeting"])
    row = premises.rows[-1]
    assert isinstance(row, Adjudicated)
    assert (row.annotator, row.utterance, row.intents) == ("zoe", "u5", ("greeting",))
    page = zoe.page("/adjudicate")
    assert listed(page)["u5"] == "greeting"
    assert not re.search(r"\bann\b", page)


def test_only_what_the_list_shows_is_done(premises: Premises) -> None:
    ann = premises.annotator("ann")
    page = look_for(ann, "yes")
    for do in ("accept", "save", "skip", "undo", "go.labelling", "destroy", "again"):
        assert ann.press(do, page).status_code == 400
    assert ann.press("draft.quiet", page, has_draft=["1"], struck=["1"]).status_code == 204
    ann.press("back")
    assert "struck" not in fields_of(ann.page())
    assert premises.rows == []
    assert ann.press("again.u0").status_code == 400, "nothing is looked for"


def test_an_old_page_opens_nothing_and_a_forged_one_neither(premises: Premises) -> None:
    ann = premises.annotator("ann")
    old = look_for(ann, "yes")
    ann.press("again.u0", old)
    assert ann.press("again.u1", old).status_code == 409
    assert "u0" in ann.page()
    assert ann.press("save", form_word=["forged"], label=["booking"]).status_code == 403
    ann.press("back")
    assert ann.press("find", form_word=["forged"], words=["x"]).status_code == 403
    assert listed(ann.page()) == listed(old)


def test_sent_twice_it_is_done_once(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("again.u5", look_for(ann, "er"))
    page = ann.page()
    for _ in range(2):
        assert ann.press("save", page, label=["filler"]).status_code == 303
    assert len(premises.rows) == 1


def test_a_restart_of_the_site_goes_back_to_what_is_to_be_done(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("again.u5", look_for(ann, "er"))
    page = ann.page()
    premises.restart()
    answer = ann.press("save", page, label=["filler"])
    assert answer.status_code == 409
    assert "Nothing was saved" in answer.text
    assert premises.rows == []


def test_a_full_disk_keeps_what_was_changed(premises: Premises, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = premises.annotator("ann")
    ann.press("again.u5", look_for(ann, "er"))

    def full(log: AnnotationLog, rows: Sequence[AnnotationRow]) -> None:
        raise LogFull("no room in /secret/place")

    with monkeypatch.context() as patched:
        patched.setattr(AnnotationLog, "append_all", full)
        answer = ann.press("save", label=["filler"])
    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert fields_of(answer.text)["label"] == ["filler"]
    assert ann.press("save", answer.text).status_code == 303
    assert len(premises.rows) == 1


def test_foreign_words_stay_words_and_too_many_are_told(premises: Premises) -> None:
    project = annotation_project(premises.project.parent / "many", [(f"well {n}", None) for n in range(60)])
    made = Premises(project.parent, project)
    try:
        ann = made.annotator("ann")
        page = look_for(ann, "well")
        assert len(listed(page)) == 50
        assert "60 utterances of yours have" in page
        assert "the first 50" in page
        page = look_for(ann, '<script>"\u202e' + "x" * 5000)
        assert '<script>"' not in page
        assert "\u202e" not in page
        assert "No utterance of yours has" in page
        assert len(page) < 6000
        assert "No utterance" not in look_for(ann, "   ")
    finally:
        made.close()
