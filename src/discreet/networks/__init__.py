"""Networks as validated values, their answers, and the files that carry them."""
