"""Bounded counters in three datacenters: each sells without asking, all together never more than there is."""

import pytest
import redis

from cluster import wait_until

STOCK = 300


@pytest.fixture
def clients(clean):
    clients = [clean.client(number) for number in (1, 2, 3)]
    yield clients
    for client in clients:
        client.close()


def rights(client, key="stock"):
    """What a datacenter may take from a counter, as it knows."""
    answer = client.execute_command("BGET", key, "RIGHTS")
    return answer[answer.index("down") + 1]


def sell_all(client):
    """Sells piece by piece until the datacenter has no rights left; answers how many it has sold."""
    sold = 0
    while True:
        try:
            client.execute_command("BDECRBY", "stock", 1)
        except redis.ResponseError as error:
            assert str(error).startswith("SPENT 0 rights to lower the counter are here, 1 are needed"), error
            return sold
        sold += 1


def values(clients):
    return [client.execute_command("BGET", "stock") for client in clients]


def test_three_datacenters_sell_what_there_is_and_no_more(clean, clients):
    assert clients[0].execute_command("BCREATE", "stock", STOCK, "MIN", 0) == 1
    assert clients[0].execute_command("BCREATE", "stock", 7, "MIN", 0) == 0
    clean.converge()
    # Rights come without anybody asking for them.
    for client in clients:
        wait_until(lambda client=client: rights(client) >= STOCK // 6, 10, "each datacenter has rights")
    clean.cut_off(1)
    sold = [sell_all(clients[0])]
    assert rights(clients[0]) == 0, "nobody can give it any"
    # The others still reach each other, and move what they have between them.
    sold += [sell_all(client) for client in clients[1:]]
    assert sum(sold) <= STOCK and all(sold)
    assert clients[0].execute_command("BGET", "stock") == STOCK - sold[0]
    clean.heal_all()
    clean.converge()
    while sum(sold) < STOCK:
        before = sum(sold)
        sold += [sell_all(client) for client in clients]
        if sum(sold) == before:
            # What is left is of a datacenter that has one right, or on its way.
            clean.converge()
    clean.converge()
    assert sum(sold) == STOCK and values(clients) == [0, 0, 0]
    for client in clients:
        with pytest.raises(redis.ResponseError, match="^SPENT "):
            client.execute_command("BDECRBY", "stock", 1)
    # What comes in again may be sold where it came in at once, and soon everywhere.
    assert clients[2].execute_command("BINCRBY", "stock", 60) == 60
    assert clients[2].execute_command("BDECRBY", "stock", 1) == 59
    wait_until(lambda: rights(clients[0]) > 0, 10, "rights move on")
    assert clients[0].execute_command("BDECRBY", "stock", rights(clients[0])) >= 0


def test_rights_are_moved_by_hand(clean, clients):
    clients[0].execute_command("BCREATE", "stock", 10, "MIN", 0, "MAX", 12)
    names = clients[0].execute_command("BGET", "stock", "RIGHTS")
    names = names[names.index("datacenters") + 1]
    there = names[2]
    left = clients[0].execute_command("BMOVE", "stock", there, 1)
    assert left < 10
    with pytest.raises(redis.ResponseError, match="^SPENT "):
        clients[0].execute_command("BMOVE", "stock", there, 11)
    with pytest.raises(redis.ResponseError, match="^SPENT .* to raise"):
        clients[0].execute_command("BINCRBY", "stock", 3)
    assert clients[0].type("stock") == "bcounter"
    assert list(clients[0].scan_iter(_type="bcounter")) == ["stock"]
    for words in (["DUMP", "stock"], ["COPY", "stock", "{stock}2"], ["RENAME", "stock", "other"]):
        with pytest.raises(redis.ResponseError, match="counter|type of value"):
            clients[0].execute_command(*words)


def test_a_deleted_counter_is_gone_everywhere(clean, clients):
    clients[0].execute_command("BCREATE", "stock", 100, "MIN", 0)
    clean.converge()
    wait_until(lambda: rights(clients[1]) > 2, 10, "each datacenter has rights")
    clean.cut_off(1)
    assert clients[0].delete("stock") == 1
    clients[1].execute_command("BDECRBY", "stock", 2)
    clean.heal_all()
    clean.converge()
    assert values(clients) == [None] * 3 and [client.dbsize() for client in clients] == [0] * 3
    with pytest.raises(redis.ResponseError, match="^no such key"):
        clients[1].execute_command("BDECRBY", "stock", 1)
