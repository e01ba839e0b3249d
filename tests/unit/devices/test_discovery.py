"""Devices that announce themselves by mDNS on the loopback interface, with real announcements of zeroconf."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator

import pytest
from serial.tools.list_ports_common import ListPortInfo
from zeroconf import DNSOutgoing, DNSPointer, ServiceInfo, Zeroconf
from zeroconf.const import _CLASS_IN, _FLAGS_AA, _FLAGS_QR_RESPONSE, _TYPE_PTR

from harness.cli.discover import init_command
from harness.devices.discovery import FoundDevice, announced_device, find_announced, port_device
from tests.seen import until

LOOPBACK = "127.0.0.1"
LOOK_S = 2.0
"""The first question asks for answers to its own port, which the announcer of the same host shares, and may take. The
second one, a second later, is answered to all."""
NOISE = "Noise_NNpsk0_25519_ChaChaPoly_SHA256"


@pytest.fixture
def network() -> Iterator[Zeroconf]:
    announcing = Zeroconf(interfaces=[LOOPBACK])
    yield announcing
    announcing.close()


def announcement(
    service: str, name: str, port: int, address: str = LOOPBACK, **properties: str | bytes | None
) -> ServiceInfo:
    kind = f"_{service}._tcp.local."
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = [socket.inet_pton(family, address)] if address else []
    return ServiceInfo(
        kind, f"{name}.{kind}", addresses=packed, port=port, properties=properties, server=f"{name}.local."
    )


def found(names: set[str]) -> dict[str, FoundDevice]:
    """The rows with these names; the search is repeated, since a busy host may miss an answer."""
    rows: dict[str, FoundDevice] = {}

    def all_here() -> bool:
        rows.update((device.name, device) for device in find_announced(LOOK_S, [LOOPBACK]) if device.name in names)
        return rows.keys() == names

    until(all_here, 20)
    return rows


def test_each_kind_is_found_with_its_address_model_version_and_command(network: Zeroconf) -> None:
    mark = uuid.uuid4().hex[:8]
    names = [f"{kind}-{mark}" for kind in ("pe", "sat", "ha", "hive", "broker")]
    pe, sat, ha, hive, broker = names
    for service in (
        announcement(
            "esphomelib", pe, 6053, friendly_name=f"Kitchen {mark}", version="2025.9.1", api_encryption=NOISE,
            project_name="Nabu Casa.Home Assistant Voice PE", project_version="25.9.1",
        ),
        announcement("wyoming", sat, 10700),
        announcement("home-assistant", ha, 8123, location_name="Home", version="2025.9.3"),
        announcement("hivemind", hive, 5678),
        announcement("mqtt", broker, 1883),
    ):  # fmt: skip
        network.register_service(service, cooperating_responders=True)
    rows = found({f"Kitchen {mark}", sat, ha, hive, broker})
    kitchen = FoundDevice(
        "esphome", f"Kitchen {mark}", "127.0.0.1:6053", "Nabu Casa.Home Assistant Voice PE", "25.9.1", encrypted=True
    )
    assert rows[f"Kitchen {mark}"] == kitchen
    assert rows[sat] == FoundDevice("wyoming", sat, "127.0.0.1:10700")
    assert rows[ha] == FoundDevice("home_assistant", ha, "127.0.0.1:8123", "Home", "2025.9.3")
    options = f"--board kitchen_{mark} kitchen_{mark}"
    assert init_command(kitchen) == f"harness init --esphome 127.0.0.1:6053 --key-env ESPHOME_KEY {options}"
    assert init_command(rows[sat]) == f"harness init --wyoming 127.0.0.1:10700 --board sat_{mark} sat_{mark}"
    assert init_command(rows[broker]) == f"harness init --address 127.0.0.1:1883 --board broker_{mark} broker_{mark}"
    assert init_command(rows[ha]) == f"harness init --home-assistant 127.0.0.1:8123 --board ha_{mark} ha_{mark}"
    assert init_command(rows[hive]) == ""  # no driver reaches it


def test_a_device_that_left_is_not_found(network: Zeroconf) -> None:
    name = f"gone-{uuid.uuid4().hex[:8]}"
    service = announcement("wyoming", name, 10700)
    network.register_service(service, cooperating_responders=True)
    found({name})
    network.unregister_service(service)
    until(lambda: name not in {row.name for row in find_announced(LOOK_S, [LOOPBACK])}, 20)


def test_a_name_that_the_standard_forbids_is_a_row_without_an_address(network: Zeroconf) -> None:
    """zeroconf refuses to announce such a name, so the packet is built by hand."""
    kind, name = "_wyoming._tcp.local.", f"evil\x1b]0;x\x07{uuid.uuid4().hex[:8]}"

    def answered() -> list[FoundDevice]:
        out = DNSOutgoing(_FLAGS_QR_RESPONSE | _FLAGS_AA)
        out.add_answer_at_time(DNSPointer(kind, _TYPE_PTR, _CLASS_IN, 4500, f"{name}.{kind}"), 0)
        sending = threading.Timer(0.3, network.send, (out,))
        sending.start()
        rows = [row for row in find_announced(0.9, [LOOPBACK]) if row.name == name]
        sending.join()
        return rows

    rows: list[FoundDevice] = []
    until(lambda: bool(rows.extend(answered()) or rows), 20)
    assert rows[0] == FoundDevice("wyoming", name, "")
    assert init_command(rows[0]) == ""


def test_hostile_announcement_cannot_inject_into_the_command() -> None:
    hostile = announcement(
        "esphomelib", "x", 6053, friendly_name="$(reboot); 'rm' \u202e", version=b"\xff\x1b[31m", api_encryption=NOISE
    )
    row = announced_device(hostile)
    assert (
        init_command(row) == "harness init --esphome 127.0.0.1:6053 --key-env ESPHOME_KEY --board reboot_rm reboot_rm"
    )
    nameless = announced_device(announcement("wyoming", "x", 10700, friendly_name="\u5ba2\u5385"))
    assert init_command(nameless) == "harness init --wyoming 127.0.0.1:10700"
    injecting = announced_device(announcement("wyoming", "x", 10700, friendly_name="Bench"))
    assert "--board" not in init_command(injecting)


@pytest.mark.parametrize(
    ("address", "expected"), [("192.0.2.9", "192.0.2.9:10700"), ("2001:db8::9", "[2001:db8::9]:10700"), ("", "")]
)
def test_an_address_is_written_as_init_takes_it(address: str, expected: str) -> None:
    assert announced_device(announcement("wyoming", "x", 10700, address)).address == expected


def test_ipv4_goes_before_ipv6_and_link_local_goes_last() -> None:
    kind = "_wyoming._tcp.local."
    ranked = ["192.0.2.9", "2001:db8::9", "169.254.0.9", "fe80::1"]
    for best in range(len(ranked)):
        packed = [
            socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
            for address in ranked[best:]
        ]
        row = announced_device(ServiceInfo(kind, f"x.{kind}", addresses=packed[::-1], port=10700))
        assert row.address in (f"{ranked[best]}:10700", f"[{ranked[best]}]:10700")


def test_a_serial_port_has_its_usb_ids_and_its_lasting_name() -> None:
    port = ListPortInfo("/dev/ttyACM0")
    port.vid, port.pid, port.manufacturer, port.product = 0x303A, 0x1001, "Espressif", "USB JTAG"
    row = port_device(port, "/dev/serial/by-id/usb-Espressif_1")
    assert row == FoundDevice(
        "serial", "USB JTAG", "/dev/serial/by-id/usb-Espressif_1", "Espressif USB JTAG", "303a:1001"
    )
    assert init_command(row) == "harness init --port /dev/serial/by-id/usb-Espressif_1 --board usb_jtag usb_jtag"
