"""The observatory: audits of other people's libraries, each in an environment of its own, and a page about them all."""
