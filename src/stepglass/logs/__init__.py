"""Reading training logs, whoever wrote them: one module a format, text to the run log's records."""
