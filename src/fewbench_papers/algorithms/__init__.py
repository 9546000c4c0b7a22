"""Numerical engines that several published systems share, on plain arrays."""
