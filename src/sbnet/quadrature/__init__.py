"""Sums of exponentials that are t(x), or above it: nodes, weights, and how many are needed. Plain numbers."""
