"""Runs a suite of tasks through `optimize` and says how well that went. Above optimize, below cli."""
