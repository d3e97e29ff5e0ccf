"""redis-py's clients that fail over by themselves, in a process of their own: they are of a later version than the
client of all other tests.

    failover.py                                       whether this redis-py has them
    failover.py METRICS-PORT HOST:PORT                what the health check makes of one datacenter
    failover.py METRICS-PORT HOST:PORT HOST:PORT ...  a client of several, the first of which it prefers: each line of
                                                      its input is a command, and each line of its output an answer
"""

import asyncio
import sys
import types

import redis
from redis.asyncio.multidb.healthcheck import LagAwareHealthCheck
from redis.multidb.client import MultiDBClient
from redis.multidb.config import DatabaseConfig, MultiDbConfig

TOLERATED_MS = 2_000
# Between two looks at all datacenters.
INTERVAL_S = 0.2


def one(metrics):
    return LagAwareHealthCheck(rest_api_port=metrics, lag_aware_tolerance=TOLERATED_MS)


class EachItsOwn(LagAwareHealthCheck):
    """As docs/metrics.md advises: redis-py's own keeps one address for the checks of all databases."""

    def __init__(self, metrics):
        super().__init__(health_check_probes=1)
        self.metrics = metrics

    async def check_health(self, database, client):
        return await one(self.metrics).check_health(database, client)


def health(metrics, host, port):
    client = redis.Redis(host, port)
    database = types.SimpleNamespace(client=client, health_check_url=f"http://{host}")
    try:
        return "healthy" if asyncio.run(one(metrics).check_health(database, client)) else "unhealthy"
    except (OSError, redis.RedisError) as error:
        return f"unhealthy: {error}"


def serve(metrics, places):
    databases = [
        DatabaseConfig(
            client_kwargs={"host": host, "port": port, "decode_responses": True},
            health_check_url=f"http://{host}", weight=len(places) - index,
        )
        for index, (host, port) in enumerate(places)
    ]
    client = MultiDBClient(MultiDbConfig(
        databases_config=databases, health_checks=[EachItsOwn(metrics)], health_check_interval=INTERVAL_S,
        min_num_failures=1, failover_delay=INTERVAL_S,
    ))
    for line in sys.stdin:
        try:
            answer = client.execute_command(*line.split())
        except (OSError, redis.RedisError) as error:
            answer = f"{type(error).__name__}: {error}"
        print(answer, flush=True)


def main(metrics=None, *places):
    places = [(host, int(port)) for host, port in (place.split(":") for place in places)]
    if len(places) == 1:
        print(health(int(metrics), *places[0]))
    elif places:
        serve(int(metrics), places)


main(*sys.argv[1:])
