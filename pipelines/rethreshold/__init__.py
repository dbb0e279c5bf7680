"""What other thresholds would keep, from the audit table alone."""
