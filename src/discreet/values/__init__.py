"""Pure values that every room speaks: schema, table, graph, law, budget, measurement."""
