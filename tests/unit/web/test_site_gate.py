"""What the site refuses before it makes a page, and what all its answers say."""

from __future__ import annotations

import re

import pytest

from harness.web.entrance import MOST_BODY, host_name
from tests.unit.web.visitors import BASE, Premises, fields_of

PAGES = ("/", "/judge", "/adjudicate", "/instructions", "/guide", "/rest")


@pytest.mark.parametrize("path", [*PAGES, "/login", "/static/site.js", "/nowhere", "/sound/abc/response"])
def test_all_answers_carry_the_protecting_headers(premises: Premises, path: str) -> None:
    for browser in (premises.browser(), premises.rater("ann")):
        headers = browser.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")


def test_pages_have_no_script_style_or_address_of_their_own(premises: Premises) -> None:
    # What the policy forbids would only be a fault in the browser's console.
    ann = premises.rater("ann")
    for path in ("/judge", "/instructions", "/guide", "/rest"):
        text = ann.page(path)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://", text)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_logged_in_is_led_to_the_login(premises: Premises, path: str) -> None:
    answer = premises.browser().client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_sounds_and_posts_want_a_login(premises: Premises) -> None:
    stranger = premises.browser().client
    item = fields_of(premises.rater("ann").page())["item"]
    assert stranger.get(f"/sound/{item}/response").status_code == 401
    assert stranger.post("/judge", data={"do": "undo"}).status_code == 401
    assert stranger.post("/leave").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "localhost:80@evil.example", "", "[::1"])
def test_foreign_names_of_the_host_are_refused(premises: Premises, host: str) -> None:
    answer = premises.rater("ann").client.get("/judge", headers={"host": host})
    assert answer.status_code == 421
    assert "address in your invitation" in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:8765", "[::1]:8765", "192.168.1.5"])
def test_own_names_and_addresses_in_digits_are_taken(premises: Premises, host: str) -> None:
    assert premises.browser().client.get("/login", headers={"host": host}).status_code == 200


def test_host_name_without_its_port() -> None:
    assert [host_name(one) for one in ("A.b:80", "a.b", "[::1]:80", "[::1]", "a:b", "a:1:2")] == [
        "a.b", "a.b", "::1", "::1", "", ""
    ]  # fmt: skip


def test_a_post_needs_the_word_of_its_visit(premises: Premises) -> None:
    ann, bob = premises.rater("ann"), premises.rater("bob")
    page = ann.page()
    other = fields_of(bob.page())["form_word"]
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
def test_a_post_from_another_origin_is_refused(premises: Premises, headers: dict[str, str]) -> None:
    ann = premises.rater("ann")
    fields = fields_of(ann.page())
    assert ann.client.post("/judge", data={**fields, "do": "label.wrong"}, headers=headers).status_code == 403
    own = {"origin": BASE, "sec-fetch-site": "same-origin"}
    assert premises.rows == []
    assert ann.client.post("/judge", data={**fields, "do": "label.wrong"}, headers=own).status_code == 303


def test_long_bodies_are_refused_whatever_they_say_of_their_length(premises: Premises) -> None:
    ann = premises.rater("ann")
    fields = fields_of(ann.page())
    long = {**fields, "do": "label.correct", "comment": "x" * MOST_BODY}
    assert ann.client.post("/judge", data=long).status_code == 413

    def chunks() -> object:
        yield b"do=label.correct&comment="
        for _ in range(40):
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


def test_other_methods_and_paths_are_refused(premises: Premises) -> None:
    ann = premises.rater("ann")
    assert ann.client.put("/judge").status_code == 405
    assert ann.client.delete("/judge").status_code == 405
    for path in ("/static/../site.py", "/static/..%2fsite.py", "/static/%2e%2e/site.py", "/static/site.pyc"):
        assert ann.client.get(path).status_code == 404
    for path in ("/sound/..%2f..%2fetc/response", "/sound/%2e%2e/query", "/sound/x/../../invitations.json"):
        assert ann.client.get(path).status_code == 404


def test_files_are_sent_in_a_multipart_body_in_vain(premises: Premises) -> None:
    ann = premises.rater("ann")
    fields = {**fields_of(ann.page()), "do": "label.correct"}
    answer = ann.client.post("/judge", data=fields, files={"comment": ("a.txt", b"x")})
    assert answer.status_code == 400
    assert premises.rows == []
