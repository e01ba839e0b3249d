"""Predicted intents and slots against gold ones."""
