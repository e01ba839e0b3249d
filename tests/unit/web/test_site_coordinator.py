"""The coordinator's page: who may see it, what it tells, and shares that move."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.invite import command as invite
from harness.model.judgment import Category, GoldItem, StopRule
from harness.rating.rater_queue import raters_by_item
from harness.web.invitations import Invitations
from tests.known import known
from tests.unit.web.visitors import Browser, Premises, field_of, item_of

ROUND = {
    "id": "spring",
    "raters": ("ann", "bob", "<cem>"),
    "raters_per_item": 1,
    "gold": (GoldItem("s1", "moons-kitchen-1", Category.CORRECT),),
    "stop": StopRule(1, 0.5),
}


@pytest.fixture
def carla(premises: Premises) -> Browser:
    """The coordinator of a round with shares."""
    premises.change_round(**ROUND)
    premises.tokens |= premises.invitations.invite(("carla",), 30, coordinator=True)
    return premises.visitor("carla")


def row_of(page: str, rater: str) -> dict[str, str]:
    """The cells of a rater's line, by the heads of their columns."""
    (line,) = [row for row in page.split("<tr>") if f'<th scope="row">{rater}' in row]
    heads = re.findall(r'<th scope="col">([^<]*)</th>', page)
    cells = [re.sub(r"\s+", " ", re.sub("<[^>]*>", "", cell)).strip() for cell in line.split("<td>")]
    return dict(zip(heads, cells, strict=True))


def share_of(page: str) -> int:
    """How many responses a rater's page counts in all."""
    return int(known(re.search(r"of (\d+) done", page))[1])


def test_the_page_shows_progress_and_stopped_raters(premises: Premises, carla: Browser) -> None:
    ann = premises.visitor("ann")
    while item_of(page := ann.page()):
        ann.press("label.wrong", page)
    assert "You get no more responses in this round" in page
    assert "undo" not in page
    premises.room.refresh()
    cells = row_of(carla.page("/coordinate"), "ann")
    assert cells["Rater"] == "ann stopped"
    assert cells["Known answers right"] == "0 of 1 (0.00 %)"
    cells = row_of(carla.page("/coordinate"), "bob")
    assert (cells["Known answers right"], cells["Last judgment"]) == ("none yet", "never")
    assert row_of(carla.page("/coordinate"), "&lt;cem&gt;")["Done"].startswith("0 of ")


def test_the_page_counts_settled_disputes(premises: Premises) -> None:
    premises.tokens |= premises.invitations.invite(("carla",), 30, coordinator=True)
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    ann.press("label.correct")
    item_id = premises.rows[0].item_id
    while item_of(page := bob.page()) != item_id:
        bob.press("label.correct", page)
    bob.press("label.wrong", page)
    premises.restart()
    carla, zoe = premises.visitor("carla"), premises.visitor("zoe")
    assert "Raters disagree on 1 response." in carla.page("/coordinate")
    zoe.press("label.wrong", zoe.page("/adjudicate"), "/adjudicate")
    premises.room.refresh()
    assert "Raters disagree on 1 response; 1 settled." in carla.page("/coordinate")


def test_a_rater_without_open_responses_is_done(premises: Premises) -> None:
    premises.tokens |= premises.invitations.invite(("carla",), 30, coordinator=True)
    ann, carla = premises.visitor("ann"), premises.visitor("carla")
    responses = len(premises.room.items)
    summary = f"<p>{responses} responses. Every rater judges all of them. Raters disagree on 0 responses."
    assert summary in carla.page("/coordinate")
    for done_count, held_cell, status in ((responses - 1, "1", "waits for effects"), (responses, "0", "done")):
        while item_of(page := ann.page()):
            ann.press("label.wrong", page)
        premises.room.refresh()
        cells = row_of(carla.page("/coordinate"), "ann")
        assert cells["Done"] == f"{done_count} of {responses}"
        assert (cells["Left"], cells["Held"], cells["Time left"]) == ("0", held_cell, status)
        ann.press("release_held", page)


def test_the_instructions_lead_a_coordinator_to_the_progress(carla: Browser) -> None:
    page = carla.page("/instructions")
    assert "You do not judge responses yourself" in page
    assert ">See the progress</a>" in page
    assert ">Begin</a>" not in page
    assert ">Open responses</th>" in carla.page("/coordinate")


