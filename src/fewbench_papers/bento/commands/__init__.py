"""The commands of BenTo."""
