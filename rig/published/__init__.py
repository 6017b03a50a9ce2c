"""Figures of two papers and of the files behind them, and how ours stand beside them. README.md has the sources."""
