"""Annotating in a browser: each post does what its page shows, once, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from harness.annotation.project import AnnotationLog
from harness.model.annotation import (
    Accepted,
    Adjudicated,
    AnnotationRow,
    Labelled,
    LabelProposal,
    Proposed,
    Skipped,
    Struck,
    Withdrawn,
)
from harness.model.errors import LogFull
from harness.model.understanding import Slot
from harness.web.annotators_site import AnnotationSeat, UtteranceSearch
from tests.annotation_projects import CONCEPTS, LABELS, annotation_project, repeated
from tests.unit.annotation.sittings import Bench
from tests.unit.web.annotation.visitors import Premises, heading
from tests.unit.web.visitors import Browser, fields_of


def test_a_page_is_accepted_with_what_is_struck_before_the_next_shows(premises: Premises, ann: Browser) -> None:
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


def test_a_strike_is_kept_over_reloads_and_other_windows(premises: Premises, ann: Browser) -> None:
    assert ann.press("draft.quiet", struck=["1", "3"]).status_code == 204
    assert fields_of(ann.page())["struck"] == ["1", "3"]
    assert ann.press("draft.quiet", struck=["3"]).status_code == 204
    assert fields_of(ann.page())["struck"] == ["3"]
    assert premises.rows == []


def test_an_untouched_page_does_not_overwrite_the_comment_of_another(premises: Premises, ann: Browser) -> None:
    ann.press("go.labelling")
    typed, other = ann.page(), ann.page()
    ann.press("draft.quiet", typed, comment=["a sound"])
    ann.press("save", other, label=["filler"])
    (row,) = premises.rows
    assert isinstance(row, Labelled)
    assert row.comment == "a sound"


def test_labels_are_saved_and_the_proposal_shows_only_then(premises: Premises, ann: Browser) -> None:
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


def test_a_struck_one_is_labelled_by_hand_with_the_proposal_in_sight(ann: Browser) -> None:
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
        (["filler", "booking"], "filler must be the only label"),
        (["yes_please", "information"], "yes_please and information are mutually exclusive"),
        ([], "an utterance needs at least one label"),
    ],
)
def test_forbidden_labels_are_not_saved_and_stay_selected(
    premises: Premises, labels: list[str], why: str, ann: Browser
) -> None:
    ann.press("go.labelling")
    before = heading(ann.page())
    ann.press("save", label=labels, comment=["wait"])
    page = ann.page()
    assert premises.rows == []
    assert why in page
    assert (heading(page), fields_of(page)["comment"]) == (before, ["wait"])
    assert set(fields_of(page).get("label", [])) == set(labels)


def test_the_same_post_twice_is_done_once(premises: Premises, ann: Browser) -> None:
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


def test_an_old_page_saves_nothing_and_says_so(premises: Premises, ann: Browser) -> None:
    old = ann.page()
    ann.press("accept")
    rows_before = premises.rows
    for do in ("accept", "skip", "undo", "draft.quiet"):
        answer = ann.press(do, old, struck=["1"])
        assert answer.status_code == 409
        assert "Nothing was saved" in answer.text
        assert heading(answer.text) == heading(ann.page())
        assert "struck" not in fields_of(answer.text)
    assert premises.rows == rows_before


def test_a_draft_of_saved_labels_does_not_make_its_page_old(premises: Premises, ann: Browser) -> None:
    ann.press("accept")
    bob = premises.visitor("bob")
    bob.press("go.labelling")
    bob.press("save", label=["filler"])
    page = bob.page()
    assert "save again to keep yours" in page
    assert bob.press("draft.quiet", page, label=["filler", "greeting"]).status_code == 204
    assert bob.press("draft.quiet", page, label=["greeting"]).status_code == 204
    assert bob.press("save", page, label=["greeting"]).status_code == 303
    last = premises.rows[-1]
    assert isinstance(last, Labelled)
    assert (last.annotator, last.intents) == ("bob", ("greeting",))


@pytest.mark.parametrize(
    "later",
    [LabelProposal("u0", ("greeting",)), LabelProposal("u0", ("booking",), slots=(Slot("city", None, 2, 3),))],
    ids=["labels", "slots"],
)
def test_a_page_of_another_proposal_accepts_nothing(tmp_path: Path, later: LabelProposal) -> None:
    talk = [("to lyon please", ("booking",))]
    with closing(Premises(tmp_path, annotation_project(tmp_path / "talk", talk, LABELS + CONCEPTS))) as premises:
        ann = premises.visitor("ann")
        page = ann.page()
        log = AnnotationLog(premises.project)
        log.add([Proposed("b2", "tri-training", (later,))])
        log.close()
        premises.room.refresh()
        premises.site.refresher.announce_change()
        assert ann.press("accept", page).status_code == 409
        assert premises.rows == []
        assert ann.press("accept").status_code == 303


def test_a_page_goes_on_after_a_restart_of_the_site(premises: Premises, ann: Browser) -> None:
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


def test_undo_brings_a_page_back_as_a_whole(premises: Premises, ann: Browser) -> None:
    ann.press("accept", struck=["2", "3"])
    accepted, struck = premises.rows
    ann.press("undo")
    (withdrawn,) = premises.rows[2:]
    assert isinstance(withdrawn, Withdrawn)
    assert set(withdrawn.rows) == {row.id for row in (accepted, struck)}
    page = ann.page()
    assert (heading(page), fields_of(page)["struck"]) == ("yes_please", ["2", "3"])


def refuse_rows(log: AnnotationLog, rows: Sequence[AnnotationRow]) -> None:
    raise LogFull("no room in /secret/place")


def test_a_full_disk_keeps_the_page_with_its_draft(
    premises: Premises, monkeypatch: pytest.MonkeyPatch, ann: Browser
) -> None:
    page = ann.page()

    with monkeypatch.context() as patched:
        patched.setattr(AnnotationLog, "add", refuse_rows)
        answer = ann.press("accept", page, struck=["3"])
    assert answer.status_code == 503
    assert "Not saved" in answer.text
    assert "secret" not in answer.text
    assert (heading(answer.text), fields_of(answer.text)["struck"]) == (heading(page), ["3"])
    assert premises.rows == []
    assert ann.press("accept", answer.text).status_code == 303
    assert [type(row) for row in premises.rows] == [Accepted, Struck]


def test_unknown_buttons_and_lines_do_nothing(premises: Premises, ann: Browser) -> None:
    assert ann.press("destroy").status_code == 400
    ann.press("draft.quiet", struck=["99", "-1", "x", "0"], label=["nonsense"])
    assert "struck" not in fields_of(ann.page())
    ann.press("go.labelling")
    ann.press("save", label=["nonsense"])
    assert premises.rows == []
    assert "an utterance needs at least one label" in ann.page()


def test_annotators_do_not_see_each_others_work(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    ann.press("accept", struck=["1"])
    for _ in range(4):
        page = bob.page()
        assert "struck" not in fields_of(page)
        assert not re.search(r"\bann\b", page)
        bob.press("accept", page)
    labelled = {
        name: {utterance for row in premises.rows if isinstance(row, Accepted) and row.annotator == name
               for utterance in row.utterances}
        for name in ("ann", "bob")
    }  # fmt: skip
    assert (len(labelled["ann"]), len(labelled["bob"])) == (3, 7)
    assert not labelled["ann"] & labelled["bob"], "the second one labels them by hand, without the proposal"
    assert "5 to label" in bob.page()


def test_adjudicator_sees_both_choices_without_names(premises: Premises) -> None:
    for name, label in (("ann", "greeting"), ("bob", "filler")):
        browser = premises.visitor(name)
        browser.press("go.labelling")
        while heading(page := browser.page()) != "er":
            browser.press("skip", page)
        browser.press("save", page, label=[label], comment=[f"{label} it is"])
    zoe = premises.visitor("zoe")
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
    ann = premises.visitor("ann")
    assert ann.press("save", page, "/adjudicate", label=["filler"]).status_code in (403, 409)


def test_skipped_utterances_come_last_and_the_end_is_shown(premises: Premises, ann: Browser) -> None:
    ann.press("go.labelling")
    ann.press("skip")
    assert isinstance(premises.rows[0], Skipped)
    assert "1 left for later" in ann.page()
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


def test_foreign_text_stays_text(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script> [/red] \u202egnp \"' &lt;"
    labels = LABELS.replace("Asks for something to be told.", '"<b>\'{{ 7 * 7 }}"')
    project = annotation_project(tmp_path / "bad", [(bad, ("information",)), (bad, None)], labels, id="<i>")
    with closing(Premises(tmp_path, project)) as site:
        ann = site.visitor("ann")
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


def test_non_annotator_is_refused_without_naming_others(tmp_path: Path) -> None:
    project = annotation_project(tmp_path / "closed", repeated(1), annotators=("bob", "cem"))
    with closing(Premises(tmp_path, project)) as site:
        answer = site.visitor("ann").client.get("/annotate")
        assert answer.status_code == 403
        assert "not an annotator of this project" in answer.text
        assert "cem" not in answer.text
        assert site.visitor("bob").client.get("/annotate").status_code == 200


def test_nobody_gets_in_or_posts_from_elsewhere(premises: Premises, ann: Browser) -> None:
    assert ann.press("accept", form_word="forged").status_code == 403
    fields = {name: values[0] for name, values in fields_of(ann.page()).items()} | {"do": "accept"}
    assert ann.client.post("/annotate", data=fields, headers={"origin": "http://evil.example"}).status_code == 403
    assert premises.rows == []
    ann.client.cookies.clear()
    assert ann.client.get("/annotate").headers["location"] == "/login"
    assert ann.client.post("/annotate", data=fields).status_code == 401
    assert premises.rows == []


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


def test_labels_are_changed_and_what_was_in_sight_comes_back(premises: Premises, ann: Browser) -> None:
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


@pytest.mark.parametrize("is_saved", [True, False])
def test_time_on_a_reopened_utterance_counts_only_there(premises: Premises, is_saved: bool) -> None:
    bench = Bench()
    seat = AnnotationSeat(premises.room, bench.desk(), search=UtteranceSearch())
    bench.wait(seat.desk, 10)
    assert seat.search is not None
    seat.search.relabelling = bench.desk(again=["u1"])
    bench.wait(seat.desk, 100)
    if is_saved:
        seat.desk.toggle("play")
        seat.desk.save()
    while seat.search is not None:
        seat.back()
    bench.wait(seat.desk, 5)
    seat.desk.toggle("stop")
    seat.desk.save()
    own_row = bench.rows[-1]
    assert isinstance(own_row, Labelled)
    assert own_row.time_s == 15


def test_undo_takes_back_just_the_change(premises: Premises, ann: Browser) -> None:
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


def test_leaving_a_reopened_utterance_changes_nothing(premises: Premises, ann: Browser) -> None:
    label_by_hand(ann, "u5", "filler", "a sound")
    rows_before = premises.rows
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
    assert premises.rows == rows_before


def test_utterances_of_others_cannot_be_found_or_opened(tmp_path: Path) -> None:
    project = annotation_project(tmp_path / "named", repeated(2), annotators=("ann", "bob"))
    with closing(Premises(tmp_path, project)) as site:
        ann, bob = site.visitor("ann"), site.visitor("bob")
        utterances = {name: set(listed(look_for(annotator, "e"))) for name, annotator in (("ann", ann), ("bob", bob))}
        assert utterances["ann"]
        assert utterances["bob"]
        assert not utterances["ann"] & utterances["bob"]
        page = ann.page()
        for utterance in (*utterances["bob"], "u999", "", "u0\0"):
            answer = ann.press(f"again.{utterance}", page)
            assert answer.status_code == 400
            assert listed(answer.text) == listed(page)
        assert site.rows == []


def test_labels_of_another_do_not_show(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    label_by_hand(ann, "u5", "filler", "ann-was-here")
    page = look_for(bob, "er")
    assert listed(page)["u5"] == "not labelled yet"
    bob.press("again.u5", page)
    bobs_page = bob.page()
    assert "label" not in fields_of(bobs_page)
    for text in (page, bobs_page):
        assert "ann-was-here" not in text
        assert not re.search(r"\bann\b", text)


def test_an_adjudicator_finds_all_labels_and_settles_them_finally(premises: Premises) -> None:
    ann, zoe = premises.visitor("ann"), premises.visitor("zoe")
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


def test_search_page_allows_only_its_own_actions(premises: Premises, ann: Browser) -> None:
    page = look_for(ann, "yes")
    for do in ("accept", "save", "skip", "undo", "go.labelling", "destroy", "again"):
        assert ann.press(do, page).status_code == 400
    assert ann.press("draft.quiet", page, has_draft=["1"], struck=["1"]).status_code == 204
    ann.press("back")
    assert "struck" not in fields_of(ann.page())
    assert premises.rows == []
    assert ann.press("again.u0").status_code == 400, "nothing is looked for"


def test_an_old_page_opens_nothing_and_a_forged_one_neither(ann: Browser) -> None:
    old = look_for(ann, "yes")
    ann.press("again.u0", old)
    assert ann.press("again.u1", old).status_code == 409
    assert "u0" in ann.page()
    assert ann.press("save", form_word="forged", label=["booking"]).status_code == 403
    ann.press("back")
    assert ann.press("find", form_word="forged", words=["x"]).status_code == 403
    assert listed(ann.page()) == listed(old)


def test_repeated_change_is_saved_once(premises: Premises, ann: Browser) -> None:
    ann.press("again.u5", look_for(ann, "er"))
    page = ann.page()
    for _ in range(2):
        assert ann.press("save", page, label=["filler"]).status_code == 303
    assert len(premises.rows) == 1


def test_restart_closes_a_reopened_utterance_and_saves_nothing(premises: Premises, ann: Browser) -> None:
    ann.press("again.u5", look_for(ann, "er"))
    page = ann.page()
    premises.restart()
    answer = ann.press("save", page, label=["filler"])
    assert answer.status_code == 409
    assert "Nothing was saved" in answer.text
    assert premises.rows == []


def test_a_full_disk_keeps_what_was_changed(premises: Premises, monkeypatch: pytest.MonkeyPatch, ann: Browser) -> None:
    ann.press("again.u5", look_for(ann, "er"))

    with monkeypatch.context() as patched:
        patched.setattr(AnnotationLog, "add", refuse_rows)
        answer = ann.press("save", label=["filler"])
    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert fields_of(answer.text)["label"] == ["filler"]
    assert ann.press("save", answer.text).status_code == 303
    assert len(premises.rows) == 1


def test_hostile_search_words_are_escaped_and_long_results_counted(tmp_path: Path) -> None:
    project = annotation_project(tmp_path / "many", [(f"well {n}", None) for n in range(60)])
    with closing(Premises(tmp_path, project)) as site:
        ann = site.visitor("ann")
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


def span(first: str, last: str = "") -> dict[str, Any]:
    """The fields that hold the numbers of words."""
    return {"from": first, "to": last}


def test_words_are_marked_as_slots_and_disputed_ones_shown(tmp_path: Path) -> None:
    project = annotation_project(
        tmp_path / "talk", [("two nights in new york", None)], LABELS + CONCEPTS, per_utterance=2
    )
    with closing(Premises(tmp_path, project)) as site:
        for name, spans in (("ann", [("nights", "1", "2"), ("city", "4", "5")]), ("bob", [("city", "4", "5")])):
            browser = site.visitor(name)
            for concept, first, last in spans:
                browser.press(f"mark.{concept}", **span(first, last), label=["booking"])
            assert "·city" in heading(browser.page())
            assert fields_of(browser.page())["label"] == ["booking"], "labels stay with a mark"
            browser.press("mark.date", **span("9"))
            assert "the utterance has words 1 to 5" in browser.page()
            page = browser.page()
            site.restart()
            browser.press("save", page)
        city, nights = Slot("city", None, 3, 5), Slot("nights", None, 0, 2)
        labelled = [row for row in site.rows if isinstance(row, Labelled)]
        assert [row.slots for row in labelled] == [(nights, city), (city,)], "a restart loses no mark"
        assert [row.time_s for row in labelled] == [None, None], "nor does it shorten a time"
        zoe = site.visitor("zoe")
        page = zoe.page("/adjudicate")
        assert "= city: new york" in page
        assert "≠ nights: two nights" in page
        assert ">new</span>" in page
        assert "·city" in heading(page), "what both marked is marked already"
        zoe.press("clear", place="/adjudicate", **span("5"))
        assert "·city" not in heading(zoe.page("/adjudicate"))
        zoe.press("save", place="/adjudicate", label=["booking"])
        assert isinstance(site.rows[-1], Adjudicated)
        assert site.rows[-1].slots == ()
