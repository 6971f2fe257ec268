"""Upper bounds: exact replay, rigorous integrals, proofs by alignment with their checker, witnesses."""
