"""Produce rollouts: a coding agent that works in a sandbox."""
