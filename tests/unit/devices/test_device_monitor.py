"""The monitor of a profile that is being written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.devices import device_monitor
from harness.devices.device_monitor import DeviceMonitor
from harness.devices.device_sources import output_now
from harness.devices.profiles.profile import load_profile
from harness.model.bench import DeviceProfile

PROFILE = "device: lamp\nwake_phrases: [hey lamp]\nreports: [wake]\nlines:\n  - {match: '^WORD', kind: wake}\n"


def test_a_profile_that_is_saved_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lamp.yaml"
    path.write_text(PROFILE, encoding="utf-8")
    monitor = DeviceMonitor(str(path), tmp_path)

    def load_and_save(name: Any, **options: Any) -> DeviceProfile:
        loaded = load_profile(name, **options)
        path.write_text(PROFILE.replace("WORD", "SAVED"), encoding="utf-8")
        return loaded

    path.write_text(PROFILE.replace("WORD", "READ"), encoding="utf-8")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(device_monitor, "load_profile", load_and_save)
        assert monitor.reload_if_changed(1.0)
    assert monitor.reload_if_changed(2.0)
    assert monitor.feed(output_now(b"SAVED\n"))[0].mapped
    assert not monitor.reload_if_changed(3.0)
