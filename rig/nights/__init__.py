"""The same builds every night: measured inside a budget, compared with the last good night, told on one page."""
