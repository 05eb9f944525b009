"""The network of the landing page."""

import sbnet as sb
import sbnet.plots

net = sb.noisy_or(
    {("flu", "fever"): {"mild": 0.3, "high": 0.6}, ("cold", "fever"): {"mild": 0.2}, ("cold", "sneezing"): 0.8},
    leak={"fever": {"mild": 0.02}, "sneezing": 0.05},
    prior={"flu": 0.05, "cold": 0.2},
    states={"fever": ["none", "mild", "high"]},
)
sb.plots.network(net)
