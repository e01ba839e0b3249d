"""Frozen domain types and the error tree. Imports nothing of ours."""
