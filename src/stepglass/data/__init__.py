"""Text into tokens, and tokens into batches."""
