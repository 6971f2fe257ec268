"""What finds an event on search runs: features, cells, learned scores, selection. A mistake here costs power alone."""
