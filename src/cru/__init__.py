"""cru: a command-line agent whose every step is an event that people can program."""

__version__ = "0.1.0"
