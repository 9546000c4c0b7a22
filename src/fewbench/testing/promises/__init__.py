"""The promises of a method, by subject; `fewbench.testing.conformance` puts them together."""
