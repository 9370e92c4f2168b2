"""What the programs do that agents run, one module a family; ``commands`` has the table."""
