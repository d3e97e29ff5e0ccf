"""kombu: direct, topic and fanout exchanges, acknowledgement and requeue.

package: kombu
tags: `global_keyprefix` is a hash tag, because a consumer waits at several lists
"""

import socket

from kombu import Connection, Consumer, Exchange, Producer, Queue
from scenario import HOME, equal

for kind, key, sent in (("direct", "a", "a"), ("topic", "a.*", "a.b"), ("fanout", "", "")):
    connection = Connection(HOME, transport_options={"global_keyprefix": "{kombu}"})
    exchange = Exchange(f"{kind}-exchange", kind)
    queues = [Queue(f"{kind}-{number}", exchange, routing_key=key) for number in range(2)]
    seen = []

    def receive(body, message):
        seen.append(body)
        # The first is put back, and comes again.
        if len(seen) == 1:
            message.requeue()
        else:
            message.ack()

    with connection, Consumer(connection.channel(), queues, callbacks=[receive]):
        producer = Producer(connection.channel(), exchange)
        # A fanout reaches who listens: the consumer has to have subscribed.
        for _ in range(3):
            try:
                connection.drain_events(timeout=0.3)
            except socket.timeout:
                pass
        producer.publish({"n": 1}, routing_key=sent)
        expected = 3
        for _ in range(40):
            try:
                connection.drain_events(timeout=0.5)
            except socket.timeout:
                if len(seen) >= expected:
                    break
        equal(seen, [{"n": 1}] * expected)
