"""TLS, users and access lists of the MQTT driver, against a real mosquitto with certificates made here."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.devices.mqtt.options import MessageFraming, MqttOptions
from harness.model.errors import DeviceError, InputError
from harness.model.observation import LinkBack, LinkLost, LogLine, Transcript
from tests.conformance.mqtt_bench import Board, Broker, Watch
from tests.conformance.mqtt_board import FramedBoard, clicks
from tests.seen import until


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a broker called `localhost`, a client, and another authority."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ca", "other"):
        _openssl(
            folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN=lab {name}",
            "-keyout", f"{name}.key", "-out", f"{name}.pem",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
    for name, extra in (("localhost", "subjectAltName=DNS:localhost"), ("harness", "subjectAltName=DNS:harness")):
        _openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
                 "-out", f"{name}.csr")  # fmt: skip
        (folder / f"{name}.ext").write_text(f"{extra}\nauthorityKeyIdentifier=keyid\n", encoding="ascii")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                 "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")  # fmt: skip
    for path in (folder.parent, folder, *folder.iterdir()):
        path.chmod(0o755)
    return folder


Started = Callable[..., Broker]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    def start(*lines: str) -> Broker:
        return stack.enter_context(Broker(tmp_path, *lines, "user root"))

    with ExitStack() as stack:
        yield start


def tls(folder: Path, *more: str) -> tuple[str, ...]:
    files = (f"cafile {folder}/ca.pem", f"certfile {folder}/localhost.pem", f"keyfile {folder}/localhost.key")
    return ("allow_anonymous true", *files, *more)


def test_a_link_is_encrypted_with_a_known_authority(started: Started, certificates: Path, tmp_path: Path) -> None:
    broker = started(*tls(certificates))
    with Watch(tmp_path, address=f"localhost:{broker.port}", ca_file=str(certificates / "ca.pem")) as watch:
        until(lambda: watch.driver.acknowledged > 0)
        broker.kill()
        watch.first(LinkLost)
        broker.start()
        watch.first(LinkBack, 20)
        assert not watch.of(LogLine)


def test_tls_and_login_failures_name_their_reason(started: Started, certificates: Path, tmp_path: Path) -> None:
    broker = started(*tls(certificates))
    ca = str(certificates / "ca.pem")
    with pytest.raises(DeviceError, match=r"certificate is not valid: .*(self-signed|issuer)"):
        Watch(tmp_path, address=f"localhost:{broker.port}", tls=True)
    with pytest.raises(DeviceError, match="certificate is not valid"):
        Watch(tmp_path, address=f"localhost:{broker.port}", ca_file=str(certificates / "other.pem"))
    with pytest.raises(DeviceError, match=r"certificate is not valid: .*127\.0\.0\.1"):
        Watch(tmp_path, address=f"127.0.0.1:{broker.port}", ca_file=ca)
    with pytest.raises(DeviceError, match="cannot be used"):
        Watch(tmp_path, address=f"localhost:{broker.port}")  # no TLS
    plain = started("allow_anonymous true")
    with pytest.raises(DeviceError, match="cannot be used"):
        Watch(tmp_path, address=f"localhost:{plain.port}", ca_file=ca)


def test_unchecked_certificate_needs_an_option_and_is_logged(
    started: Started, certificates: Path, tmp_path: Path
) -> None:
    broker = started(*tls(certificates))
    watch = Watch(tmp_path, address=f"127.0.0.1:{broker.port}", tls_insecure=True)
    watch.driver.close()
    (line,) = watch.of(LogLine)
    assert "not checked" in line.text


def test_a_client_certificate_is_accepted(started: Started, certificates: Path, tmp_path: Path) -> None:
    broker = started(*tls(certificates, "require_certificate true"))
    address, ca = f"localhost:{broker.port}", str(certificates / "ca.pem")
    with pytest.raises(DeviceError, match="cannot be used"):
        Watch(tmp_path, address=address, ca_file=ca)
    files = {"cert_file": str(certificates / "harness.pem"), "key_file": str(certificates / "harness.key")}
    Watch(tmp_path, address=address, ca_file=ca, **files).driver.close()
    with pytest.raises(DeviceError, match=r"cert_file, key_file: .* cannot be used"):
        Watch(
            tmp_path, address=address, ca_file=ca, cert_file=files["cert_file"], key_file=str(certificates / "ca.key")
        )
    with pytest.raises(DeviceError, match=r"ca_file: nowhere\.pem cannot be used: No such file"):
        Watch(tmp_path, address=address, ca_file="nowhere.pem")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"address": "lab", "tls": True}, "does not support TLS"),
        ({"address": "lab", "username": "x"}, "does not support users"),
        ({"address": "embedded", "username": "x"}, "both a user and a password, or neither"),
        ({"address": "embedded", "listen": "0.0.0.0:1883"}, "without a password"),
        ({"address": "h", "key_file": "k"}, "`cert_file` is not"),
        ({"address": "h", "password_env": "P"}, "`username` is not"),
        ({"address": "h", "listen": "nothing:"}, "not an address"),
        ({"address": "host:"}, "not an address"),
        ({"address": ":1883"}, "not an address"),
        ({"address": "host:seven"}, "not an address"),
    ],
)
def test_contradictory_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MqttOptions(**options)  # type: ignore[arg-type]


def test_the_port_follows_from_the_encryption() -> None:
    assert MqttOptions("h", tls=True).broker == ("h", 8883)
    assert MqttOptions("h").broker == ("h", 1883)


@pytest.fixture
def access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[str, ...]]:
    """Lines of a broker with the users `harness` and `board`, and an access list."""
    passwords, rules = tmp_path / "passwords", tmp_path / "acl"
    for user, flags in (("harness", ["-c"]), ("board", [])):
        subprocess.run(["mosquitto_passwd", "-b", *flags, str(passwords), user, "secret"], check=True)
    monkeypatch.setenv("VH_TEST_WORD", "secret")
    os.chmod(tmp_path, 0o755)

    def lines(content: str) -> tuple[str, ...]:
        rules.write_text(content, encoding="ascii")
        for path in (passwords, rules):
            path.chmod(0o644)
        return "allow_anonymous false", f"password_file {passwords}", f"acl_file {rules}"

    return lines


ALL = "user board\ntopic readwrite vh/#\n"


def test_a_sufficient_access_list_is_accepted(
    started: Started, access: Callable[[str], tuple[str, ...]], tmp_path: Path
) -> None:
    broker = started(*access(f"{ALL}user harness\ntopic read vh/board/+\ntopic write vh/board/in/+\n"))
    board = FramedBoard(broker, login=("board", "secret"))
    login = {"username": "harness", "password_env": "VH_TEST_WORD"}
    with Watch(tmp_path, address=f"127.0.0.1:{broker.port}", framing=MessageFraming.VH, **login) as watch:
        watch.driver.play("one", clicks(1.0, 0.5))
        watch.end("one")
        # The broker acknowledges the pulse, though it may not be written.
        until(lambda: watch.driver.acknowledged > 0)
    board.close()


@pytest.mark.parametrize(
    "rules",
    ["user harness\ntopic write vh/board/in/+\n", "user harness\ntopic read vh/board/+\n"],
    ids=["may-not-read", "may-not-write"],
)
def test_insufficient_access_list_is_named_in_the_error(
    rules: str, started: Started, access: Callable[[str], tuple[str, ...]], tmp_path: Path
) -> None:
    broker = started(*access(ALL + rules))
    board = FramedBoard(broker, login=("board", "secret"))
    login = {"username": "harness", "password_env": "VH_TEST_WORD"}
    try:
        with pytest.raises(DeviceError) as caught:
            Watch(tmp_path, address=f"127.0.0.1:{broker.port}", framing=MessageFraming.VH, hello_wait_s=0.5, **login)
        assert "access list" in str(caught.value) or "refuses the subscription" in str(caught.value)
    finally:
        board.close()


def test_refused_subscription_is_reported(started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mosquitto's dynamic security refuses the subscription itself; its access lists only keep messages back."""
    plugin = next(Path("/usr/lib").rglob("mosquitto_dynamic_security.so"))
    rules = tmp_path / "dynsec.json"
    subprocess.run(["mosquitto_ctrl", "dynsec", "init", str(rules), "admin", "secret"], check=True, capture_output=True)
    content = json.loads(rules.read_text(encoding="utf-8"))
    for rule in content["roles"][0]["acls"]:
        if rule["topic"] == "#" and rule["acltype"] == "subscribePattern":
            rule["topic"] = "vh/board/wake"
    rules.write_text(json.dumps(content), encoding="utf-8")
    os.chmod(tmp_path, 0o755)
    rules.chmod(0o666)
    broker = started("allow_anonymous false", f"plugin {plugin}", f"plugin_opt_config_file {rules}")
    monkeypatch.setenv("VH_TEST_WORD", "secret")
    login = {"username": "admin", "password_env": "VH_TEST_WORD"}
    with pytest.raises(DeviceError, match=r"refuses the subscription to vh/board/response ") as caught:
        Watch(tmp_path, address=f"127.0.0.1:{broker.port}", **login)
    assert "vh/board/wake" not in caught.value.what


def test_an_encrypted_link_carries_events(started: Started, certificates: Path, tmp_path: Path) -> None:
    # A second listener without TLS, for the board of this test.
    plain = Broker(tmp_path)
    broker = started(*tls(certificates), f"listener {plain.port} 127.0.0.1", "allow_anonymous true")
    with Watch(tmp_path, address=f"localhost:{broker.port}", ca_file=str(certificates / "ca.pem")) as watch:
        board = Board(plain)
        board.say("transcript", text="what time is it")
        watch.first(Transcript)
        board.close()
