"""What the project says of itself, measured: validity, tightness, speed, memory, start-up. `python -m benchmarks`."""
