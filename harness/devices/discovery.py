"""Devices that announce themselves on the network (mDNS), and the USB serial ports of this host.

Everything that a device announces is foreign text: sanitise it before you show it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.base import threads
from harness.base.plugins import import_extra
from harness.devices.serial.port import lasting_names, sorted_ports, usb_ids
from harness.model.errors import DeviceError
from harness.model.frozen import frozen

if TYPE_CHECKING:
    from serial.tools.list_ports_common import ListPortInfo
    from zeroconf import ServiceInfo

SERVICES = {
    "_esphomelib._tcp.local.": "esphome",
    "_wyoming._tcp.local.": "wyoming",
    "_home-assistant._tcp.local.": "home_assistant",
    "_hivemind._tcp.local.": "hivemind",
    "_mqtt._tcp.local.": "mqtt",
}
"""mDNS service → kind of device. The message bus of OpenVoiceOS announces nothing."""
SERIAL = "serial"
MAX_ANNOUNCEMENTS = 256
"""Largest number of announcements that are handled; more are a fault or an attack."""
ANSWER_LIMIT_S = 1.0
ANSWERS_LIMIT_S = 5.0
"""Time limits for finding the address of one announcement, and of all, in seconds."""
_MODEL = ("project_name", "model", "board", "location_name")
_VERSION = ("project_version", "version")


@frozen
class FoundDevice:
    """A device that was found.

    kind: a value of SERVICES, or SERIAL. address: host:port, or the path of a serial port; "" if it gave none.
    model, version: "" if not announced. encrypted: whether it announces an encrypted connection.
    """

    kind: str
    name: str
    address: str
    model: str = ""
    version: str = ""
    encrypted: bool = False


def find_announced(seconds: float, interfaces: Sequence[str] | None = None) -> list[FoundDevice]:
    """Devices that announce themselves within `seconds`, sorted by kind and name.

    interfaces: addresses of this host on whose networks to search; None: all.

    DeviceError when this host cannot ask the network, PluginError when zeroconf is not installed.
    """
    zeroconf = import_extra("zeroconf", "the library that discovers devices", "discover")
    names: dict[tuple[str, str], None] = {}

    def changed(*, service_type: str, name: str, state_change: Any, **_: object) -> None:
        """Called by a thread of zeroconf."""
        if state_change is zeroconf.ServiceStateChange.Removed:
            names.pop((service_type, name), None)
        elif len(names) < MAX_ANNOUNCEMENTS:
            names[service_type, name] = None

    try:
        asking = zeroconf.Zeroconf(interfaces=interfaces or zeroconf.InterfaceChoice.All)
    except (OSError, RuntimeError) as error:
        raise DeviceError(
            f"this host cannot search its network for devices: {error}",
            remedy="Connect it to the devices' network, and allow UDP port 5353",
        ) from error
    with asking:
        zeroconf.ServiceBrowser(asking, list(SERVICES), handlers=[changed])
        threads.sleep(seconds)
        until_s = threads.monotonic() + ANSWERS_LIMIT_S
        devices = [_resolve(asking, zeroconf, kind, name, until_s) for kind, name in list(names)]
    return sorted(set(devices), key=lambda device: (device.kind, device.name, device.address))


def _resolve(asking: Any, zeroconf: Any, service: str, name: str, until_s: float) -> FoundDevice:
    try:
        info = zeroconf.ServiceInfo(service, name)
    except zeroconf.Error:  # a name with control characters, which the standard forbids
        return FoundDevice(SERVICES[service], name.removesuffix(f".{service}"), "")
    within_s = min(ANSWER_LIMIT_S, until_s - threads.monotonic())
    is_known = info.load_from_cache(asking) or (within_s > 0 and info.request(asking, within_s * 1000))
    return row_of(info, known=bool(is_known))


def row_of(info: ServiceInfo, *, known: bool = True) -> FoundDevice:
    """The row of an announcement. known: whether its address is known."""
    properties = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in info.properties.items()
        if value is not None
    }
    name = properties.get("friendly_name") or info.name.removesuffix(f".{info.type}")
    model, version = (next((properties[key] for key in keys if properties.get(key)), "") for keys in (_MODEL, _VERSION))
    address = _address(info) if known else ""
    return FoundDevice(SERVICES[info.type], name, address, model, version, bool(properties.get("api_encryption")))


def _preference(address: str) -> tuple[bool, int]:
    ip = ipaddress.ip_address(address)
    return ip.is_link_local, ip.version


def _address(info: ServiceInfo) -> str:
    """IPv4 before IPv6, and link-local addresses last, since they need the interface; "" without any."""
    addresses = info.parsed_scoped_addresses()
    ranked = sorted(addresses, key=_preference)
    if not ranked or not info.port:
        return ""
    return f"[{ranked[0]}]:{info.port}" if ":" in ranked[0] else f"{ranked[0]}:{info.port}"


def serial_ports() -> Iterator[FoundDevice]:
    """The USB serial ports of this host, by names that do not change when a device is plugged in again."""
    lasting = lasting_names()
    for port in sorted_ports():
        if port.vid is not None:
            yield port_row(port, lasting.get(port.device, port.device))


def port_row(port: ListPortInfo, path: str) -> FoundDevice:
    """The row of a port. Its version is its USB vendor and product."""
    product = " ".join(text for text in (port.manufacturer, port.product) if text)
    return FoundDevice(SERIAL, port.product or port.name or path, path, product, usb_ids(port))
