"""The options that name the source of metrics: the brokers' exporters, or the Prometheus server that scrapes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kquota.cli.connection import Where
from kquota.cli.options import value
from kquota.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSource:
    """The options as given on the command line. If they name no source, `of` uses config.toml or the environment."""

    metrics: Annotated[
        str | None,
        value(
            "metrics", "URL,…", "Prometheus JMX exporters of the brokers, separated by commas. [env: KQUOTA_METRICS]"
        ),
    ] = None
    prometheus: Annotated[
        str | None,
        value(
            "prometheus",
            "URL",
            "Prometheus server that scrapes the exporters, with the labels of this cluster as parameters, for "
            "example http://prometheus:9090?job=kafka. [env: KQUOTA_PROMETHEUS]",
        ),
    ] = None

    def of(self, at: Where) -> MetricsSource:
        """Return the source in these options. If they name none, return the source that config.toml or the environment
        names for the cluster `at`.

        Raises Invalid if no source is given, and if both are given.
        """
        given = self if self.metrics or self.prometheus else MetricsSource(metrics=at.metrics, prometheus=at.prometheus)
        if given.metrics and given.prometheus:
            raise Invalid("--metrics and --prometheus are two sources of the same metrics. Give only one of them")
        if not given.metrics and not given.prometheus:
            raise Invalid(
                "no source of metrics is given. Give --metrics http://broker1:7071/metrics,… or "
                "--prometheus http://prometheus:9090"
            )
        return given
