"""The model: a directed acyclic graph with a weight on each edge and a bias at each variable, eqs. (2) to (6).

`network` is the record, `graph` its structure, `build` and `probabilities` make one, `conditional` shows the table of
a variable. `notes` and `roles` are what people say of variables, `mixtures` are mixtures of networks.
"""
