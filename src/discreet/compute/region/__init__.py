"""What noisy tables leave open about the true table behind them: a region of tables, and bounds over it."""
