"""Annotation, tri-training, and models of intents and slots."""
