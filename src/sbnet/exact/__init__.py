"""Exact answers: ln P of complete states, sampling, and sums over the states of coupled hidden variables.

`probability` has log_joint and sample, `answers` has log_likelihood, exact_posterior, exact_pairs and kl. Behind them
are sums: `elimination` over variables with any number of states and any gate, with its order (`planning`), numbers
(`factors`) and `passes`; `sparse` brings it to networks; `enumeration` is for small groups and for tables of rows that
have little in common, `quickscore` for two levels of binary causes and findings.
"""
