"""How much memory an update needs."""

CHUNK_LOGITS = 1 << 25  # logits that are computed at once; models/chunked_loss.py
