"""What an endpoint's replies and refusals mean."""
