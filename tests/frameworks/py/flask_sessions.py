"""Flask-Session and Flask-Caching: a session counts visits; a cached function runs once.

package: flask-session
"""

import redis
from flask import Flask, session
from flask_caching import Cache
from flask_session import Session
from scenario import HOME, equal

app = Flask("flask_sessions")
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=redis.Redis.from_url(HOME))
app.config.update(CACHE_TYPE="RedisCache", CACHE_REDIS_URL=HOME, CACHE_DEFAULT_TIMEOUT=60)
Session(app)
cache = Cache(app)
calls = []


@app.get("/visit")
def visit():
    session["visits"] = session.get("visits", 0) + 1
    return str(session["visits"])


@app.get("/leave")
def leave():
    session.clear()
    return "bye"


@cache.memoize()
def slow(number):
    calls.append(number)
    return number * 2


browser, stranger = app.test_client(), app.test_client()
equal([browser.get("/visit").text for _ in range(3)], ["1", "2", "3"])
equal(stranger.get("/visit").text, "1")
browser.get("/leave")
equal(browser.get("/visit").text, "1")
with app.app_context():
    equal([slow(1), slow(1), slow(2)], [2, 2, 4])
    cache.delete_memoized(slow, 1)
    equal([slow(1), slow(2), calls], [2, 4, [1, 2, 1]])
    cache.set_many({"a": 1, "b": 2})
    equal(cache.get_many("a", "b"), [1, 2])
    cache.clear()
    equal(cache.get("a"), None)
