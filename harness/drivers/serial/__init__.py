"""A device on a serial port: its log lines by its profile, and boards that speak docs/framing.md."""

from harness.drivers.serial.device import SerialDevice
from harness.drivers.serial.options import SerialOptions

__all__ = ["SerialDevice", "SerialOptions"]
