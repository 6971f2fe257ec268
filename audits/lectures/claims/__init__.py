"""The quantitative statements of the lecture notes, each recomputed, on one page.

`python -m audits.lectures.claims --results FOLDER --page FILE` renders it from the results of `audits/lectures/`.
"""
