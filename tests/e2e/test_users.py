"""Users: what they may do, where passwords come from, and what becomes of connections when users change."""

import contextlib

import pytest
import redis
from cluster import ensue, wait_until


def user(cluster, datacenter, name, password, **options):
    return cluster.client(datacenter, username=name, password=password, **options)


@pytest.fixture
def with_app(dev):
    """A cluster with several partitions and cores, and a user in dc1."""
    cluster = dev(delay="5ms", partitions=4, nodes=2)
    with cluster.client(1) as admin:
        admin.execute_command(
            "ACL", "SETUSER", "app", "on", ">secret", "~app:*", "resetchannels", "&app:*", "+@all", "-@dangerous"
        )
    return cluster


def test_a_user_is_known_to_all_nodes_of_its_datacenter_and_to_no_other(with_app):
    for port in (with_app.client_port(1), with_app.client_port(1) + 100):
        with redis.Redis("127.0.0.1", port, username="app", password="secret", decode_responses=True) as app:
            assert app.acl_whoami() == "app"
            assert app.set("app:k", "1") and app.get("app:k") == "1"
            for command in (("GET", "other"), ("KEYS", "*"), ("FLUSHALL",), ("PUBLISH", "other", "m")):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    app.execute_command(*command)
            with pytest.raises(redis.exceptions.NoPermissionError):
                app.mget("app:k", "other")
            assert app.publish("app:news", "m") == 0
    with pytest.raises(redis.AuthenticationError), user(with_app, 2, "app", "secret") as elsewhere:
        elsewhere.ping()
    with pytest.raises(redis.AuthenticationError), user(with_app, 1, "app", "wrong") as wrong:
        wrong.ping()
    with with_app.client(1) as admin:
        log = admin.acl_log()
        assert {"FLUSHALL".lower(), "keys"} <= {entry["object"] for entry in log if entry["reason"] == "command"}
        assert "other" in {entry["object"] for entry in log if entry["reason"] == "key"}
        stats = admin.info("stats")
        assert stats["acl_access_denied_key"] >= 4 and stats["acl_access_denied_auth"] >= 1
        assert stats["acl_access_denied_cmd"] >= 4 and stats["acl_access_denied_channel"] >= 2
        assert any(entry["reason"] == "auth" and entry["username"] == "app" for entry in log)


def test_a_script_may_do_what_its_user_may(with_app):
    with user(with_app, 1, "app", "secret") as app:
        assert app.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "app:{s}", "v") == "OK"
        assert app.eval("return redis.call('GET', KEYS[1])", 1, "app:{s}") == "v"
        # A key that is not among its own, and a command that its user may not run.
        for script in ("return redis.call('GET', '{app:s}')", "return redis.call('FLUSHALL')"):
            with pytest.raises(redis.ResponseError, match="NOPERM|The user executing the script"):
                app.eval(script, 1, "app:s")
        with pytest.raises(redis.exceptions.NoPermissionError):
            app.eval("return 1", 1, "other")
        # What it catches, it can go on after.
        caught = "return redis.pcall('CONFIG', 'GET', '*')['err'] ~= nil"
        assert app.eval(caught, 1, "app:s") == 1
        with app.pipeline(transaction=True) as pipe:
            pipe.eval("return redis.call('INCR', KEYS[1])", 1, "app:{t}n")
            pipe.get("app:{t}n")
            assert pipe.execute() == [1, "1"]
        with pytest.raises(redis.RedisError, match="(?i)unknown command"):
            app.execute_command(b"\x01EVAL", "return 1", 1, "app:s", "user x on nopass ~* &* +@all")
    with with_app.client(1) as admin:
        of_scripts = {(entry["reason"], entry["object"]) for entry in admin.acl_log() if entry["context"] == "lua"}
    assert of_scripts == {("key", "{app:s}"), ("command", "flushall")}


def test_a_transaction_with_what_is_not_allowed_changes_nothing(with_app):
    with user(with_app, 1, "app", "secret") as app:
        app.set("app:{m}", "before")
        with app.pipeline(transaction=True) as pipe, pytest.raises(redis.RedisError):
            pipe.set("app:{m}", "after").get("other")
            pipe.execute()
        assert app.get("app:{m}") == "before"


