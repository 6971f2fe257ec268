"""Classes of leaks with the best event of each: what `benchmarks.search` measures search against."""
