"""Parts of the reader of VLMEvalKit."""
