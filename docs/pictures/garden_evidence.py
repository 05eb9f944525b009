"""The network of the first page, after the sprinkler was seen to run."""

import sbnet as sb
import sbnet.plots

net = sb.from_edges(
    {("winter", "rain"): 1.5, ("winter", "sprinkler"): -2.0, ("rain", "wet"): 4.0, ("sprinkler", "wet"): 3.0},
    bias={"rain": -1.5, "wet": -3.0},
)
evidence = {"wet": 1, "sprinkler": 1}
sb.plots.network(net, evidence=evidence, means=sb.exact_posterior(net, evidence))
