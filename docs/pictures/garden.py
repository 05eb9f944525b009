"""The network of the first page."""

import sbnet as sb
import sbnet.plots

net = sb.from_edges(
    {("winter", "rain"): 1.5, ("winter", "sprinkler"): -2.0, ("rain", "wet"): 4.0, ("sprinkler", "wet"): 3.0},
    bias={"rain": -1.5, "wet": -3.0},
)
sb.plots.network(net)
