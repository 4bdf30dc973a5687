"""What users run: the planned learner, the adaptive search, PrivBayes."""
