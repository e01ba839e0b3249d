"""Judging in a browser: each post does what its page shows, or nothing."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.effect import EffectOutcome
from harness.model.errors import LogFull
from harness.model.judgment import (
    Category,
    Exercise,
    Judgment,
    JudgmentStatus,
    ProposalShown,
    RatingRound,
    TranscriptPolicy,
)
from harness.rating.items import Item
from harness.web.seats import RoomRefresher
from tests.judged_sessions import clips_of, give, judged
from tests.rating_sessions import TALKS, answer_effect, judged_source, proposing_round, rating_session
from tests.unit.web.visitors import Browser, Premises, field_of, item_of

SEEN_BY_SOMEBODY = replace(TALKS[8], reported=None, answered=EffectOutcome.RIGHT)
"""What the device itself tells of at another one."""


def test_a_label_is_saved_before_the_next_item_shows(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    premises.now_s += 30.0
    more = {"comment": "two\r\nlines <b>", "confidence": "3", "plays": "2", "heard_ms": "2500", "sub_flag": "too_much"}
    answer = ann.press("label.partially_correct", page, **more)
    assert (answer.status_code, answer.headers["location"]) == (303, "/judge")
    (row,) = premises.rows
    assert (row.rater, row.category, row.item_id) == ("ann", Category.PARTIALLY_CORRECT, item_of(page))
    assert (row.comment, row.confidence, row.sub_flags) == ("two\nlines <b>", 3, ("too_much",))
    assert (row.plays, row.heard_ms, row.transcript_shown) == (2, 2500, False)
    after = ann.page()
    assert item_of(after) != item_of(page)
    assert "saved as Partially correct" in after
    assert "1 of" in after


def test_impossible_plays_and_times_are_limited(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    premises.now_s += 3.0
    ann.press("label.wrong", page, plays="999999999", heard_ms="86400000")
    (row,) = premises.rows
    assert row.heard_ms == 5000
    assert row.plays <= 50
    page = ann.page()
    ann.press("label.wrong", page, plays="-3", heard_ms="1e9")
    assert (premises.rows[1].plays, premises.rows[1].heard_ms) == (0, 0)


def test_plays_reported_twice_count_once(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    premises.now_s += 60.0
    assert ann.press("draft.quiet", page, plays="1", heard_ms="1000").status_code == 204
    assert ann.press("draft.quiet", page, plays="1", heard_ms="1000").status_code == 204
    ann.press("label.wrong", page, plays="2", heard_ms="1800")
    assert (premises.rows[0].plays, premises.rows[0].heard_ms) == (2, 1800)


def test_a_draft_is_there_again_after_a_reload(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    more = {"comment": 'a "draft" </textarea><script>', "confidence": "2", "sub_flag": "recoverable"}
    assert ann.press("draft.quiet", page, **more).status_code == 204
    reloaded = ann.page()
    assert item_of(reloaded) == item_of(page)
    assert field_of(reloaded, "comment") == more["comment"]
    assert field_of(reloaded, "confidence") == "2"
    assert re.search(r'value="recoverable"[^>]* checked', reloaded)
    assert "<script>" not in reloaded
    assert premises.rows == []


def test_a_draft_that_arrives_late_replaces_no_later_one(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    ann.press("draft.quiet", page, comment="second", change="7.2")
    assert ann.press("draft.quiet", page, comment="first", change="7.1").status_code == 204
    assert field_of(ann.page(), "comment") == "second"
    ann.press("aid.open", page, comment="third", change="7.4")
    ann.press("draft.quiet", page, comment="half", change="7.3")
    assert field_of(ann.page(), "comment") == "third"
    ann.press("draft.quiet", comment="elsewhere", change="8.1")
    assert field_of(ann.page(), "comment") == "elsewhere", "another window"
    ann.press("label.wrong", page, change="7.6")
    assert ann.press("draft.quiet", page, comment="half", change="7.5").status_code == 204
    assert [row.comment for row in premises.rows] == [""]
    assert ann.press("label.wrong", page, change="7.7").status_code == 303, "pressed again, as no answer came"
    assert len(premises.rows) == 1


@pytest.mark.parametrize("change", ["", "7", "7.", "7.x", ".", "7.-1", "7.1.1", "7." + "9" * 5000])
def test_a_draft_without_a_number_is_kept(change: str, ann: Browser) -> None:
    ann.press("draft.quiet", comment="numbered", change="7.5")
    assert ann.press("draft.quiet", comment="kept", change=change).status_code == 204
    assert field_of(ann.page(), "comment") == "kept"


def test_an_old_page_labels_nothing_and_shows_what_is_open(premises: Premises) -> None:
    first, second = premises.visitor("ann"), premises.visitor("ann")
    old = first.page()
    second.press("label.correct")
    answer = first.press("label.wrong", old)
    assert answer.status_code == 409
    assert "Nothing was saved" in answer.text
    assert item_of(answer.text) == item_of(second.page()) != item_of(old)
    assert [row.category for row in premises.rows] == [Category.CORRECT]
    assert first.press("undo", old).status_code == 409
    assert len(premises.rows) == 1


def test_the_same_post_twice_is_one_judgment(premises: Premises, ann: Browser) -> None:
    # A browser sends a form again when its connection broke, and people press twice.
    page = ann.page()
    assert [ann.press("label.correct", page).status_code for _ in range(3)] == [303, 303, 303]
    page = ann.page()
    assert [ann.press("undo", page).status_code for _ in range(2)] == [303, 303]
    assert [row.status for row in premises.rows] == [JudgmentStatus.SUBMITTED, JudgmentStatus.WITHDRAWN]


def test_repeated_post_after_a_restart_counts_once(premises: Premises, ann: Browser) -> None:
    # The answer was lost because the site was killed: what the browser sends again was saved.
    for do in ("label.correct", "skip", "flag.audio_bad", "undo"):
        page, before = ann.page(), len(premises.rows)
        assert ann.press(do, page).status_code == 303
        premises.restart()
        assert ann.press(do, page).status_code == 303, do
        assert len(premises.rows) == before + 1
        assert ann.press("label.wrong", page).status_code == 409
    assert [row.status.value for row in premises.rows] == ["submitted", "skipped", "flagged", "withdrawn"]


def test_a_repeat_does_not_label_again_what_was_taken_back_since(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    ann.press("label.correct", page)
    ann.press("undo")
    premises.restart()
    assert item_of(ann.page()) == item_of(page)
    assert ann.press("label.correct", page).status_code == 303
    assert [row.status.value for row in premises.rows] == ["submitted", "withdrawn"]


def test_two_windows_at_once_give_one_judgment(premises: Premises) -> None:
    windows = [premises.visitor("ann") for _ in range(4)]
    page = windows[0].page()
    words = [field_of(window.page(), "form_word") for window in windows]
    gate = threading.Barrier(len(windows))
    codes: list[int] = []

    def press(number: int) -> None:
        gate.wait()
        category = list(Category)[number].value
        codes.append(windows[number].press(f"label.{category}", page, form_word=words[number]).status_code)

    threads = [threading.Thread(target=press, args=(number,)) for number in range(len(windows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [303, 409, 409, 409]
    assert len(premises.rows) == 1


def test_undo_brings_the_item_and_what_was_said_of_it_back(premises: Premises, ann: Browser) -> None:
    page = ann.page()
    assert "undo" not in page
    ann.press("label.wrong", page, comment="hm", confidence="1")
    assert ann.press("undo").status_code == 303
    reloaded = ann.page()
    assert item_of(reloaded) == item_of(page)
    assert (field_of(reloaded, "comment"), field_of(reloaded, "confidence")) == ("hm", "1")
    ann.press("label.correct", reloaded)
    assert [row.status.value for row in premises.rows] == ["submitted", "withdrawn", "submitted"]


def test_a_restarted_site_goes_on_where_it_was(premises: Premises, ann: Browser) -> None:
    for _ in range(3):
        ann.press("label.correct")
    page = ann.page()
    premises.restart()
    assert item_of(ann.page()) == item_of(page)
    # A page from before the restart still labels the item that it shows, and takes nothing back unseen.
    assert ann.press("undo", page).status_code == 409
    assert ann.press("label.wrong", page).status_code == 303
    assert premises.rows[-1].item_id == item_of(page)
    assert ann.press("label.wrong", page).status_code == 303
    assert len(premises.rows) == 4
    ann.press("undo")
    assert item_of(ann.page()) == item_of(page)


def test_raters_see_nothing_of_each_other(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    ann.press("label.findable", comment="ann-was-here")
    item = premises.rows[0].item_id
    ids: list[str] = []
    while item not in ids:
        page = bob.page()
        ids.append(item_of(page))
        assert not re.search(r"\bann\b", page)
        assert "ann-was-here" not in page
        bob.press("label.correct", page)
    assert [row.rater for row in premises.rows].count("ann") == 1
    assert "done</strong>" in bob.page()


def test_pages_do_not_reveal_the_device(ann: Browser) -> None:
    hidden = re.compile(r"kitchen|\bden\b|s1|\.flac|/tmp|ann or bob|pink|[0-9a-f]{64}|moons-|session", re.IGNORECASE)
    for _ in range(12):
        page = ann.page()
        item = item_of(page)
        if not item:
            break
        text = re.sub(r'name="form_word" value="[^"]*"', "", page)
        assert not hidden.search(text), hidden.search(text)
        for which in ("response", "query"):
            for end in ("", "/picture"):
                answer = ann.client.get(f"/sound/{item}/{which}{end}")
                assert answer.status_code == 200
                headers = " ".join(f"{name}: {value}" for name, value in answer.headers.items())
                assert not hidden.search(headers)
                assert not re.search(rb"kitchen|flac|s1", answer.content[:200])
        assert ann.press("label.correct", page).status_code == 303


def test_pages_of_two_devices_differ_in_nothing_but_ids(tmp_path: Path) -> None:
    sounds = {"kitchen": (44_100, -24.0), "den": (16_000, -2.0)}
    latencies = {"kitchen": (0.91, 0.02), "den": (0.93, 0.12)}
    talks = TALKS[8], SEEN_BY_SOMEBODY
    session = rating_session(tmp_path / "s1", 2, effects=True, talks=talks, sounds=sounds, latencies=latencies)
    premises = Premises(tmp_path, RatingRound(sessions=(str(session),), transcript=TranscriptPolicy.SHOWN))
    ann = premises.visitor("ann")
    pages, heard = [], []
    for _ in range(2):
        page = ann.page()
        heard.append(ann.client.get(f"/sound/{item_of(page)}/response").content)
        pages.append(re.sub(r'value="[^"]*"|[0-9a-f]{12}|data-\w+="[^"]*"', "", page))
        ann.press("label.correct", page)
    frame = re.compile(r'<header class="bar">.*?</header>|<p class="said">.*?</p>|<title>.*?</title>', re.DOTALL)
    first, second = (frame.sub("", page) for page in pages)
    assert "What happened:</strong> it was done" in first
    assert first == second
    rates = {int.from_bytes(sound[24:28], "little") for sound in heard}
    assert rates == {16_000}
    assert abs(len(heard[0]) - len(heard[1])) <= 8
    premises.close()


def test_outsider_is_refused_without_naming_raters(premises: Premises) -> None:
    premises.change_round(raters=("bob", "secret-name"))
    answer = premises.visitor("ann").client.get("/judge")
    assert answer.status_code == 403
    assert "Ask the person who invited you" in answer.text
    assert "secret-name" not in answer.text
    assert "Continue rating" not in answer.text  # it would lead here again
    assert "Log out" in answer.text
    assert premises.visitor("bob").client.get("/judge").status_code == 200


def test_sounds_are_served_in_ranges(ann: Browser) -> None:
    path = f"/sound/{item_of(ann.page())}/response"
    whole = ann.client.get(path)
    assert whole.headers["content-type"] == "audio/wav"
    assert whole.headers["accept-ranges"] == "bytes"
    assert int(whole.headers["content-length"]) == len(whole.content) > 8000
    assert whole.content[:4] == b"RIFF"
    length = len(whole.content)
    for byte_range, first, last in (
        ("0-", 0, length - 1), ("10-19", 10, 19), ("-5", length - 5, length - 1), (f"5-{length * 9}", 5, length - 1)
    ):  # fmt: skip
        part = ann.client.get(path, headers={"range": f"bytes={byte_range}"})
        assert part.status_code == 206
        assert part.content == whole.content[first : last + 1]
        assert part.headers["content-range"] == f"bytes {first}-{last}/{length}"
    for byte_range in (f"{length}-", "-0"):
        none = ann.client.get(path, headers={"range": f"bytes={byte_range}"})
        assert (none.status_code, none.headers["content-range"]) == (416, f"bytes */{length}")
    for odd in ("bytes=5-2", "bytes=-", "bytes=0-1,3-4", "lines=1-2", "bytes=x"):
        assert ann.client.get(path, headers={"range": odd}).content == whole.content


@pytest.mark.parametrize("policy", TranscriptPolicy)
def test_the_transcript_is_sent_only_if_the_round_allows(
    premises: Premises, ann: Browser, policy: TranscriptPolicy
) -> None:
    premises.change_round(transcript=policy)
    page = ann.page()
    assert ("The response as text:" in page) == (policy is TranscriptPolicy.SHOWN)
    ann.press("transcript", page)
    reloaded = ann.page()
    assert ("The response as text:" in reloaded) == (policy is not TranscriptPolicy.NEVER)
    ann.press("label.correct", reloaded)
    assert premises.rows[0].transcript_shown == (policy is not TranscriptPolicy.NEVER)


def test_skip_hold_and_flag_set_a_response_aside(premises: Premises, ann: Browser) -> None:
    ann.press("skip")
    ann.press("hold")
    while premises.rows[-1].status.value != "held":  # what is known is not held
        ann.press("skip")
        ann.press("hold")
    ann.press("flag.privacy")
    skipped = len(premises.rows) - 2
    assert [row.status.value for row in premises.rows] == ["skipped"] * skipped + ["held", "flagged"]
    assert f"{skipped} left for later" in ann.page()
    for do in ("label.nonsense", "flag.nonsense", "nonsense", "", "label", "take"):
        assert ann.press(do).status_code == 400
    assert len(premises.rows) == skipped + 2


def test_the_aid_leads_to_a_category_and_its_way_is_kept(premises: Premises, ann: Browser) -> None:
    ann.press("aid.open")
    page = follow(ann)
    assert "Save and continue" in page
    ann.press("aid.answer.asks_back.no", page)  # of a question that is not asked: nothing
    assert "Save and continue" in ann.page()
    ann.press("aid.back")
    assert "Save and continue" not in ann.page()
    follow(ann)
    assert ann.press("take").status_code == 303
    (row,) = premises.rows
    assert row.category is not None
    assert row.aid_path[0].startswith("recognised=yes")
    assert "aid.answer" not in ann.page()


def follow(rater: Browser) -> str:
    """Gives the first answer to each question of the aid; the page at its end."""
    for _ in range(8):
        page = rater.page()
        answers = re.findall(r'value="(aid\.answer\.[a-z_]+\.[a-z_]+)"', page)
        if not answers:
            break
        assert rater.press(answers[0], page).status_code == 303
    return page


def test_an_exercise_is_explained_before_the_next(premises: Premises, ann: Browser) -> None:
    exercise = Exercise("days", "how many days has a week", "a week has seven days", Category.CORRECT, "All is said.")
    premises.change_round(exercises=(exercise,))
    page = ann.page()
    assert "Exercise 1 of 1" in page
    assert "seven days" not in page
    assert ann.client.get(f"/sound/{item_of(page)}/response").content[:4] == b"RIFF"
    assert ann.press("label.wrong", page).status_code == 303
    explanation = ann.page()
    assert "The guide says: Correct" in explanation
    assert "All is said." in explanation
    assert ann.press("label.wrong", page).status_code == 303  # sent twice
    assert ann.press("go_on").status_code == 303
    reloaded = ann.page()
    assert "Exercise" in reloaded
    assert "again, since too few of your answers were right" in reloaded
    ann.press("label.correct")
    ann.press("go_on")
    assert "Responses: 0 of" in ann.page()


def test_effects_are_shown_and_items_awaiting_one_are_held(premises: Premises, ann: Browser) -> None:
    pages: list[str] = []
    while item_of(page := ann.page()):
        pages.append(page)
        ann.press("label.correct", page, claimed="yes")
    effects = [text for text in pages if "What happened" in text]
    effects_shown = [item.effect for item in premises.room.items if item.effect is not None]
    assert len(effects_shown) == 4
    assert len(effects) == 4 - sum(item.waits_for_effect for item in premises.room.items)
    assert not any("looked" in text for text in effects)
    assert {row.effect_claimed for row in premises.rows} == {True}
    assert "Done for now" in page
    assert ann.press("release_held").status_code == 303
    assert "not known yet" in ann.page()


def test_a_full_disk_keeps_the_item_and_its_draft(
    premises: Premises, monkeypatch: pytest.MonkeyPatch, ann: Browser
) -> None:
    page = ann.page()

    def full(item: Item, row: Judgment) -> None:
        raise LogFull("no room in /secret/place")

    with monkeypatch.context() as patched:
        desk = premises.site._seats["/judge", "ann"].desk
        patched.setattr(desk, "_save", full)
        answer = ann.press("label.correct", page, comment="keep me")
    assert answer.status_code == 503
    assert "Not saved" in answer.text
    assert "secret" not in answer.text
    assert item_of(answer.text) == item_of(page)
    assert field_of(answer.text, "comment") == "keep me"
    assert premises.rows == []
    assert ann.press("label.correct", answer.text).status_code == 303
    assert premises.rows[0].comment == "keep me"


def test_refreshing_the_sessions_keeps_judgments_and_drafts(premises: Premises, ann: Browser) -> None:
    for _ in range(2):
        ann.press("label.correct")
    page = ann.page()
    ann.press("draft.quiet", page, comment="half")
    premises.site.refresher.read_if_due(0.0)
    premises.site.refresher.wait()
    assert premises.site.refresher.number == 1
    reloaded = ann.page()
    assert item_of(reloaded) == item_of(page)
    assert field_of(reloaded, "comment") == "half"
    assert ann.press("label.wrong", reloaded).status_code == 303


def test_finished_rater_soon_sees_newly_answered_effects(premises: Premises) -> None:
    premises.site.refresher = RoomRefresher(premises.room, lambda: premises.now_s)
    ann = premises.visitor("ann")
    while item_of(page := ann.page()):
        ann.press("label.correct", page)
    item = next(item for item in premises.room.items if item.waits_for_effect)
    answer_effect(premises.folder / "s1", item, word=EffectOutcome.RIGHT, observer="dora")
    premises.now_s += 6.0
    ann.page()
    premises.site.refresher.wait()
    assert item_of(ann.page()) == item.id


def test_an_adjudicator_settles_what_raters_disagree_on(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    ann.press("label.correct", comment="fine <i>")
    item = premises.rows[0].item_id
    while item_of(page := bob.page()) != item:
        bob.press("label.correct", page)
    bob.press("label.wrong", page)
    premises.restart()
    ann, zoe = premises.visitor("ann"), premises.visitor("zoe")
    assert zoe.client.get("/judge").headers["location"] == "/adjudicate"
    assert ann.client.get("/adjudicate").headers["location"] == "/judge"
    page = zoe.page("/adjudicate")
    assert "What raters gave" in page
    assert "fine &lt;i&gt;" in page
    assert not re.search(r"\b(ann|bob)\b", page)
    assert (
        ann.press("label.correct", page, "/adjudicate", form_word=field_of(ann.page(), "form_word")).status_code == 403
    )
    assert zoe.press("label.partially_correct", page, "/adjudicate").status_code == 303
    row = premises.rows[-1]
    assert (row.rater, row.category) == ("zoe", Category.PARTIALLY_CORRECT)
    assert set(row.adjudicates) == {
        judgment.id for judgment in premises.rows if judgment.item_id == item and judgment.id != row.id
    }
    assert "All done" in zoe.page("/adjudicate")
    zoe.press("undo", place="/adjudicate")
    assert item_of(zoe.page("/adjudicate")) == item


def test_an_adjudicator_does_not_read_of_plays_that_nobody_counted(premises: Premises) -> None:
    folder = Path(premises.round.sessions[0])
    trial, (attempt, clip) = next(iter(clips_of(folder).items()))
    ratings = (("ann", Category.CORRECT, None), ("bob", Category.WRONG, 2))
    give(folder, (judged(trial, clip, name, label, attempt=attempt, plays=plays) for name, label, plays in ratings))
    premises.restart()
    assert re.findall(r"played [^<]*", premises.visitor("zoe").page("/adjudicate")) == ["played 2 times"]


def test_an_earlier_response_is_found_opened_and_changed(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    assert 'href="/earlier"' not in ann.page()
    first = ann.page()
    ann.press("label.wrong", first, comment="hm <b>")
    ann.press("label.correct")
    waiting = ann.page()
    listing = ann.page("/earlier?words=wrong+hm")
    assert listing.count('value="open.') == 1
    assert "hm &lt;b&gt;" in listing
    assert 'value="open.' not in bob.page("/earlier")
    opening = {"form_word": field_of(listing, "form_word"), "turn": field_of(listing, "turn")}
    for _ in range(2):
        answer = ann.client.post("/judge", data={**opening, "do": f"open.{item_of(first)}"})
        assert answer.status_code == 303
    page = ann.page()
    assert item_of(page) == item_of(first)
    assert "You gave: Wrong." in page
    assert field_of(page, "comment") == "hm <b>"
    assert ann.press("label.correct", waiting).status_code == 409
    assert ann.press("label.findable", page).status_code == 303
    assert item_of(ann.page()) == item_of(waiting)
    changed = premises.rows[-1]
    assert (changed.category, changed.replaces) == (Category.FINDABLE, premises.rows[0].id)
    # Nobody opens what is another rater's, or of an unknown name.
    theirs = bob.page("/earlier")
    bob.client.post("/judge", data={"form_word": field_of(theirs, "form_word"), "do": f"open.{item_of(first)}"})
    assert "You gave" not in bob.page()


def test_browsing_earlier_responses_leaves_them_unchanged(premises: Premises, ann: Browser) -> None:
    met = []
    for _ in range(2):
        met.append(item_of(ann.page()))
        ann.press("label.correct")
    waiting = item_of(ann.page())
    ids = []
    for do in ("earlier", "earlier", "later", "later", "earlier", "leave"):
        assert ann.press(do).status_code == 303
        ids.append(item_of(ann.page()))
    assert ids == [met[1], met[0], met[1], waiting, met[1], waiting]
    assert len(premises.rows) == 2


def test_an_adjudicator_opens_what_raters_agree_on(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    for rater in (ann, bob):
        while item_of(page := rater.page()):
            rater.press("label.correct", page)
    premises.room.refresh()
    zoe = premises.visitor("zoe")
    assert item_of(zoe.page("/adjudicate")) == ""
    listing = zoe.page("/earlier")
    assert "raters agree: Correct" in listing
    match = re.search(r'value="open\.([0-9a-f]+)"', listing)
    assert match is not None
    opening = {"form_word": field_of(listing, "form_word"), "do": f"open.{match[1]}"}
    assert zoe.client.post("/adjudicate", data=opening).status_code == 303
    page = zoe.page("/adjudicate")
    assert "Raters agree on this one." in page
    assert zoe.client.get(f"/sound/{match[1]}/response").status_code == 200
    zoe.press("label.wrong", page, place="/adjudicate")
    row = premises.rows[-1]
    assert (row.category, len(row.adjudicates), row.item_id) == (Category.WRONG, 2, match[1])
    premises.room.refresh()
    assert [
        response.settled.category for response in premises.room._session_items[0].responses if response.settled
    ] == [Category.WRONG]


def test_a_response_that_must_be_heard_takes_a_category_after_its_end(premises: Premises, ann: Browser) -> None:
    premises.change_round(must_hear=True)
    page = ann.page()
    assert "<noscript>" in page
    ann.press("label.wrong", page)
    assert "listen to the whole response" in ann.page()
    assert premises.rows == []
    page = ann.page()
    premises.now_s += 60.0
    assert ann.press("draft.quiet", page, plays="1", heard_ms="60000", heard_end="1").status_code == 204
    ann.press("label.wrong", page)
    assert [row.category for row in premises.rows] == [Category.WRONG]


def test_classifier_proposal_appears_after_the_choice_unless_allowed_earlier(
    premises: Premises, ann: Browser, tmp_path: Path
) -> None:
    source, session = judged_source(tmp_path / "s0"), Path(premises.round.sessions[0])
    premises.round = proposing_round(source, ProposalShown.AFTER, session)
    premises.restart()
    page = ann.page()
    assert "classifier" not in page
    ann.press("label.wrong", page)
    (row,) = premises.rows
    assert row.proposed is not None
    assert row.proposal_shown is ProposalShown.AFTER
    after = ann.page()
    assert re.search(r"the classifier would have proposed [A-Z][a-z ]+ \(\d+ %\); saved as Wrong", after)
    assert "The classifier says" not in after
    ann.press("undo", after)
    assert "The classifier says" in ann.page(), "it has been seen"
    premises.round = proposing_round(source, ProposalShown.BEFORE, session)
    premises.restart()
    page = premises.visitor("bob").page()
    assert re.search(r"The classifier says: [A-Z][a-z ]+ \(\d+ %\)", page)
