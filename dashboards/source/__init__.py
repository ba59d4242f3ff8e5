"""Makes the Grafana dashboards: `python -m dashboards.source` writes dashboards/grafana/*.json."""
