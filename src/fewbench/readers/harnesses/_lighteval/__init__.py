"""Parts of the reader of lighteval."""
