"""The network of the landing page."""

import sbnet as sb
import sbnet.plots

net = sb.noisy_or(
    {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8},
    leak={"fever": 0.02, "sneezing": 0.05},
    prior={"flu": 0.05, "cold": 0.2},
)
sb.plots.network(net)
