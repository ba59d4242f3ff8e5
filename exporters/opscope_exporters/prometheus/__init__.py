"""Pages for Prometheus and programs that read its formats."""
