"""The faults suite on the Cortex-M4 (QEMU), over its UART and over a broker: pulled, reset, frozen, broker killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.boards import qemu_board, qemu_installed
from tests.conformance.engine_runs import rows, wait_for
from tests.conformance.faulted_runs import Session, assert_whole, bench, causes, strike
from tests.conformance.mqtt_bench import Broker

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not qemu_installed(), reason="needs qemu-system-arm and gcc-arm-none-eabi"),
]
LONG_S = 300.0


def test_a_cortex_m4_on_a_port_and_one_on_a_broker(short: Path) -> None:
    for name in ("wired", "radio"):
        (short / name).mkdir()
    with (
        Broker(short) as broker,
        qemu_board(short / "wired") as wired,
        qemu_board(short / "radio", device="radio", broker=broker.port) as radio,
    ):
        connections = bench(
            wired=f"{{driver: serial, port: {wired.port}, encoding: pcm16}}",
            radio=f'{{driver: mqtt, address: "127.0.0.1:{broker.port}"}}',
        )
        with Session(short / "work", bench=connections) as session:
            session.playing("call.v-alan", "wired", within_s=LONG_S)
            session.interrupted(strike(wired.cable.unplug))
            mended_s = strike(wired.cable.replug)
            session.back("wired", mended_s)
            session.playing("call.v-boris", "wired", mended_s, LONG_S)
            session.interrupted(strike(wired.reset))
            session.playing("call.v-kal", "wired", within_s=LONG_S)
            session.interrupted(strike(wired.freeze))
            mended_s = strike(wired.thaw)
            session.back("wired", mended_s)
            session.playing("soak.r1.s0001", "radio", within_s=LONG_S)
            session.interrupted(strike(radio.reset))
            at_s = session.watcher.arrivals[-1][0]
            session.playing("soak.r1.s0001", "radio", at_s, LONG_S)
            session.interrupted(strike(radio.freeze), 30)
            mended_s = strike(radio.thaw)
            session.back("radio", mended_s, 60)
            session.playing("soak.r1.s0002", "radio", mended_s, LONG_S)
            session.interrupted(strike(broker.kill))
            wait_for(lambda: "waiting for radio" in session.screen(), 20, "a word about the broker")
            mended_s = strike(broker.start)
            session.back("radio", mended_s, 60)
            assert session.finish(LONG_S * 2) == 0
        kinds = [cause.partition(":")[0] for cause in causes(rows(session.folder))]
        assert kinds[:3] == ["link_lost", "device_restarted", "link_lost"]
        assert kinds[3] in ("device_gone", "device_restarted")
        assert kinds[4:] == ["link_lost", "link_lost"]
        assert_whole(session.folder)
