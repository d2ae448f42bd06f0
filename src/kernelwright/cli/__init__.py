"""The command line. `kernelwright --help` answers in 0.3 s: nothing heavy is imported before a command needs it."""

from kernelwright.cli.main import main

__all__ = ["main"]
