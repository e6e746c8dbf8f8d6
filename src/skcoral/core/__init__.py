"""What every room stands on: validation, arrays, linear algebra, results."""
