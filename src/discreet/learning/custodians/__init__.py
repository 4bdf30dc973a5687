"""Several custodians, one network: a plan that all of them agree on, and the sum of what each has measured by it."""
