"""The web app, started by ``coral app``: widgets and caching only."""
