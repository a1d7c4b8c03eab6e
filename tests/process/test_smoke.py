"""The whole way through once: three nodes, objects in on one, traffic through all, out again."""

import pytest

from support.api import backend, documents, route
from support.wait import until

pytestmark = pytest.mark.smoke


def test_apply_on_one_node_serves_on_all(cluster, make_nginx):
    one, two = make_nginx("web-1"), make_nginx("web-2")
    cluster[0].api.apply(
        documents(
            backend("web", one.address, two.address),
            route("shop", "shop.example.com", "web"),
        ),
        "?wait=all",
    )
    for node in cluster:
        answers = {node.get("shop.example.com", "/page").text.strip() for _ in range(40)}
        assert answers == {"web-1", "web-2"}, f"{node.name} answered {answers}"
        assert node.get("other.example.com").status == 404

    cluster[1].api.delete("routes", "shop")
    for node in cluster:
        until(
            lambda node=node: node.get("shop.example.com").status == 404,
            f"{node.name} has dropped the route",
        )


@pytest.mark.timing
def test_a_node_comes_and_goes(cluster):
    cluster[2].stop()
    cluster[0].api.put("namespaces", "while-away", {})
    cluster.restart(cluster[2]).wait_ready()
    assert cluster[2].api.get("namespaces", "while-away")["kind"] == "Namespace"
    cluster[0].kill()
    cluster[1].api.put("namespaces", "while-down", {})
    cluster.restart(cluster[0]).wait_ready()
    assert cluster[0].api.get("namespaces", "while-down")["kind"] == "Namespace"
