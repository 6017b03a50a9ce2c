"""A transformer's decode step as a program: operator graph, fusion passes, lowering, and what it must compute."""
