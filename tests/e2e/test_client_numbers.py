"""Clients of several nodes of one datacenter: each has a number of its own, by which all nodes reach it alone."""

import pytest
import redis
from cluster import wait_until
from replicated import Group


@pytest.fixture
def group(tmp_path):
    group = Group(tmp_path, (("dc1", 0), ("dc1", 1)), 1)
    for number in range(2):
        group.start(number)
    for number in range(2):
        group.wait_until_all_serve(number)
    yield group
    group.close()


def test_a_client_is_reached_by_its_number_wherever_it_is(group):
    admin = group.client(0)
    clients = [group.client(node) for node in (0, 1) for _ in range(4)]
    numbers = [client.client_id() for client in clients]
    assert len({admin.client_id(), *numbers}) == 9, numbers
    assert max(numbers) < 1 << 53
    for number in numbers:
        assert [int(line["id"]) for line in admin.client_list(client_id=[str(number)])] == [number]

    here, there = clients[0], clients[4]
    for client, key in ((here, "here"), (there, "there")):
        client.connection.send_command("BLPOP", key, 0)
    wait_until(lambda: [line["cmd"] for line in admin.client_list()].count("blpop") == 2, 10, "both wait")
    assert admin.client_unblock(numbers[4])
    assert there.connection.read_response() is None
    admin.rpush("here", "job")
    assert here.connection.read_response() == ["here", "job"], "the other one was left alone"

    assert admin.execute_command("CLIENT", "KILL", "ID", numbers[5]) == 1
    with pytest.raises(redis.ConnectionError):
        clients[5].ping()
    assert clients[1].ping() and clients[6].ping()

    admin.execute_command("ACL", "SETUSER", "bob", "on", "nopass", "+@all", "~*")
    for client in clients[6:]:
        client.execute_command("AUTH", "bob", "any")
    assert admin.execute_command("CLIENT", "KILL", "USER", "bob") == 2
    for client in clients[6:]:
        with pytest.raises(redis.ConnectionError):
            client.ping()
