"""Where rows are counted, budget is spent and noise is drawn; it knows no models."""
