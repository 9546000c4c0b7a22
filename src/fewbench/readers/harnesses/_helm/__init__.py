"""Parts of the reader of HELM's files."""
