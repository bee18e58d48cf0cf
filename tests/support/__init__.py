"""What several tests use: builders of stores, damage, random stores, a second witness, the corpus."""
