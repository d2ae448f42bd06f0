"""Kernelwright writes kernels: a PyTorch reference in, a verified faster operator out. Importing it does nothing."""

__version__ = "0.1.0"
