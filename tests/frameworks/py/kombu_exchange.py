"""kombu: direct, topic and fanout exchanges, acknowledgement and requeue.

package: kombu
tags: `global_keyprefix` is a hash tag, because a consumer waits at several lists
"""

import socket

from kombu import Connection, Consumer, Exchange, Producer, Queue
from scenario import HOME, equal, wait_until

# What is put back comes to both queues again. A connection has one queue for a fanout,
# which keeps nothing, so that nothing can be put back.
for kind, key, sent, expected in (("direct", "a", "a", 4), ("topic", "a.*", "a.b", 4), ("fanout", "", "", 1)):
    connection = Connection(HOME, transport_options={"global_keyprefix": "{kombu}"})
    exchange = Exchange(f"{kind}-exchange", kind)
    queues = [Queue(f"{kind}-{number}", exchange, routing_key=key) for number in range(2)]
    seen = []

    def receive(body, message):
        seen.append(body)
        if kind != "fanout" and len(seen) == 1:
            message.requeue()
        else:
            message.ack()

    def drained():
        try:
            connection.drain_events(timeout=0.3)
        except socket.timeout:
            return True

    with connection, Consumer(connection.channel(), queues, callbacks=[receive]):
        # Who has not subscribed to a fanout yet misses what is sent.
        wait_until(drained, "nothing comes")
        Producer(connection.channel(), exchange).publish({"n": 1}, routing_key=sent)
        wait_until(lambda: drained() and len(seen) >= expected, f"{expected} messages of a {kind}")
        equal(seen, [{"n": 1}] * expected)
