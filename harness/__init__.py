"""A live test harness for voice devices."""

__version__ = "0.2.0"
