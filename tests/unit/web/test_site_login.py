"""Who may log in, and how long that holds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from harness.model.errors import InputError
from harness.web import entrance as login
from harness.web.entrance import COOKIE, LIFE_S, TRIES, TRIES_IN_S, Brake
from harness.web.invitations import Invitations, token_digest
from tests.unit.web.visitors import Browser, Premises, field_of, fields_of


def test_an_invitation_opens_the_site_for_its_rater(premises: Premises) -> None:
    ann = premises.rater("ann")
    assert "ann" in ann.page("/instructions")
    assert ann.client.get("/judge").status_code == 200
    assert ann.client.get("/").headers["location"] == "/instructions"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(premises: Premises) -> None:
    header = premises.browser().client.get("/login").headers["set-cookie"].lower()
    assert "httponly" in header
    assert "samesite=strict" in header
    assert "secure" not in header


def test_with_tls_the_cookie_is_sent_by_tls_only(premises: Premises) -> None:
    premises.restart(secure=True)
    browser = premises.browser("https://localhost:8765")
    answer = browser.client.get("/login")
    assert answer.headers["set-cookie"].startswith(f"__Host-{COOKIE}-")
    assert "; secure" in answer.headers["set-cookie"].lower()
    assert "strict-transport-security" in answer.headers
    assert browser.log_in(premises.tokens["ann"]).status_code == 303
    assert browser.client.get("/judge").status_code == 200


@pytest.mark.parametrize("token", ["", "x", "ä" * 40, "a" * 5000])
def test_wrong_tokens_open_nothing(premises: Premises, token: str) -> None:
    browser = premises.browser()
    answer = browser.log_in(token)
    assert answer.status_code == 403
    assert "Ask who invited you" in answer.text
    assert browser.client.get("/judge").status_code == 303


def test_a_token_may_be_typed_with_spaces_and_capitals(premises: Premises) -> None:
    token = premises.tokens["ann"]
    typed = " ".join(token[at : at + 4] for at in range(0, 32, 4)).upper()
    assert premises.browser().log_in(typed).status_code == 303


def test_a_login_gets_a_new_cookie(premises: Premises) -> None:
    browser = premises.browser()
    browser.client.get("/login")
    before = browser.client.cookies[premises.site.cookie_name]
    browser.log_in(premises.tokens["ann"])
    assert browser.client.cookies[premises.site.cookie_name] != before


def test_opening_the_link_again_leaves_other_windows_alone(premises: Premises) -> None:
    ann = premises.rater("ann")
    page = ann.page()
    assert ann.log_in(premises.tokens["ann"]).status_code == 303
    assert ann.press("label.correct", page).status_code == 303
    ann.log_in(premises.tokens["bob"])
    assert ann.press("label.correct", page).status_code == 403
    assert [row.rater for row in premises.rows] == ["ann"]


def test_two_sites_on_one_host_leave_each_other_logged_in(premises: Premises) -> None:
    # Browsers send the cookies of a host to all of its ports.
    other = Premises(premises.folder, premises.round, port=8766)
    ann = premises.browser()
    ann.log_in(other.tokens["ann"])  # both have the same invitations
    page = ann.page()
    beside = Browser(other, TestClient(other.site.app, base_url="http://localhost:8766", cookies=ann.client.cookies))
    beside.client.follow_redirects = False
    assert beside.log_in(other.tokens["bob"]).status_code == 303
    ann.client.cookies = beside.client.cookies
    assert "bob" in beside.page("/instructions")
    assert "ann" in ann.page("/instructions")
    assert ann.press("label.correct", page).status_code == 303
    other.close()


def test_revoking_ends_an_open_login_at_once(premises: Premises) -> None:
    ann, bob = premises.rater("ann"), premises.rater("bob")
    page = ann.page()
    Invitations(premises.folder / "invitations.json").revoke(["ann"])
    assert ann.press("label.correct", page).status_code == 401
    assert ann.client.get("/judge").status_code == 303
    assert ann.log_in(premises.tokens["ann"]).status_code == 403
    assert bob.client.get("/judge").status_code == 200
    assert premises.rows == []


def test_a_new_invitation_ends_the_old_one(premises: Premises) -> None:
    ann = premises.rater("ann")
    premises.invitations.invite(["ann"], 30)
    assert ann.client.get("/judge").status_code == 303
    assert ann.log_in(premises.tokens["ann"]).status_code == 403


def test_expired_invitations_open_nothing(premises: Premises) -> None:
    token = premises.invitations.invite(["old"], -1)["old"]
    assert premises.browser().log_in(token).status_code == 403


def test_a_cookie_is_too_old_after_its_life(premises: Premises, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = premises.rater("ann")
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + LIFE_S + 2)
    assert ann.client.get("/judge").status_code == 303


def test_a_cookie_goes_on_with_the_pages(premises: Premises, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = premises.rater("ann")
    first = ann.client.cookies[premises.site.cookie_name]
    ann.page()
    assert ann.client.cookies[premises.site.cookie_name] == first
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + login.RENEW_S + 2)
    monkeypatch.setattr("harness.web.entrance.time.time", lambda: now + login.RENEW_S + 2)
    ann.page()
    assert ann.client.cookies[premises.site.cookie_name] != first


@pytest.mark.parametrize("cookie", ["x", "", "WyJhIiwiYiJd.aaaa.bbbb", "a" * 5000])
def test_forged_cookies_open_nothing(premises: Premises, cookie: str) -> None:
    browser = premises.browser()
    assert browser.client.get("/judge", headers={"cookie": f"{premises.site.cookie_name}={cookie}"}).status_code == 303


def test_a_login_outlives_the_site(premises: Premises) -> None:
    ann = premises.rater("ann")
    cookie = ann.client.cookies[premises.site.cookie_name]
    premises.restart()
    again = premises.browser()
    assert again.client.get("/judge", headers={"cookie": f"{premises.site.cookie_name}={cookie}"}).status_code == 200


def test_who_logs_out_is_out_with_every_copy_of_the_cookie(premises: Premises) -> None:
    ann = premises.rater("ann")
    cookie = ann.client.cookies[premises.site.cookie_name]
    word = fields_of(ann.page())["form_word"]
    assert ann.client.post("/leave", data={"form_word": word}).status_code == 303
    assert ann.client.get("/judge").status_code == 303
    kept = premises.browser().client.get("/judge", headers={"cookie": f"{premises.site.cookie_name}={cookie}"})
    assert kept.status_code == 303


def test_a_login_needs_the_word_of_its_own_visit(premises: Premises) -> None:
    browser, other = premises.browser(), premises.browser()
    word = field_of(other.client.get("/login").text, "form_word")
    browser.client.get("/login")
    answer = browser.client.post("/login", data={"form_word": word, "token": premises.tokens["ann"]})
    assert answer.status_code == 403
    assert browser.client.get("/judge").status_code == 303


def test_guessing_is_braked_and_those_inside_are_not_disturbed(premises: Premises) -> None:
    ann, guesser = premises.rater("ann"), premises.browser()
    answers = [guesser.log_in("wrong").status_code for _ in range(TRIES + 1)]
    assert answers == [403] * TRIES + [429]
    last = guesser.log_in(premises.tokens["bob"])
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) <= TRIES_IN_S
    assert ann.client.get("/judge").status_code == 200


def test_the_brake_lets_go_and_knows_addresses_apart() -> None:
    now = [0.0]
    brake = Brake(lambda: now[0])
    for _ in range(TRIES):
        brake.failed("1.2.3.4")
    assert brake.wait_s("1.2.3.4") == TRIES_IN_S
    assert brake.wait_s("1.2.3.5") == 0
    now[0] = TRIES_IN_S
    assert brake.wait_s("1.2.3.4") == 0
    for number in range(10 * TRIES):
        brake.failed(f"10.0.0.{number}")
    assert brake.wait_s("1.2.3.4") > 0


def test_the_file_holds_no_token_and_is_for_its_owner_only(premises: Premises) -> None:
    path = premises.folder / "invitations.json"
    text = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    for token in premises.tokens.values():
        assert token not in text
        assert token_digest(token) in text


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    invitations = Invitations(tmp_path / "i.json")
    invitations.invite(["ann"], 1)
    (tmp_path / "i.json").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        Invitations(tmp_path / "i.json").everyone  # noqa: B018


KEYLESS = '{"site_key": "%s", "invitations": []}'


@pytest.mark.parametrize("content", ["", "[]", "{}", KEYLESS % "zz", KEYLESS % "00", "[" * 9999])
def test_a_damaged_file_is_told_with_its_place(tmp_path: Path, content: str) -> None:
    path = tmp_path / "i.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"i\.json.*damaged"):
        Invitations(path).everyone  # noqa: B018


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 41, "<b>", "a\n"])
def test_pseudonyms_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="pseudonym"):
        Invitations(tmp_path / "i.json").invite([name], 1)
    assert not (tmp_path / "i.json").exists()


def test_revoking_nobody_names_who_is_invited(premises: Premises) -> None:
    with pytest.raises(InputError, match="ann, bob, zoe"):
        premises.invitations.revoke(["carl"])


def test_a_file_from_before_there_were_coordinators_still_opens(premises: Premises) -> None:
    file = premises.folder / "invitations.json"
    content = json.loads(file.read_text())
    for one in content["invitations"]:
        del one["coordinator"]
    file.write_text(json.dumps(content))
    assert [one.coordinator for one in Invitations(file).everyone] == [False, False, False]
