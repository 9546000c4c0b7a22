"""Parts of the reader of Inspect's logs."""
