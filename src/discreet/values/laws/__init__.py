"""Laws of noise that are made of others."""
