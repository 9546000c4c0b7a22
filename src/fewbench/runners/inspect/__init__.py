"""Evaluations run with Inspect."""
