"""The embedded default: lessons for the start checkpoint, how it is made, and what it can do."""
