"""A fast in-process sound path: a loudspeaker, an air, a microphone and a simple device, without a sound server."""

from harness.drivers.in_process.device import waveform_sha256
from harness.drivers.in_process.driver import InProcess, InProcessOptions
from harness.drivers.in_process.wakes import Phrase

__all__ = ["InProcess", "InProcessOptions", "Phrase", "waveform_sha256"]
