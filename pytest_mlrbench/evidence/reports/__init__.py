"""What documents report: numbers, claims, tables."""
