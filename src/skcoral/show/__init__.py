"""What people see: sentences, pictures, the report."""
