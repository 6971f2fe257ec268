"""Whether the experiment was sound: named checks that runs are independent, and runs in fresh processes."""
