"""The losses of questions with choices, by name; losses.py computes them."""

CROSS_ENTROPY, HINGE, GENERATIVE, MIX = LOSSES = ("cross_entropy", "hinge", "generative", "mix")
