"""The parts of the report: the graph, bars, the plot of powers, the audit, and the page around them."""
