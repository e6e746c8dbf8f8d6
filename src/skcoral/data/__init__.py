"""Where a correlation matrix comes from: moments and estimators."""
