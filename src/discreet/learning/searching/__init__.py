"""What an adaptive search weighs: what it found so far, candidates, their prices, and its effort."""
