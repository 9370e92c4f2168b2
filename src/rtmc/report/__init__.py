"""Show a credit to people: tables and trees as text."""
