"""The methods of Zhang, Dorner & Hardt 2025 beside ridge regression and AIPW."""
