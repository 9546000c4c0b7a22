"""Evaluations run with lm-evaluation-harness."""