def test_the_coordinator_learns_who_is_invited_and_not_in_the_round(premises: Premises, carla: Browser) -> None:
    assert "cannot judge" not in carla.page("/coordinate")
    premises.change_round(raters=("Ann", "<cem>"))
    assert "bob cannot judge: invited to this site" in premises.visitor("carla").page("/coordinate")


def test_an_open_share_is_given_away_after_a_question(premises: Premises, carla: Browser) -> None:
    bob = premises.visitor("bob")
    before = bob.page()
    cells = row_of(carla.page("/coordinate"), "ann")
    assert cells["Open responses"].startswith("Give ")
    question = carla.page("/coordinate?give=ann")
    assert 'name="to" value="bob" checked' in question
    assert 'name="to" value="ann"' not in question
    data = {"form_word": field_of(question, "form_word"), "rater": "ann", "to": ["bob", "<cem>"]}
    answer = carla.client.post("/coordinate", data=data)
    assert answer.status_code == 200
    assert re.search(r"\d+ responses of ann moved to bob, &lt;cem&gt;", answer.text)
    assert row_of(answer.text, "ann")["Open responses"] == "0"
    assert share_of(bob.page()) > share_of(before)
    wrong = carla.client.post("/coordinate", data={**data, "to": ["nobody"]})
    assert wrong.status_code == 400
    assert "Nothing was moved" in wrong.text
    assert carla.client.post("/coordinate", data={**data, "form_word": "x"}).status_code == 403


def test_responses_that_go_to_nobody_are_named(premises: Premises, carla: Browser) -> None:
    premises.change_round(raters_per_item=2, gold=())
    shares = raters_by_item(premises.room.items, premises.round).values()
    count = sum({"ann", "bob"} <= raters for raters in shares)
    data = {"form_word": field_of(carla.page("/coordinate?give=ann"), "form_word"), "rater": "ann", "to": ["bob"]}
    answer = carla.client.post("/coordinate", data=data)
    assert f"moved to bob; {count} responses that all of these raters have already go to nobody." in answer.text


def test_an_open_share_goes_to_as_many_raters_as_there_are(premises: Premises, carla: Browser) -> None:
    others = [f"rater-{number}" for number in range(60)]
    premises.change_round(raters=("ann", *others))
    question = carla.page("/coordinate?give=ann")
    data = {"form_word": field_of(question, "form_word"), "rater": "ann", "to": others}
    assert row_of(carla.client.post("/coordinate", data=data).text, "ann")["Open responses"] == "0"


def test_the_page_is_for_coordinators_who_judge_nothing(premises: Premises, carla: Browser) -> None:
    for name in ("ann", "zoe"):
        rater = premises.visitor(name)
        assert rater.client.get("/coordinate").status_code == 403
        assert rater.client.post("/coordinate", data={"rater": "ann", "to": "bob"}).status_code == 403
    assert premises.browser().client.get("/coordinate").headers["location"] == "/login"
    item = item_of(premises.visitor("ann").page())
    assert carla.client.get("/judge").headers["location"] == "/coordinate"
    for path in ("/earlier", f"/sound/{item}/response"):
        assert carla.client.get(path).status_code == 403
    page = carla.page("/coordinate?give=ann")
    data = {"form_word": field_of(page, "form_word"), "do": "label.correct", "item": item}
    assert carla.client.post("/judge", data=data).status_code == 403
    assert premises.rows == []


def test_invited_raters_are_shown_in_a_round_without_names(premises: Premises) -> None:
    premises.tokens |= premises.invitations.invite(("dan", "eve"), 30)
    premises.tokens |= premises.invitations.invite(("carla",), 30, coordinator=True)
    premises.invitations.revoke(("eve",))
    page = premises.visitor("carla").page("/coordinate")
    assert row_of(page, "dan")["Last judgment"] == "never"
    assert "Known answers" not in page  # this round has none
    assert '<th scope="row">eve' not in page
    assert '<th scope="row">carla' not in page


def test_links_lead_to_where_the_site_was_last(tmp_path: Path) -> None:
    path = tmp_path / "invitations.json"

    def link(*options: str) -> str:
        result = CliRunner().invoke(invite, ["ann", "--invitations", str(path), *options])
        assert result.exit_code == 0, result.output
        return result.output.split()[1].partition("/login#")[0]

    assert link() == "http://127.0.0.1:8765"
    Invitations(path).set_address("http://127.0.0.1:9001")
    assert link() == "http://127.0.0.1:9001"
    assert link("--public-url", "https://lab.example") == "https://lab.example"
    assert link() == "https://lab.example"
