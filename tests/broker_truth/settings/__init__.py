"""broker.conf and the tables of config/, as real releases read and write them."""
