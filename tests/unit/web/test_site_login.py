"""Who may log in, and how long that holds."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.web import base_site as login
from harness.web.base_site import (
    COOKIE,
    LOGIN_LIFE_S,
    MAX_BODY_BYTES,
    MAX_REMEMBERED_TRIES,
    MAX_TRIES,
    TRIES_WINDOW_S,
    RateLimiter,
    host_name,
)
from harness.web.invitations import Invitations, token_digest
from tests.unit.web.visitors import BASE, Browser, Premises, field_of, fields_of, item_of


def test_an_invitation_opens_the_site_for_its_rater(ann: Browser) -> None:
    assert "ann" in ann.page("/instructions")
    assert ann.client.get("/judge").status_code == 200
    assert ann.client.get("/").headers["location"] == "/instructions"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(premises: Premises) -> None:
    header = premises.browser().client.get("/login").headers["set-cookie"].lower()
    assert "httponly" in header
    assert "samesite=lax" in header
    assert "secure" not in header


def test_with_tls_the_cookie_is_sent_by_tls_only(premises: Premises) -> None:
    premises.reached = replace(premises.reached, secure=True)
    premises.restart()
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
    assert "Ask the person who invited you" in answer.text
    assert browser.client.get("/judge").status_code == 303


def test_a_token_may_be_typed_with_spaces_and_capitals(premises: Premises) -> None:
    token = premises.tokens["ann"]
    typed = " ".join(token[start : start + 4] for start in range(0, 32, 4)).upper()
    assert premises.browser().log_in(typed).status_code == 303


def test_a_login_gets_a_new_cookie(premises: Premises) -> None:
    browser = premises.browser()
    browser.client.get("/login")
    before = browser.client.cookies[premises.site.cookie_name]
    browser.log_in(premises.tokens["ann"])
    assert browser.client.cookies[premises.site.cookie_name] != before


def test_opening_the_link_again_leaves_other_windows_alone(premises: Premises, ann: Browser) -> None:
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
    other_browser = other.browser("http://localhost:8766")
    other_browser.client.cookies = ann.client.cookies
    assert other_browser.log_in(other.tokens["bob"]).status_code == 303
    ann.client.cookies = other_browser.client.cookies
    assert "bob" in other_browser.page("/instructions")
    assert "ann" in ann.page("/instructions")
    assert ann.press("label.correct", page).status_code == 303
    other.close()


def test_the_login_page_names_who_is_logged_in(premises: Premises) -> None:
    assert "You are logged in" not in premises.browser().client.get("/login").text
    page = premises.visitor("ann").client.get("/login").text
    assert "You are logged in as <strong>ann</strong>" in page
    assert 'href="/"' in page


def test_revoking_ends_an_open_login_at_once(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    page = ann.page()
    Invitations(premises.folder / "invitations.json").revoke(["ann"])
    assert ann.press("label.correct", page).status_code == 401
    assert ann.client.get("/judge").status_code == 303
    assert ann.log_in(premises.tokens["ann"]).status_code == 403
    assert bob.client.get("/judge").status_code == 200
    assert premises.rows == []


def test_a_new_invitation_ends_the_old_one(premises: Premises, ann: Browser) -> None:
    premises.invitations.invite(["ann"], 30)
    assert ann.client.get("/judge").status_code == 303
    assert ann.log_in(premises.tokens["ann"]).status_code == 403


def test_expired_invitations_open_nothing(premises: Premises) -> None:
    token = premises.invitations.invite(["old"], -1)["old"]
    assert premises.browser().log_in(token).status_code == 403


def test_a_cookie_is_too_old_after_its_life(monkeypatch: pytest.MonkeyPatch, ann: Browser) -> None:
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + LOGIN_LIFE_S + 2)
    assert ann.client.get("/judge").status_code == 303


def test_using_the_site_renews_the_cookie(premises: Premises, monkeypatch: pytest.MonkeyPatch, ann: Browser) -> None:
    first = ann.client.cookies[premises.site.cookie_name]
    ann.page()
    assert ann.client.cookies[premises.site.cookie_name] == first
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + login.RENEWAL_AGE_S + 2)
    monkeypatch.setattr("harness.web.base_site.time.time", lambda: now + login.RENEWAL_AGE_S + 2)
    ann.page()
    assert ann.client.cookies[premises.site.cookie_name] != first


@pytest.mark.parametrize("cookie", ["x", "", "WyJhIiwiYiJd.aaaa.bbbb", "a" * 5000])
def test_forged_cookies_open_nothing(premises: Premises, cookie: str) -> None:
    browser = premises.browser()
    assert browser.client.get("/judge", headers={"cookie": f"{premises.site.cookie_name}={cookie}"}).status_code == 303


def test_a_login_outlives_the_site(premises: Premises, ann: Browser) -> None:
    cookie = ann.client.cookies[premises.site.cookie_name]
    premises.restart()
    browser = premises.browser()
    assert browser.client.get("/judge", headers={"cookie": f"{premises.site.cookie_name}={cookie}"}).status_code == 200


def test_logout_invalidates_every_copy_of_the_cookie(premises: Premises, ann: Browser) -> None:
    cookie = ann.client.cookies[premises.site.cookie_name]
    word = field_of(ann.page(), "form_word")
    assert ann.client.post("/leave", data={"form_word": word}).status_code == 303
    assert ann.client.get("/judge").status_code == 303
    answer = premises.browser().client.get("/judge", headers={"cookie": f"{premises.site.cookie_name}={cookie}"})
    assert answer.status_code == 303


def test_login_requires_the_form_token_of_its_visit(premises: Premises) -> None:
    browser, other = premises.browser(), premises.browser()
    word = field_of(other.client.get("/login").text, "form_word")
    browser.client.get("/login")
    answer = browser.client.post("/login", data={"form_word": word, "token": premises.tokens["ann"]})
    assert answer.status_code == 403
    assert browser.client.get("/judge").status_code == 303


def test_token_guessing_is_rate_limited_without_disturbing_raters(premises: Premises) -> None:
    ann, guesser = premises.visitor("ann"), premises.browser()
    answers = [guesser.log_in("wrong").status_code for _ in range(MAX_TRIES + 1)]
    assert answers == [403] * MAX_TRIES + [429]
    assert int(guesser.log_in("wrong").headers["retry-after"]) <= TRIES_WINDOW_S
    assert ann.client.get("/judge").status_code == 200
    assert guesser.log_in(premises.tokens["bob"]).status_code == 303, "a right token is always let in"


def test_rate_limit_expires_and_is_per_address() -> None:
    now = [0.0]
    brake = RateLimiter(lambda: now[0])
    for _ in range(MAX_TRIES):
        brake.record_failure("1.2.3.4")
    assert brake.wait_s("1.2.3.4") == TRIES_WINDOW_S
    assert brake.wait_s("1.2.3.5") == 0
    now[0] = TRIES_WINDOW_S
    assert brake.wait_s("1.2.3.4") == 0
    for number in range(2 * MAX_REMEMBERED_TRIES):
        brake.record_failure(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}")
    assert brake.wait_s("1.2.3.4") == 0


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
def test_a_damaged_file_is_reported_with_its_place(tmp_path: Path, content: str) -> None:
    path = tmp_path / "i.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"i\.json.*damaged"):
        Invitations(path).everyone  # noqa: B018


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 101, "<b>", "a\nb"])
def test_pseudonyms_must_be_plain_text(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="pseudonym"):
        Invitations(tmp_path / "i.json").invite([name], 1)
    assert not (tmp_path / "i.json").exists()


def test_an_invitation_matches_any_spelling_of_the_rater(premises: Premises) -> None:
    old = premises.tokens["ann"]
    fresh = premises.invitations.invite(["Ann"], 1)
    assert premises.invitations.by_token(old) is None
    assert list(fresh) == ["Ann"]
    with pytest.raises(InputError, match="are the same rater"):
        premises.invitations.invite(["eve", "Eve"], 1)
    premises.invitations.revoke(["aNN"])
    assert premises.invitations.by_token(fresh["Ann"]) is None


def test_revoking_nobody_names_who_is_invited(premises: Premises) -> None:
    with pytest.raises(InputError, match="ann, bob, zoe"):
        premises.invitations.revoke(["carl"])


def test_a_file_from_before_there_were_coordinators_still_opens(premises: Premises) -> None:
    file = premises.folder / "invitations.json"
    content = json.loads(file.read_text())
    for invitation in content["invitations"]:
        del invitation["coordinator"]
    file.write_text(json.dumps(content))
    assert [invitation.coordinator for invitation in Invitations(file).everyone] == [False, False, False]


PAGES = ("/", "/judge", "/adjudicate", "/instructions", "/guide", "/rest")


@pytest.mark.parametrize("path", [*PAGES, "/login", "/static/site.js", "/nowhere", "/sound/abc/response"])
def test_all_answers_carry_the_protecting_headers(premises: Premises, path: str) -> None:
    for browser in (premises.browser(), premises.visitor("ann")):
        headers = browser.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")


def test_pages_have_no_script_style_or_address_of_their_own(ann: Browser) -> None:
    # What the policy forbids would only be a fault in the browser's console.
    for path in ("/judge", "/instructions", "/guide", "/rest"):
        text = ann.page(path)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://", text)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_logged_in_is_led_to_the_login(premises: Premises, path: str) -> None:
    answer = premises.browser().client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_sounds_and_posts_require_a_login(premises: Premises) -> None:
    stranger = premises.browser().client
    item = item_of(premises.visitor("ann").page())
    assert stranger.get(f"/sound/{item}/response").status_code == 401
    assert stranger.post("/judge", data={"do": "undo"}).status_code == 401
    assert stranger.post("/leave").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "localhost:80@evil.example", "", "[::1"])
def test_foreign_names_of_the_host_are_refused(premises: Premises, host: str) -> None:
    answer = premises.visitor("ann").client.get("/judge", headers={"host": host})
    assert answer.status_code == 421
    assert "address in your invitation" in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:8765", "[::1]:8765", "192.168.1.5"])
def test_own_names_and_addresses_in_digits_are_taken(premises: Premises, host: str) -> None:
    assert premises.browser().client.get("/login", headers={"host": host}).status_code == 200


def test_host_name_without_its_port() -> None:
    assert [host_name(address) for address in ("A.b:80", "a.b", "[::1]:80", "[::1]", "a:b", "a:1:2")] == [
        "a.b", "a.b", "::1", "::1", "", ""
    ]  # fmt: skip


def test_post_requires_the_form_token_of_its_visit(premises: Premises) -> None:
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    page = ann.page()
    other = field_of(bob.page(), "form_word")
    for word in ("", "x", "ü", other):
        assert ann.press("label.correct", page, form_word=word).status_code == 403
    without = {name: value for name, value in fields_of(page).items() if name != "form_word"}
    assert ann.client.post("/judge", data={**without, "do": "label.correct"}).status_code == 403
    assert ann.client.post("/leave", data={"form_word": other}).status_code == 403
    assert premises.rows == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_post_from_another_origin_is_refused(premises: Premises, headers: dict[str, str], ann: Browser) -> None:
    fields = fields_of(ann.page())
    assert ann.client.post("/judge", data={**fields, "do": "label.wrong"}, headers=headers).status_code == 403
    same_origin = {"origin": BASE, "sec-fetch-site": "same-origin"}
    assert premises.rows == []
    assert ann.client.post("/judge", data={**fields, "do": "label.wrong"}, headers=same_origin).status_code == 303


def test_long_bodies_are_refused_whatever_they_say_of_their_length(premises: Premises, ann: Browser) -> None:
    fields = fields_of(ann.page())
    long = {**fields, "do": "label.correct", "comment": "x" * MAX_BODY_BYTES}
    assert ann.client.post("/judge", data=long).status_code == 413

    def chunks() -> object:
        yield b"do=label.correct&comment="
        for _ in range(MAX_BODY_BYTES // 1000 + 1):
            yield b"x" * 1000

    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert ann.client.post("/judge", content=chunks(), headers=headers).status_code == 413  # type: ignore[arg-type]
    odd = {**headers, "content-length": "-5"}
    assert ann.client.post("/judge", content=b"", headers=odd).status_code == 413
    assert premises.rows == []


def test_a_request_of_two_lengths_is_refused_and_its_connection_closed(premises: Premises) -> None:
    headers = {"transfer-encoding": "chunked", "content-length": "6"}
    answer = premises.browser().client.post("/login", content=b"token=", headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


def test_other_methods_and_paths_are_refused(ann: Browser) -> None:
    assert ann.client.put("/judge").status_code == 405
    assert ann.client.delete("/judge").status_code == 405
    for path in ("/static/../site.py", "/static/..%2fsite.py", "/static/%2e%2e/site.py", "/static/site.pyc"):
        assert ann.client.get(path).status_code == 404
    for path in ("/sound/..%2f..%2fetc/response", "/sound/%2e%2e/query", "/sound/x/../../invitations.json"):
        assert ann.client.get(path).status_code == 404


def test_multipart_file_uploads_are_refused(premises: Premises, ann: Browser) -> None:
    fields = {**fields_of(ann.page()), "do": "label.correct"}
    answer = ann.client.post("/judge", data=fields, files={"comment": ("a.txt", b"x")})
    assert answer.status_code == 400
    assert premises.rows == []


def test_a_rater_outside_the_round_learns_it_before_the_instructions(premises: Premises) -> None:
    premises.change_round(raters=("ann",))
    assert premises.visitor("ann").client.get("/instructions").status_code == 200
    for path in ("/instructions", "/guide", "/judge"):
        answer = premises.visitor("bob").client.get(path)
        assert answer.status_code == 403
        assert "not to this round" in answer.text
