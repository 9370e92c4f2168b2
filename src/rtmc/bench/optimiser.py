"""Adam, by which the benchmark's policies climb."""

import numpy as np

from rtmc.batch import Floats

__all__ = ["Adam"]


class Adam:
    """θ ← θ + rate·m̂ / (√v̂ + 1e-8), β = (0.9, 0.999): it does not see the scale of advantages.

    Source: "Adam: A Method for Stochastic Optimization" (arXiv 1412.6980).
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.m: Floats | float = 0.0
        self.v: Floats | float = 0.0

    def step(self, theta: Floats, gradient: Floats) -> Floats:
        """Give the parameters after one step uphill."""
        self.steps += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        m, v = self.m / (1 - 0.9**self.steps), self.v / (1 - 0.999**self.steps)
        return theta + self.rate * m / (np.sqrt(v) + 1e-8)
