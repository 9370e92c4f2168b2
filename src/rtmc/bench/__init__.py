"""Measure rtmc: its speed and memory, as ratios taken in one run."""
