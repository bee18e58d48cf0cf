"""What the product makes of a store, as tests call it: in this process, mostly without Spark."""
