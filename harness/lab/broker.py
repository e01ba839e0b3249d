"""The lab's MQTT broker: the embedded one on the loopback, in a process of its own that outlives its starter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.devices.mqtt.broker import HOST, run

__all__ = ["HOST", "main"]


def main(port_file: Path, port: int) -> None:
    status = run(port_file, port)
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
