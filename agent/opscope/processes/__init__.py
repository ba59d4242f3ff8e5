"""The Python processes of a host, observed or not, and the reason for those that are not."""
