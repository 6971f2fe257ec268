"""What dpaudit gives, made by this tree and by a base commit and compared: a rebuilt house gives the same.

`python -m benchmarks.reference --base COMMIT` runs `cases.py` with the package of each tree, in one environment.
"""
