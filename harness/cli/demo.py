"""`harness init demo`: the tour that `make demo` runs, in its own virtual lab."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import shell_word
from harness.cli.options import flag, option_group, verb
from harness.cli.run import VIEW, WatchOptions, sessions_option, watch
from harness.cli.sessions import progress_of

if TYPE_CHECKING:
    from harness.session.engine.launch import EnginePlace

ENDS_WITHIN_S = 10.0


@verb("demo")
def command(
    *,
    sessions: Path = sessions_option,
    keep_lab: bool = flag("Leave the demo's virtual lab running afterwards."),
    short: bool = flag("Play only two queries."),
    options: WatchOptions = option_group(**VIEW),
) -> None:
    """Test the reference assistant with real sound in a virtual lab. The tour takes about three minutes.

    With --short, the demo plays two queries in about half a minute.

    In a terminal, the dashboard opens and you are the operator. Without one, the run is printed line by line.
    """
    from harness.base.places import runtime_folder, shipped_folder
    from harness.lab.keeper import ManagedLab
    from harness.session.engine.launch import start_engine
    from harness.session.engine.prepare import prepare

    scenarios = shipped_folder("scenarios")
    # The lab's keeper, the engine and their children inherit it.
    os.environ["HARNESS_LAB"] = str(runtime_folder() / "demo-lab")
    click.echo("Starting the virtual lab: a private sound server, an MQTT broker and an assistant.")
    lab = ManagedLab(scenarios / "lab" / "demo_assistant.yaml", keep=keep_lab)
    engine: EnginePlace | None = None
    try:
        folder = prepare(
            scenarios / ("demo_short.yaml" if short else "demo.yaml"),
            scenarios / "benches" / "virtual_lab.yaml",
            sessions,
        )
        engine = start_engine(folder)
        lab.keep_until_exit(engine.pid)
        status = watch(engine, options.view, history=True)
    finally:
        if engine is not None and not _await_exit(engine):
            lab.leave()
            click.echo(f"The run continues. To watch it: harness run attach {shell_word(engine.folder)}")
        else:
            lab.end()
        if keep_lab:
            stop = f"HARNESS_LAB={os.environ['HARNESS_LAB']} harness admin lab down"
            click.echo(f"The lab is still running. To stop it: {stop}")
    sys.exit(status)


def _await_exit(engine: EnginePlace) -> bool:
    """Gives the engine of a finished session ENDS_WITHIN_S to exit; returns whether it has exited."""
    deadline_s = time.monotonic() + ENDS_WITHIN_S
    while engine.alive and progress_of(Path(engine.folder)).finished and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return not engine.alive
