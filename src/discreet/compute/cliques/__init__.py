"""Models made of the margins of cliques: what they say, how they are fitted, and which links they need."""
