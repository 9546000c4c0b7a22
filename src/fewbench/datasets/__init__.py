"""The bundled demo: a benchmark of digits, a zoo of classifiers that took it, and a newcomer."""
