"""The processes that run mechanisms: ours, those of joblib, and what travels between them."""
