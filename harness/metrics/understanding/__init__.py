"""Counts and figures of intents and slots."""
