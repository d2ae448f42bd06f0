"""What runs a compiled candidate: one self-contained file, `runner.py`, used by the Lab and embedded in result folders."""
