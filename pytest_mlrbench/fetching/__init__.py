"""The published texts and inputs: downloaded file by file, verified, compared."""
