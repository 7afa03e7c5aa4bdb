"""Answers requests for text over HTTP, as OpenAI's clients make them."""
