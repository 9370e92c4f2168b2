"""Tell from a user's own rollouts what the estimator can and cannot tell: ``rtmc diagnose``.

    found = Findings()
    for group in groups:
        found.add(sample_of(group, config))
    guidance = found.guidance()

Each group is reduced to sums (``Findings.add``), so that memory holds one group's texts; every
figure is a function of the sums over groups, with its jackknife error (``measured``).
"""

from rtmc.guidance.findings import Findings, Guidance
from rtmc.guidance.measured import Measured
from rtmc.guidance.sample import sample_of

__all__ = ["Findings", "Guidance", "Measured", "sample_of"]
