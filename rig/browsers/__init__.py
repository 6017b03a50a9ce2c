"""Browsers: find one, say exactly which it is, and with which flags it is to be started. Nothing here measures."""
