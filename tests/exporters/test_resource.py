"""The resource of the agent and of the services it observes."""

import socket

import pytest

from opscope import __version__
from opscope_exporters.resource import agent_resource, service_resource


def test_what_is_given_wins_over_what_is_detected() -> None:
    given = {"OTEL_RESOURCE_ATTRIBUTES": "host.name=n%201, service.name=a,k8s.node.name=n"}
    found = agent_resource({**given, "OTEL_SERVICE_NAME": "b"})
    assert (found["host.name"], found["service.instance.id"]) == ("n 1", "n 1")
    assert (found["service.name"], found["service.version"]) == ("b", __version__)
    assert found["k8s.node.name"] == "n"


@pytest.mark.parametrize("value", ["", " ", "%20"])
def test_an_empty_value_does_not_replace_a_detected_one(value: str) -> None:
    """A variable that a template has left empty."""
    given = ",".join(f"{key}={value}" for key in ("host.name", "service.name", "k8s.node.name"))
    assert agent_resource({"OTEL_RESOURCE_ATTRIBUTES": given}) == agent_resource({})
    assert agent_resource({})["host.name"] == socket.gethostname()


def test_a_service_has_the_hosts_attributes_and_its_own() -> None:
    agent = agent_resource(
        {
            "OTEL_RESOURCE_ATTRIBUTES": "host.name=h,k8s.node.name=n,k8s.pod.name=agent-1,"
            "container.id=c,deployment.environment.name=prod"
        }
    )
    found = service_resource(agent, "web", (("k8s.pod.name", "web-1"), ("service.version", "2")))
    assert (found["service.name"], found["service.version"]) == ("web", "2")
    assert (found["host.name"], found["k8s.node.name"]) == ("h", "n")
    assert (found["k8s.pod.name"], found["deployment.environment.name"]) == ("web-1", "prod")
    assert "container.id" not in found
