"""What is there to reproduce a paper: its mechanisms, baselines and bounds."""
