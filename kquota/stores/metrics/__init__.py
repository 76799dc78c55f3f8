"""The metrics of brokers about their clients, from exporters or from a Prometheus server, over HTTP."""
