"""The published claims that a run passes verdicts on.

From arXiv:2608.08730v1 and its preliminary version, arXiv:2604.02344v1.
"""

CLAIMS = {
    "C1": "Timing one dispatch with its wait overstates the cost, because it times the wait.",
    "C2": "A dispatch costs tens of microseconds.",
    "C3": "The cost does not depend on the data type.",
    "C4": "Fusing lowers the dispatch count and raises throughput although the computation stays the same.",
    "C5": "The dispatch count is the cause of what fusing gains.",
    "C6": "Memory traffic is not the cause of what fusing gains.",
    "C7": "Kernel quality is not the bottleneck.",
    "C8": "The submit is the largest part of a dispatch.",
    "C9": "Validation of each operation is the price of the browser's safety.",
    "C10": "Amortising dispatches (batching, capture and replay) is the way.",
    "C11": "Browsers cost more than native implementations.",
}
"""Claim id to the claim, in our words."""
