"""Small Python repositories with one fault each, made up as they are asked for."""

from rtmc.agent.tasks.tiny.problems import Knobs, TinyProblems

__all__ = ["Knobs", "TinyProblems"]
