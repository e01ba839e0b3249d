"""Annotating in a browser: each post does what its page shows, once, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from harness.annotation.project import AnnotationLog
from harness.model.annotation import Accepted, Adjudicated, AnnotationRow, Labelled, Skipped, Struck, Withdrawn
from harness.model.errors import LogFull
from tests.annotation_projects import LABELS, annotation_project, repeated
from tests.unit.web.annotation.visitors import Premises, fields_of, heading


def test_a_page_is_accepted_with_what_is_struck_before_the_next_shows(premises: Premises) -> None:
    ann = premises.annotator("ann")
    page = ann.page()
    assert heading(page) == "yes_please"
    assert "Says yes to what was asked or offered" in page
    answer = ann.press("accept", page, struck=["2"])
    assert (answer.status_code, answer.headers["location"]) == (303, "/annotate")
    accepted, struck = premises.rows
    assert isinstance(accepted, Accepted)
    assert isinstance(struck, Struck)
    assert (accepted.annotator, accepted.intents, accepted.batch) == ("ann", ("yes_please",), "b1")
    assert accepted.utterances == ("u0", "u1", "u7")
    assert struck.utterances == ("u6",)
    assert accepted.page == struck.page
    after = ann.page()
    assert heading(after) != "yes_please"
    assert "accepted 3, struck 1" in after
    assert "3 of 12 done" in after


def test_a_strike_is_kept_over_reloads_and_other_windows(premises: Premises) -> None:
    ann = premises.annotator("ann")
    assert ann.press("draft.quiet", struck=["1", "3"]).status_code == 204
    assert fields_of(ann.page())["struck"] == ["1", "3"]
    assert ann.press("draft.quiet", struck=["3"]).status_code == 204
    assert fields_of(ann.page())["struck"] == ["3"]
    assert premises.rows == []


def test_labels_are_saved_and_the_proposal_shows_only_then(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("go.labelling")
    page = ann.page()
    assert heading(page) in ("er", "er 1")
    assert "Proposed" not in page
    ann.press("save", page, label=["greeting", "booking"], comment=["two\r\nlines <b>"])
    (row,) = premises.rows
    assert isinstance(row, Labelled)
    assert row.utterance in page
    assert (row.intents, row.comment) == (("booking", "greeting"), "two\nlines <b>")
    assert heading(ann.page()) not in (heading(page), "yes please")


def test_a_struck_one_is_labelled_by_hand_with_the_proposal_in_sight(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("accept", struck=["1"])
    ann.press("go.labelling")
    pages = [ann.page()]
    while heading(pages[-1]) != "yes please":
        assert "Proposed" not in pages[-1]
        ann.press("save", pages[-1], label=["filler"])
        pages.append(ann.page())
    assert "you struck what was proposed" in pages[-1]
    assert "Proposed: <strong>yes_please</strong>" in pages[-1]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (["filler", "booking"], "filler stands alone"),
        (["yes_please", "information"], "yes_please and information exclude each other"),
        ([], "an utterance has at least one label"),
    ],
)
def test_what_the_rules_forbid_is_not_saved_and_stays_chosen(premises: Premises, labels: list[str], why: str) -> None:
    ann = premises.annotator("ann")
    ann.press("go.labelling")
    before = heading(ann.page())
    ann.press("save", label=labels, comment=["wait"])
    page = ann.page()
    assert premises.rows == []
    assert why in page
    assert (heading(page), fields_of(page)["comment"]) == (before, ["wait"])
    assert set(fields_of(page).get("label", [])) == set(labels)


def test_the_same_post_twice_is_done_once(premises: Premises) -> None:
    ann = premises.annotator("ann")
    page = ann.page()
    for _ in range(2):
        assert ann.press("accept", page, struck=["1"]).status_code == 303
    assert len(premises.rows) == 2
    ann.press("go.labelling")
    page = ann.page()
    for _ in range(2):
        assert ann.press("save", page, label=["filler"]).status_code == 303
    assert len(premises.rows) == 3
    before = len(premises.rows)
    page = ann.page()
    for _ in range(2):
        assert ann.press("undo", page).status_code == 303
    assert len(premises.rows) == before + 1


def test_an_old_page_saves_nothing_and_says_so(premises: Premises) -> None:
    ann = premises.annotator("ann")
    old = ann.page()
    ann.press("accept")
    given = premises.rows
    for do in ("accept", "skip", "undo", "draft.quiet"):
        answer = ann.press(do, old, struck=["1"])
        assert answer.status_code == 409
        assert "Nothing was saved" in answer.text
        assert heading(answer.text) == heading(ann.page())
        assert "struck" not in fields_of(answer.text)
    assert premises.rows == given


def test_a_page_goes_on_after_a_restart_of_the_site(premises: Premises) -> None:
    ann = premises.annotator("ann")
    page = ann.page()
    premises.restart()
    assert ann.press("accept", page, struck=["4"]).status_code == 303
    assert [type(row) for row in premises.rows] == [Accepted, Struck]
    # The same once more, by a browser that did not hear of it: the turn is another one by now.
    assert ann.press("accept", page, struck=["4"]).status_code == 303
    premises.restart()
    assert ann.press("accept", page, struck=["4"]).status_code == 303
    assert ann.press("accept", page, struck=["3"]).status_code == 409
    assert len(premises.rows) == 2


def test_undo_brings_a_page_back_as_a_whole(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("accept", struck=["2", "3"])
    accepted, struck = premises.rows
    ann.press("undo")
    (withdrawn,) = premises.rows[2:]
    assert isinstance(withdrawn, Withdrawn)
    assert set(withdrawn.rows) == {row.id for row in (accepted, struck)}
    page = ann.page()
    assert (heading(page), fields_of(page)["struck"]) == ("yes_please", ["2", "3"])


def test_a_full_disk_keeps_the_page_with_its_draft(premises: Premises, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = premises.annotator("ann")
    page = ann.page()

    def full(log: AnnotationLog, rows: Sequence[AnnotationRow]) -> None:
        raise LogFull("no room in /secret/place")

    with monkeypatch.context() as patched:
        patched.setattr(AnnotationLog, "append_all", full)
        answer = ann.press("accept", page, struck=["3"])
    assert answer.status_code == 503
    assert "Not saved" in answer.text
    assert "secret" not in answer.text
    assert (heading(answer.text), fields_of(answer.text)["struck"]) == (heading(page), ["3"])
    assert premises.rows == []
    assert ann.press("accept", answer.text).status_code == 303
    assert [type(row) for row in premises.rows] == [Accepted, Struck]


def test_what_is_no_button_or_no_line_does_nothing(premises: Premises) -> None:
    ann = premises.annotator("ann")
    assert ann.press("destroy").status_code == 400
    ann.press("draft.quiet", struck=["99", "-1", "x", "0"], label=["nonsense"])
    assert "struck" not in fields_of(ann.page())
    ann.press("go.labelling")
    ann.press("save", label=["nonsense"])
    assert premises.rows == []
    assert "an utterance has at least one label" in ann.page()


def test_annotators_do_not_meet(premises: Premises) -> None:
    ann, bob = premises.annotator("ann"), premises.annotator("bob")
    ann.press("accept", struck=["1"])
    for _ in range(4):
        page = bob.page()
        assert "struck" not in fields_of(page)
        assert not re.search(r"\bann\b", page)
        bob.press("accept", page)
    given = {
        name: {one for row in premises.rows if isinstance(row, Accepted) and row.annotator == name
               for one in row.utterances}
        for name in ("ann", "bob")
    }  # fmt: skip
    assert (len(given["ann"]), len(given["bob"])) == (3, 7)
    assert not given["ann"] & given["bob"], "the second one labels them by hand, without the proposal"
    assert "5 to label" in bob.page()


def test_who_settles_sees_both_without_names(premises: Premises) -> None:
    for name, label in (("ann", "greeting"), ("bob", "filler")):
        browser = premises.annotator(name)
        browser.press("go.labelling")
        while heading(page := browser.page()) != "er":
            browser.press("skip", page)
        browser.press("save", page, label=[label], comment=[f"{label} it is"])
    zoe = premises.annotator("zoe")
    assert zoe.client.get("/annotate").headers["location"] == "/adjudicate"
    page = zoe.page("/adjudicate")
    assert heading(page) == "er"
    for words in ("≠ </strong>", "annotator 1", "annotator 2", "greeting it is", "filler it is"):
        assert words in page.replace("greeting</strong>", "</strong>").replace("filler</strong>", "</strong>")
    assert not re.search(r"\b(ann|bob)\b", page)
    zoe.press("save", page, "/adjudicate", label=["filler"])
    row = premises.rows[-1]
    assert isinstance(row, Adjudicated)
    assert (row.annotator, row.intents, len(row.inputs)) == ("zoe", ("filler",), 2)
    assert "All done" in zoe.page("/adjudicate")
    ann = premises.annotator("ann")
    assert ann.press("save", page, "/adjudicate", label=["filler"]).status_code in (403, 409)


def test_skipping_and_the_end(premises: Premises) -> None:
    ann = premises.annotator("ann")
    ann.press("go.labelling")
    ann.press("skip")
    assert isinstance(premises.rows[0], Skipped)
    assert "1 left for the end" in ann.page()
    for _ in range(20):
        page = ann.page()
        if "All done" in page:
            break
        if 'value="accept"' in page:
            ann.press("accept", page)
        else:
            ann.press("save", page, label=["filler"])
    assert "12 of 12 are done" in ann.page()
    assert 'name="has_draft"' not in ann.page()


def test_foreign_text_stays_text(premises: Premises) -> None:
    bad = "<script>alert(1)</script> [/red] \u202egnp \"' &lt;"
    labels = LABELS.replace("Asks for something to be told.", '"<b>\'{{ 7 * 7 }}"')
    project = annotation_project(
        premises.project.parent / "bad", [(bad, ("information",)), (bad, None)], labels, id="<i>"
    )
    made = Premises(project.parent, project)
    ann = made.annotator("ann")
    ann.press("draft.quiet")
    pages = [ann.page()]
    ann.press("go.labelling")
    pages += [ann.page(), ann.page("/guide"), ann.page("/instructions")]
    for page in pages:
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "<b>'" not in page
    assert "{{ 7 * 7 }}" in pages[2]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; [/red] \\u202egnp" in pages[0]
    made.close()


def test_who_is_no_annotator_of_the_project_is_told(premises: Premises) -> None:
    project = annotation_project(premises.project.parent / "closed", repeated(1), annotators=("bob", "cem"))
    made = Premises(project.parent, project)
    answer = made.annotator("ann").client.get("/annotate")
    assert answer.status_code == 403
    assert "no annotator of this project" in answer.text
    assert "cem" not in answer.text
    assert made.annotator("bob").client.get("/annotate").status_code == 200
    made.close()


def test_nobody_gets_in_or_posts_from_elsewhere(premises: Premises) -> None:
    ann = premises.annotator("ann")
    assert ann.press("accept", form_word=["forged"]).status_code == 403
    fields = {name: values[0] for name, values in fields_of(ann.page()).items()} | {"do": "accept"}
    assert ann.client.post("/annotate", data=fields, headers={"origin": "http://evil.example"}).status_code == 403
    assert premises.rows == []
    ann.client.cookies.clear()
    assert ann.client.get("/annotate").headers["location"] == "/login"
    assert ann.client.post("/annotate", data=fields).status_code == 401
    assert premises.rows == []
