"""What runs beside a test: servers, a browser, a cluster, audits that are killed; and which files are opened."""
