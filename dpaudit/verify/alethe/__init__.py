"""What obligations rest on: lemmas of exact arithmetic, written as steps of Alethe, found by cvc5 and checked here."""
