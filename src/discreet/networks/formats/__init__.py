"""Networks, releases and synthetic rows as files."""
