"""Plans: what to measure through the airlock and how to estimate from the answers."""
