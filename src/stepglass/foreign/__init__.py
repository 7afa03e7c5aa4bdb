"""Reads models of other programs: nanoGPT, the transformers library, llama.cpp."""
