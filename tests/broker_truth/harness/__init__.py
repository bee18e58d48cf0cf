"""Real releases, driven from Python; what several tests ask of them."""
