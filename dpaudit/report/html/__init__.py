"""HTML: one file a result and an overview of a suite, to be read without script, network or anything beside them."""

from dpaudit.report.html.pages import files, page_names, render_result, render_suite

__all__ = ["files", "page_names", "render_result", "render_suite"]
