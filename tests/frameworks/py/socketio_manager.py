"""python-socketio: what one server emits reaches the clients of another.

package: python-socketio
"""

import time

import socketio
from scenario import HOME, equal, wait_until

emitted = []
listener = socketio.RedisManager(HOME)
listener.set_server(socketio.Server(client_manager=listener))
listener.server.manager_initialized = True
listener._handle_emit = emitted.append
listener.initialize()
sender = socketio.RedisManager(HOME, write_only=True)


def heard():
    sender.emit("news", {"n": 1}, room="room")
    time.sleep(0.1)
    return emitted


wait_until(heard, "what was emitted")
equal([emitted[0]["event"], emitted[0]["data"], emitted[0]["room"]], ["news", [{"n": 1}], "room"])
