"""The raters' site as a program: how it begins, what it refuses, TLS, and an orderly end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import httpx2
import pytest

from harness.model.errors import InputError
from harness.model.judgment import RatingRound
from harness.rating.rating_room import RatingRoom
from harness.session.log.reader import rating_rows
from harness.web.invitations import Invitations
from harness.web.server import WebOptions, serve, visitor_address
from tests.conformance.rating.site import HARNESS, SiteProcess
from tests.conformance.rating.terminal import Hand, opened_terminal
from tests.rating_sessions import rating_session


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> RatingRoom:
    return RatingRoom(RatingRound(sessions=(str(rating_session(tmp_path_factory.mktemp("room") / "s1", 2)),)))


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Made for localhost, by itself."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key,
         "-out", cert],
        check=True, capture_output=True
    )  # fmt: skip
    return cert, key


def test_tls_cookies_and_an_orderly_end(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    session = rating_session(tmp_path / "s1", 3)
    site = SiteProcess(session, "--tls-cert", str(cert), "--tls-key", str(key))
    site.start()
    try:
        assert site.url.startswith("https://127.0.0.1:")
        with httpx2.Client(verify=ssl.create_default_context(cafile=str(cert))) as client:
            answer = client.get(f"{site.url}/login")
            assert answer.status_code == 200
            assert "; secure" in answer.headers["set-cookie"].lower()
            assert "server" not in answer.headers
            evil = client.get(f"{site.url}/login", headers={"host": "evil.example"})
            assert evil.status_code == 421
    finally:
        status = site.stop(signal.SIGINT)
    assert status == 0
    assert "Traceback" not in site.told
    for token in site.tokens.values():
        assert token not in site.told


def test_options_that_do_not_go_together_are_refused(
    room: RatingRoom, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    file = tmp_path / "i.json"
    Invitations(file).invite(["ann"], 1)
    for options, message in (
        (WebOptions(address="0.0.0.0", invitations=file), "without TLS"),
        (WebOptions(address="192.0.2.1", invitations=file), "without TLS"),
        (WebOptions(tls_cert=cert, invitations=file), "certificate and its key"),
        (WebOptions(tls_cert=key, tls_key=cert, invitations=file), "cannot be used"),
        (WebOptions(tls_cert=cert, tls_key=tmp_path / "none", invitations=file), "cannot be used"),
        (WebOptions(public_url="raters.example", invitations=file), "not a site address"),
        (WebOptions(public_url="https://a.example/path", invitations=file), "not a site address"),
        (WebOptions(invitations=tmp_path / "none.json"), "nobody is invited"),
        (WebOptions(address="192.0.2.1", insecure=True, invitations=file), "cannot listen on port"),
    ):
        with pytest.raises(InputError, match=message):
            serve(room, options)


def test_links_lead_to_the_port_in_use_and_a_name_that_others_reach(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    everywhere = WebOptions(address="0.0.0.0", tls_cert=cert, tls_key=key)
    assert visitor_address(everywhere, 9001) == f"https://{socket.gethostname()}:9001"
    assert visitor_address(WebOptions(), 9001) == "http://127.0.0.1:9001"
    assert visitor_address(WebOptions(address="::1"), 9001) == "http://[::1]:9001"
    assert visitor_address(WebOptions(public_url="https://raters.example/"), 9001) == "https://raters.example"


def test_a_port_in_use_is_reported(room: RatingRoom, tmp_path: Path) -> None:
    file = tmp_path / "i.json"
    Invitations(file).invite(["ann"], 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(InputError, match=rf"port {port} .*--web-port"):
            serve(room, WebOptions(port=port, invitations=file))


def test_invitations_are_made_listed_and_revoked(tmp_path: Path) -> None:
    def invite(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(HARNESS), "invite", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    created = invite("ann", "bob", "--public-url", "https://raters.example", "--days", "2")
    links = dict(line.split() for line in created.stdout.splitlines())
    assert set(links) == {"ann", "bob"}
    base, _, token = links["ann"].partition("/login#")
    assert base == "https://raters.example"
    invitations = Invitations(tmp_path / "invitations.json")
    invitation = invitations.by_token(token)
    assert invitation is not None
    assert invitation.rater == "ann"
    assert invitation.expires_s - invitation.created_s == 2 * 86400
    assert "ann can no longer log in" in invite("--revoke", "ann").stdout
    assert invitations.by_token(token) is None
    listing = invite("--list").stdout.splitlines()
    assert [("ann" in line, "revoked" in line) for line in listing] == [(True, True), (False, False)]
    assert token not in "".join(listing)
    assert invite("--revoke", "carl").returncode == 2
    assert "coordinator" in invite("carla", "--coordinator", "--list").stdout.splitlines()[-1]
    assert invite("dora", "--coordinator", "--adjudicator").returncode == 2
    assert invite().returncode == 2
    assert invite("ann", "--public-url", "http://x/path").returncode == 2


pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.mark.parametrize("signum", [signal.SIGHUP])
def test_a_signal_ends_the_site_like_a_key(tmp_path: Path, signum: signal.Signals) -> None:
    session = rating_session(tmp_path / "s1", 4)
    with opened_terminal() as terminal:
        terminal.rate(str(session), "--no-sound", "--rater", "ann")
        terminal.wait_position(lambda position: position == 1)
        Hand(terminal).press_until("1", lambda position: position == 2)
        os.kill(terminal.pid, signum)
        assert terminal.ended() == str(128 + signum)
        assert terminal.ask("display-message -p '#{alternate_on} #{mouse_any_flag}'") == ["0 0"]
        assert len(list(rating_rows(session))) == 1
