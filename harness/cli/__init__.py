"""The command line: verbs only. A verb's module is imported when the verb is used."""

from __future__ import annotations

import sys

import click

from harness import __version__
from harness.cli.streams import write_all
from harness.cli.verbs import Verbs, orderly_end
from harness.model.errors import HarnessError

VERBS: dict[str, tuple[str, str]] = {
    "init": ("harness.cli.init", "Write a commented starter scenario and bench, also for a board of yours."),
    "validate": ("harness.cli.validate", "Check scenarios, benches and device profiles; plays nothing."),
    "schema": ("harness.cli.schema", "Print or write the JSON Schemas for editors."),
    "voices": ("harness.cli.voices", "List the voices that are installed, or hear one."),
    "sound": ("harness.cli.sound", "List sound devices; check the sound path with a chirp."),
    "lab": ("harness.cli.lab", "Start, stop and show the virtual lab."),
    "run": ("harness.cli.run", "Run a scenario on a bench."),
    "resume": ("harness.cli.run:resume", "Go on with a session that was cut off."),
    "attach": ("harness.cli.run:attach", "Watch and steer a session that is running."),
    "show": ("harness.cli.show", "Print what a session log says."),
    "effects": ("harness.cli.effects", "List what queries should bring about and nobody has seen; take answers."),
    "memory": ("harness.cli.memory", "Say how long devices remember, from sessions with memory trials."),
    "export": ("harness.cli.export", "Write what a session found as a wake-evaluation log, or as JUnit."),
    "score": ("harness.cli.score", "Score transcripts against references, word by word."),
    "snor": ("harness.cli.snor", "Convert .sro transcriptions to Lexical SNOR, Expanded SNOR or .snr."),
    "rate": ("harness.cli.rate", "Judge first responses: in the terminal, in plain lines, or in a browser."),
    "categories": ("harness.cli.categories", "Count the categories of first responses; compare two devices."),
    "agreement": ("harness.cli.agreement", "Say how far raters agree, and what they say together."),
    "judgments": (
        "harness.cli.judgments",
        "Export judgments to CSV, Parquet or JSON lines; import those made elsewhere.",
    ),
    "invite": ("harness.cli.invite", "Invite raters or annotators to their site."),
    "evaluate": ("harness.cli.evaluate", "Run a wake engine or a recogniser over lists of files; write the log."),
    "engines": ("harness.cli.engines", "List engines for offline evaluation, their models, settings and licences."),
    "merge": ("harness.cli.merge", "Put the shards of an evaluation together."),
    "report": ("harness.cli.report", "Read a wake-evaluation log, of ours or of the original tool, and sum it up."),
    "compare": ("harness.cli.compare", "Compare two evaluations: on the same files, or two rates on different audio."),
    "offline": ("harness.cli.offline", "Put a session's stimuli through an engine: what the acoustic path cost."),
    "understanding": (
        "harness.cli.understanding",
        "Score intents and slots; train and use a model of them; say what recognition cost.",
    ),
    "annotate": ("harness.cli.annotate", "Give utterances their intents: proposals, review by groups, agreement."),
    "plan": ("harness.cli.plan", "Work out the hours and utterances that a claim needs."),
    "devices": ("harness.cli.devices", "List device profiles, test them, watch what they make of a device."),
    "doctor": ("harness.cli.doctor", "Check ports, rights, sound, broker, disk and clock of this host."),
    "help": ("harness.cli.verbs", "Say what a verb does, as `harness VERB --help`."),
    "demo": ("harness.cli.demo", "Run the demonstration in the virtual lab."),
}
LONGEST_TOLD = 2000


@click.command(cls=Verbs, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="voice-harness")
def group() -> None:
    """A live test harness for voice devices.

    Exit status: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 a device, engine or file fault.
    """


def main() -> None:
    """Entry point: an error of ours is a message and an exit status, never a traceback."""
    write_all()
    try:
        with orderly_end():
            group(prog_name="harness")
    except HarnessError as error:
        from harness.base.foreign import plain_text  # here, since few need it

        lines = f"harness: {error}".split("\n")
        click.echo("\n".join(plain_text(line, LONGEST_TOLD) for line in lines), err=True)
        sys.exit(error.exit_code)
