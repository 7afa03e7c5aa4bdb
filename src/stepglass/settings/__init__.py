"""All settings: their names, their allowed values, and where their values come from."""
