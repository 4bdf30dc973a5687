"""Pure values that every layer speaks: schema, table, graph, law, measurement."""
