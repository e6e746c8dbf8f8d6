"""Lower bounds of weak duality: one inequality in each file, valid for any dual point."""
