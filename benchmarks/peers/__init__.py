"""Other programs for the same problem, written from their descriptions, for comparison only."""
