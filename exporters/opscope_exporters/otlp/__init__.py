"""Metrics and spans for OpenTelemetry: pushed by the agent, or beside a program's own."""
