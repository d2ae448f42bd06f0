"""The report of a result: one self-contained HTML page. `render` makes it (see render.py)."""

from kernelwright.report.render import render

__all__ = ["render"]
