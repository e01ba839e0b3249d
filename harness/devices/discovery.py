"""Devices that announce themselves on the network (mDNS), and the USB serial ports of this host.

Everything that a device announces is foreign text: sanitise it before you show it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.base import threads
from harness.base.plugins import import_extra
from harness.devices.serial.port import sorted_ports, stable_names, usb_ids
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
RESOLVE_LIMIT_S = 1.0
RESOLVE_ALL_LIMIT_S = 5.0
"""Time limits for finding the address of one announcement, and of all, in seconds."""
_MODEL_KEYS = ("project_name", "model", "board", "location_name")
_VERSION_KEYS = ("project_version", "version")


@frozen
class FoundDevice:
    """A device that was found.

    - kind: a value of SERVICES, or SERIAL.
    - address: host:port, or the path of a serial port; "" if it gave none.
    - model, version: "" if not announced.
    - encrypted: whether it announces an encrypted connection.
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

    Raises DeviceError when this host cannot ask the network, PluginError when zeroconf is not installed.
    """
    zeroconf = import_extra("zeroconf", "the library that discovers devices", "discover")
    names: dict[tuple[str, str], None] = {}  # a set of (service, name) in the order of the announcements

    def on_change(*, service_type: str, name: str, state_change: Any, **_: object) -> None:
        """Called by a thread of zeroconf."""
        if state_change is zeroconf.ServiceStateChange.Removed:
            names.pop((service_type, name), None)
        elif len(names) < MAX_ANNOUNCEMENTS:
            names[service_type, name] = None

    try:
        browser = zeroconf.Zeroconf(interfaces=interfaces or zeroconf.InterfaceChoice.All)
    except (OSError, RuntimeError) as error:
        raise DeviceError(
            f"this host cannot search its network for devices: {error}",
            remedy="Connect this host to the devices' network, and allow UDP port 5353",
        ) from error
    with browser:
        zeroconf.ServiceBrowser(browser, list(SERVICES), handlers=[on_change])
        threads.sleep(seconds)
        until_s = threads.monotonic() + RESOLVE_ALL_LIMIT_S
        devices = [_resolve(browser, zeroconf, service, name, until_s) for service, name in list(names)]
    return sorted(set(devices), key=lambda device: (device.kind, device.name, device.address))


def _resolve(browser: Any, zeroconf: Any, service: str, name: str, until_s: float) -> FoundDevice:
    """Asks a device for its address and its properties. Without an answer in time, its name is all that is known."""
    try:
        info = zeroconf.ServiceInfo(service, name)
    except zeroconf.Error:  # a name with control characters, which the standard forbids
        return FoundDevice(SERVICES[service], name.removesuffix(f".{service}"), "")
    within_s = min(RESOLVE_LIMIT_S, until_s - threads.monotonic())
    is_known = info.load_from_cache(browser) or (within_s > 0 and info.request(browser, within_s * 1000))
    return announced_device(info, has_address=bool(is_known))


def announced_device(info: ServiceInfo, *, has_address: bool = True) -> FoundDevice:
    """The device of an announcement. has_address: whether its address is known."""
    properties = {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in info.properties.items()
        if value is not None
    }

    def first_property(keys: Sequence[str]) -> str:
        return next((properties[key] for key in keys if properties.get(key)), "")

    name = properties.get("friendly_name") or info.name.removesuffix(f".{info.type}")
    return FoundDevice(
        kind=SERVICES[info.type],
        name=name,
        address=_address(info) if has_address else "",
        model=first_property(_MODEL_KEYS),
        version=first_property(_VERSION_KEYS),
        encrypted=bool(properties.get("api_encryption")),
    )


def _preference(address: str) -> tuple[bool, int]:
    """A sort key: IPv4 before IPv6, and link-local addresses last, since they need the interface."""
    ip = ipaddress.ip_address(address)
    return ip.is_link_local, ip.version


def _address(info: ServiceInfo) -> str:
    """The preferred host:port of an announcement; "" if it has none."""
    addresses = info.parsed_scoped_addresses()
    ranked = sorted(addresses, key=_preference)
    if not ranked or not info.port:
        return ""
    return f"[{ranked[0]}]:{info.port}" if ":" in ranked[0] else f"{ranked[0]}:{info.port}"


def serial_ports() -> Iterator[FoundDevice]:
    """The USB serial ports of this host, by names that do not change when a device is plugged in again."""
    stable = stable_names()
    for port in sorted_ports():
        if port.vid is not None:
            yield port_device(port, stable.get(port.device, port.device))


def port_device(port: ListPortInfo, path: str) -> FoundDevice:
    """The device at a port. Its version is its USB vendor and product."""
    product = " ".join(text for text in (port.manufacturer, port.product) if text)
    return FoundDevice(SERIAL, port.product or port.name or path, path, product, usb_ids(port))
