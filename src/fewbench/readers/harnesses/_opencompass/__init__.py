"""Parts of the reader of OpenCompass."""
