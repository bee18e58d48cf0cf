"""Evidence, outcomes and rows made by hand, without a store."""
