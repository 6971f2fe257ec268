"""The stages that propose: looks at pairs, screening, witnesses, events on bits, and the search for pairs."""
