"""Each solver finds a transformation and a dual point."""
