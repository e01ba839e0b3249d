"""Boards that lose their power in a session: a smart plug at a broker after a hang, a supply that speaks SCPI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as mqtt

from harness.model.observation import LinkBack, LinkLost
from harness.model.record import AttemptStarted, Observed, PowerSwitched, TrialFinished
from harness.model.trial import Outcome
from tests.conformance.boards import PosixBoard, posix_board
from tests.conformance.engine_runs import kill, rows
from tests.conformance.faulted_runs import SCENARIO, Session, assert_whole, bench, strike
from tests.conformance.mqtt_bench import Broker
from tests.conformance.test_positioners import Instrument, subscribed
from tests.known import known
from tests.written_sessions import records


@contextmanager
def plug(broker: Broker, turned: Callable[[bool], None]) -> Iterator[list[str]]:
    """A smart plug with Tasmota's topics; what it was told."""
    orders: list[str] = []

    def message(client: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        word = message.payload.decode()
        orders.append(word)
        turned(word == "ON")
        client.publish("stat/plug/RESULT", f'{{"POWER":"{word}"}}')
        client.publish("stat/plug/POWER", word)

    with subscribed(broker, "cmnd/plug/POWER", message):
        yield orders


def powers(board: PosixBoard) -> Callable[[bool], None]:
    """What becomes of a board on a USB port: without power its port is gone, and with power it boots."""

    def turned(on: bool) -> None:
        cable = known(board.cable)
        if not on:
            cable.unplug()
            return
        board.thaw()
        board.reset()
        cable.replug()

    return turned


def test_a_board_that_hangs_is_power_cycled_by_a_smart_plug_and_the_counts_are_right(short: Path) -> None:
    for name in ("wired", "radio"):
        (short / name).mkdir()
    with (
        Broker(short) as broker,
        posix_board(short / "wired", cable=True) as wired,
        posix_board(short / "radio", "--device", "radio", "--mqtt", f"127.0.0.1:{broker.port}"),
        plug(broker, powers(wired)) as orders,
    ):
        address = f'address: "127.0.0.1:{broker.port}"'
        bench_yaml = bench(
            wired=f"{{driver: serial, port: {wired.port}, encoding: ulaw}}",
            radio=f"{{driver: mqtt, {address}, encoding: ulaw}}",
        )
        bench_yaml += (
            "on_fault: {retry_after_s: 3, retries: 3, power_cycles: 1}\n"
            f"power: {{wired: {{driver: mqtt_commands, {address}, topic: cmnd/plug/POWER, done_topic: stat/plug/POWER,"
            " on_done: ^ON$, off_done: ^OFF$, off_s: 1, boot_s: 60}}\n"
        )
        one_segment = SCENARIO.replace("hours: 0.1", "hours: 0.0333333")
        with Session(short / "work", scenario=one_segment, bench=bench_yaml) as session:
            session.playing("soak.r1.s0001", "wired")
            struck_s = strike(wired.freeze)
            session.lost("wired", struck_s)
            assert session.finish() == 0, session.screen()
        assert orders == ["OFF", "ON"]
        entries = assert_whole(session.folder, takes=2)
        assert "wired: power off (soak.r1.s0001: link lost: wired" in session.screen()
        assert "RESUMED by on_fault: wired power cycled" in session.screen()
        assert "power cycles         wired: 1, 1 of them after a fault" in session.screen()
    off, on = records(entries, PowerSwitched)
    assert (off.on, on.on, off.after_fault) == (False, True, True)
    assert on.answered_s is not None
    takes = {row.take: row.outcome for row in records(entries, TrialFinished) if row.trial_id == "soak.r1.s0001"}
    assert takes == {1: Outcome.INTERRUPTED, 2: Outcome.COUNTED}


@contextmanager
def supply(board: PosixBoard) -> Iterator[Instrument]:
    """A power supply whose output feeds the board."""
    turned = powers(board)
    with Instrument() as far:
        command = far.command

        def switched(name: str, value: str) -> None:
            command(name, value)
            turned(value == "ON")

        far.command = switched  # type: ignore[method-assign]
        yield far


def powered_by(far: Instrument, off_s: float = 0.5, boot_s: float = 60.0) -> str:
    return (
        f'power: {{wired: {{driver: scpi, resource: "{far.resource}", errors: "SYST:ERR?", on: OUTP ON, '
        f"off: OUTP OFF, off_s: {off_s}, boot_s: {boot_s}}}}}\n"
    )


def test_a_board_boots_on_a_supply_before_every_other_call(short: Path) -> None:
    scenario = SCENARIO.partition("  - id: soak")[0] + SCENARIO[SCENARIO.index("matrix:") :]
    scenario = scenario.replace("kind: wake, lead_in_s: 40", "kind: wake, lead_in_s: 5, power_cycle: every 2")
    (short / "board").mkdir()
    with posix_board(short / "board", cable=True) as board, supply(board) as far:
        bench_yaml = bench(wired=f"{{driver: serial, port: {board.port}}}") + powered_by(far)
        with Session(short / "work", scenario=scenario, bench=bench_yaml) as session:
            assert session.finish() == 0, session.screen()
        far.shutdown()
    entries = rows(session.folder)
    kinds = [
        type(entry.record).__name__
        for entry in entries
        if isinstance(entry.record, PowerSwitched | AttemptStarted)
        or (isinstance(entry.record, Observed) and isinstance(entry.record.observation, LinkLost | LinkBack))
    ]
    cycle = ["PowerSwitched", "Observed", "Observed", "PowerSwitched"]
    assert kinds == [*cycle, "AttemptStarted", "AttemptStarted", *cycle, "AttemptStarted"]
    assert [row.outcome for row in records(entries, TrialFinished)] == [Outcome.COUNTED] * 3


def test_a_board_that_a_killed_run_left_without_power_boots_before_it_is_reached(short: Path) -> None:
    scenario = SCENARIO.partition("  - id: soak")[0].replace("lead_in_s: 40", "lead_in_s: 5, power_cycle: every 9")
    (short / "board").mkdir()
    with posix_board(short / "board", cable=True) as board, supply(board) as far:
        bench_yaml = bench(wired=f"{{driver: serial, port: {board.port}}}") + powered_by(far, off_s=600.0, boot_s=8.0)
        with Session(short / "work", scenario=scenario, bench=bench_yaml) as session:
            session.lost("wired", 0.0)
            assert far.values["OUTP"] == "OFF"
            kill(session.place)
            resolved = session.folder / "resolved.json"  # ten minutes were for the kill to come in time
            resolved.write_text(resolved.read_text(encoding="utf-8").replace('"off_s": 600.0', '"off_s": 0.5'))
            session.resume()
            assert session.finish() == 0, session.screen()
        far.shutdown()
    switched = records(rows(session.folder), PowerSwitched)
    assert [(row.on, row.reason) for row in switched] == [
        (False, "before call.r1"),
        (True, "the run begins"),
        (False, "before call.r1"),
        (True, "before call.r1"),
    ]
