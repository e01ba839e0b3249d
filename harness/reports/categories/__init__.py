"""Figures on the categories of first responses, for people and programs."""
