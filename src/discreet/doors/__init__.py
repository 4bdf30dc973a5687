"""The command line and the explorer: thin, one call each."""
