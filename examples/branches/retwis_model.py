"""Users, followers, posts and timelines as keys, the same for both versions of Retwis.

What a version adds is `operation()`: a context that gives a function, which is called with the keys that are going to be read and
written. From then to the end of the context the operation may do so as if it were alone.
"""

import time
import uuid

TIMELINE_LENGTH = 50


def newest_first(posts):
    """Ids of posts begin with a number above those of all posts that their author could see."""
    return sorted(posts, reverse=True)


class Retwis:
    def __init__(self, client):
        self.client = client

    def operation(self):
        raise NotImplementedError

    def create_account(self, name):
        """The id of a new account; the name must be free, as far as can be seen here."""
        account = uuid.uuid4().hex
        key = f"retwis:name:{name}"
        with self.operation() as reserve:
            reserve([key])
            if self.client.exists(key):
                raise ValueError(f"the name {name} is taken")
            self.client.set(key, account)
            self.client.hset(f"retwis:account:{account}", mapping={"name": name, "since": int(time.time())})
        return account

    def follow(self, follower, followed):
        keys = [f"retwis:followers:{followed}", f"retwis:following:{follower}"]
        with self.operation() as reserve:
            reserve(keys)
            self.client.sadd(keys[0], follower)
            self.client.sadd(keys[1], followed)

    def post(self, author, text):
        """Puts a post on the author's timeline and on those of all followers."""
        with self.operation() as reserve:
            readers = [author, *sorted(self.followers(author))]
            timelines = [f"retwis:timeline:{reader}" for reader in readers]
            reserve([*timelines, f"retwis:posts:{author}"])
            held = [(timeline or "").split() for timeline in self.client.mget(timelines)]
            number = 1 + max((int(post.split("-")[0]) for post in held[0][:1]), default=0)
            post = f"{number:010}-{uuid.uuid4().hex[:12]}"
            pipeline = self.client.pipeline(transaction=False)
            pipeline.hset(f"retwis:post:{post}", mapping={"author": author, "text": text})
            for timeline, posts in zip(timelines, held, strict=True):
                pipeline.set(timeline, " ".join(newest_first([post, *posts])[:TIMELINE_LENGTH]))
            pipeline.incr(f"retwis:posts:{author}")
            pipeline.execute()

    def timeline(self, reader):
        """Names and texts of the newest posts of the reader and of those whom they follow, newest first."""
        posts = (self.client.get(f"retwis:timeline:{reader}") or "").split()
        read = self.client.pipeline(transaction=False)
        for post in posts:
            read.hgetall(f"retwis:post:{post}")
        found = read.execute()
        authors = sorted({post["author"] for post in found})
        for author in authors:
            read.hget(f"retwis:account:{author}", "name")
        names = dict(zip(authors, read.execute(), strict=True))
        return [(names[post["author"]], post["text"]) for post in found]

    def account(self, name):
        return self.client.get(f"retwis:name:{name}")

    def name(self, account):
        return self.client.hget(f"retwis:account:{account}", "name")

    def followers(self, account):
        return set(self.client.smembers(f"retwis:followers:{account}"))

    def posts(self, account):
        return int(self.client.get(f"retwis:posts:{account}") or 0)
