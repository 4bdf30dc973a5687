"""The parts of the report: a layered layout, drawings as SVG, tables as bars, the style of the page."""
