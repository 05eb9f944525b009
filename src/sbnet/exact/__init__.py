"""Exact answers: ln P of complete states, sampling, and sums over the states of coupled hidden variables.

`probability` has log_joint and sample, `answers` has log_likelihood, exact_posterior, exact_pairs and kl, `enumeration`
and `quickscore` are the sums behind them.
"""
