"""The screens and their panels."""
