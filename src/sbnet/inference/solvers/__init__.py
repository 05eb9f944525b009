"""Solvers, a file for each: anything with the method `solve`, which answers each row alone.

`protocol` says what a solver is. Mean field theory with its terms, structured, conditioned and mixtures of it; Gibbs
sampling and particles; sums over all states.
"""
