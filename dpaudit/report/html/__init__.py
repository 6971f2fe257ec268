"""HTML: one file a result and an overview of a suite, to be read without script, network or anything beside them."""

from dpaudit.report.html.pages import render_result, render_suite
from dpaudit.report.html.writing import page_names, write_suite

__all__ = ["page_names", "render_result", "render_suite", "write_suite"]
