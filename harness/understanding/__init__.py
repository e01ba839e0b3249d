"""Intents and slots of utterances: corpora, scoring, models, cascade and reports."""