def test_who_is_deleted_is_disconnected_and_who_is_changed_may_other_things(with_app):
    admin = with_app.client(1)
    app = user(with_app, 1, "app", "secret", single_connection_client=True)
    assert app.set("app:k", "1")
    admin.execute_command("ACL", "SETUSER", "app", "-set")
    with pytest.raises(redis.exceptions.NoPermissionError):
        app.set("app:k", "2")
    listener = user(with_app, 1, "app", "secret").pubsub()
    listener.subscribe("app:news")
    assert listener.get_message(timeout=5)["type"] == "subscribe"
    admin.execute_command("ACL", "SETUSER", "app", "resetchannels")

    def is_cut():
        try:
            listener.get_message(timeout=0.1)
        except (redis.ConnectionError, redis.exceptions.NoPermissionError):
            return True
        return False

    wait_until(is_cut, 10, "who may no longer listen is disconnected")
    assert admin.execute_command("ACL", "DELUSER", "app") == 1
    with pytest.raises((redis.ConnectionError, redis.AuthenticationError)):
        app.get("app:k")


def test_users_stand_in_a_file_that_is_read_and_written(servers, tmp_path):
    path = tmp_path / "users.acl"
    path.write_text("user default on nopass ~* &* +@all\nuser reader on >pw ~* +@read +ping\n")
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", f"aclfile {path}")
    port = servers.port("dc1")

    def client(name, password, **options):
        return redis.Redis("127.0.0.1", port, username=name, password=password, decode_responses=True, **options)

    def serves():
        with contextlib.suppress(redis.RedisError), client("reader", "pw") as reader:
            return reader.ping()

    wait_until(serves, 20, "the user of the file is served")
    admin = client("default", "any")
    admin.set("k", "v")
    with client("reader", "pw") as reader:
        assert reader.get("k") == "v"
        with pytest.raises(redis.exceptions.NoPermissionError):
            reader.set("k", "w")
    admin.execute_command("ACL", "SETUSER", "writer", "on", ">pw2", "~*", "+@write")
    assert admin.execute_command("ACL", "SAVE")
    text = path.read_text()
    assert "user writer on" in text and "$argon2id$" in text and ">pw" not in text
    servers.end("dc1")
    servers.start("dc1", f"aclfile {path}")
    wait_until(serves, 20, "it serves again")
    with client("writer", "pw2") as writer:
        assert writer.set("k", "x")
    path.write_text("user default on nopass ~* &* +@all\nuser writer on nopass +nonsense\n")
    with pytest.raises(redis.ResponseError, match="users.acl:2"):
        admin.execute_command("ACL", "LOAD")
    path.write_text("user default on nopass ~* &* +@all\n")
    assert admin.execute_command("ACL", "LOAD")
    assert admin.acl_users() == ["default"]


def test_a_password_that_is_set_or_taken_away_while_the_server_runs_holds_for_who_connects_then(servers):
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", "requirepass first")
    port = servers.port("dc1")

    def client(**options):
        return redis.Redis("127.0.0.1", port, decode_responses=True, **options)

    def serves():
        with contextlib.suppress(redis.RedisError), client(password="first") as one:
            return one.ping()

    wait_until(serves, 20, "it serves")
    early = client(password="first")
    early.execute_command("ACL", "SETUSER", "default", "nopass")
    with client() as open_to_all:
        # More than who has not logged in may send.
        assert open_to_all.set("k", "v" * 1_000_000) and open_to_all.strlen("k") == 1_000_000
    early.execute_command("ACL", "SETUSER", "default", "resetpass", ">second")
    with client() as nobody, pytest.raises(redis.AuthenticationError):
        nobody.get("k")
    with client(password="second") as one:
        assert one.strlen("k") == 1_000_000


def test_the_commands_log_in_as_a_user(with_app, tmp_path):
    """Where the default user may do nothing, each command says who it is."""
    with with_app.client(1) as admin:
        admin.execute_command("ACL", "SETUSER", "keeper", "on", ">secret", "~*", "&*", "+@all")
        admin.set("app:k", "1")
        admin.execute_command("ACL", "SETUSER", "default", "resetpass", ">another")
    port, login = str(with_app.client_port(1)), ("--user", "keeper", "-a", "secret")
    address = f"127.0.0.1:{port}"
    assert ensue("cli", "-p", port, *login, "GET", "app:k").stdout.strip() == "1"
    assert "ready" in ensue("status", "--port", port, *login, "--ready").stdout
    rdb = tmp_path / "all.rdb"
    assert ensue("export", "--from", address, "--rdb", rdb, *login).returncode == 0
    imported = ensue("import", "--rdb", rdb, "--to", address, "--replace", *login)
    assert imported.returncode == 0, imported.stderr
    refused = ensue("cli", "-p", port, "--user", "keeper", "-a", "wrong", "PING")
    assert refused.returncode != 0 and "WRONGPASS" in refused.stderr, refused
