"""Naive Bayes and linear regression as scikit-learn estimators [002, Sec. Experiments]."""
