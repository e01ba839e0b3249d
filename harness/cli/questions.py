"""Which command answers which question: the text of `harness help`, and a page of the reference."""

from __future__ import annotations

import click

QUESTIONS = {
    "Start": {"What does a test look like?": "init demo", "How do I test my device?": "init"},
    "Before a run": {
        "Are my files right?": "check",
        "Is this computer ready?": "check doctor",
        "Does sound arrive at the microphone?": "check sound",
        "How long will it take? Is that enough data?": "check rehearse",
        "How many hours and utterances do I need?": "evaluate plan",
    },
    "Run": {
        "How well does the device hear and answer?": "run",
        "How do I resume an interrupted run?": "run resume",
        "How is the run doing?": "run attach",
        "How do I stop a run?": "run stop",
    },
    "Results of sessions": {
        "What happened in a session?": "report show",
        "What do I show to decision makers?": "report page",
        "Is the new build worse?": "report compare",
        "When did it get worse?": "report trend",
        "How do I use the results in other tools?": "report export",
        "Which responses were right or wrong?": "report categories",
        "Do the raters agree?": "report agreement",
        "Did the device do what it said?": "report effects",
        "How long does it remember a dialogue?": "report memory",
    },
    "People": {
        "Is this response right?": "rate",
        "How do raters reach the site?": "rate invite",
        "How do I move judgments between programs?": "rate judgments",
    },
    "Recordings and transcripts": {
        "How good is a wake engine or recogniser?": "evaluate",
        "Which threshold meets a target?": "evaluate",
        "Is the second engine better?": "evaluate",
        "Which voice or noise level fails?": "evaluate",
        "Which engines are available?": "evaluate engines",
        "How do I make test audio with labels?": "evaluate mix",
        "How do I join the parts of an evaluation?": "evaluate merge",
        "How much accuracy does the room cost?": "evaluate offline",
        "What is the word error rate?": "score",
        "How do I convert .sro transcriptions?": "score snor",
    },
    "Intents and slots": {
        "How well are intents and slots understood?": "understand score",
        "How do I label utterances?": "understand annotate",
        "How do I train and compare models?": "understand bench",
        "What do recognition errors cost?": "understand cascade",
        "How good is a system from sound to intents?": "understand predict",
        "How do I turn a corpus into speech?": "understand speak",
    },
    "Equipment and storage": {
        "Which devices can I test?": "admin devices",
        "Which sound devices are available?": "admin sound",
        "Which voices can speak?": "admin voices",
        "How loud is the loudspeaker?": "admin calibrate",
        "How do I test without hardware?": "admin lab",
        "How do I hand a session over?": "admin pack",
        "How do I open a packed session?": "admin unpack",
        "How do I remove speech from a clip?": "admin redact",
        "How do I free disk space?": "admin purge",
        "How can my editor check my files?": "admin schema",
    },
}
"""Heading → question → the words of the command."""
SYNONYMS = {
    "benchmark": "evaluate",
    "broker": "admin lab",
    "clean": "admin purge",
    "compute": "score",
    "configure": "init",
    "continue": "run resume",
    "create": "init",
    "delete": "admin purge",
    "diff": "report compare",
    "discover": "admin devices discover",
    "down": "admin lab down",
    "dry-run": "check rehearse",
    "eval": "evaluate",
    "history": "report trend",
    "html": "report page",
    "import": "rate judgments import",
    "intents": "understand score",
    "judge": "rate",
    "label": "understand annotate",
    "labels": "understand annotate",
    "learn-earcon": "admin devices learn-earcon",
    "level": "admin calibrate",
    "lint": "check",
    "listen": "admin devices monitor",
    "log": "report show",
    "microphone": "check sound",
    "mic": "check sound",
    "models": "evaluate engines",
    "monitor": "admin devices monitor",
    "move": "admin devices move",
    "new": "init",
    "nlu": "understand score",
    "noise": "check sound",
    "play": "run",
    "ports": "admin devices discover",
    "power": "admin devices power",
    "profile": "admin devices",
    "profiles": "admin devices",
    "propose": "understand annotate propose",
    "raters": "rate invite",
    "record": "admin sound record",
    "recordings": "admin sound recordings",
    "results": "report show",
    "review": "understand annotate review",
    "say": "admin voices say",
    "setup": "init",
    "simulate": "check rehearse",
    "speak": "admin voices say",
    "start": "run",
    "status": "run attach",
    "summary": "report show",
    "sweep": "evaluate",
    "test": "run",
    "tour": "init demo",
    "transcribe": "evaluate",
    "tts": "admin voices say",
    "tutorial": "init demo",
    "up": "admin lab up",
    "verify": "check",
    "view": "report show",
    "watch": "run attach",
    "wer": "score",
    "zip": "admin pack",
}
"""Words that people try as a command → the words of the command."""
TROUBLE = "When something fails: harness check doctor, then look up what you see in {}."


def answers(formatter: click.HelpFormatter) -> str:
    """The questions below their headings, each with its command."""
    formatter.write_text("Which command answers which question? For its options, add --help.")
    for heading, rows in QUESTIONS.items():
        with formatter.section(heading):
            formatter.write_dl([(question.ljust(44), f"harness {words}") for question, words in rows.items()], 46)
    formatter.write_paragraph()
    formatter.write_text(TROUBLE.format("docs/how-to/troubleshooting.md"))
    return formatter.getvalue()
