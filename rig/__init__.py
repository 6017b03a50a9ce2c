"""Dispatch rig: what a WebGPU dispatch costs in a real browser, and how sure that is."""

__version__ = "0.1.0"
