"""Parts of the reader of Every Eval Ever's records."""
