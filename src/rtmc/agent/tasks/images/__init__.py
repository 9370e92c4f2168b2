"""Problems that come as docker images: R2E-Gym and SWE-bench."""

from rtmc.agent.tasks.images.r2e_gym import R2EGym
from rtmc.agent.tasks.images.repository import apply_patch
from rtmc.agent.tasks.images.swe_bench import SweBench
from rtmc.agent.tasks.images.task import ImageTask

__all__ = ["ImageTask", "R2EGym", "SweBench", "apply_patch"]
