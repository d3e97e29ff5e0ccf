import static redis.clients.jedis.params.XReadGroupParams.xReadGroupParams;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XAutoClaimParams;
import redis.clients.jedis.resps.StreamEntry;

/**
 * Jedis: pipelines, transactions, messages, streams, scripts, functions, scans and pops that wait.
 *
 * package: redis.clients:jedis
 * tags: keys of one transaction have one hash tag
 */
final class JedisClient {
  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      try (RedisClient client = RedisClient.create(urls[0])) {
        pipelines(client);
        transactions(client);
        messages(client);
        streams(client);
        scripts(client);
      }
    });
  }

  static void pipelines(RedisClient client) throws Exception {
    Response<Map<String, String>> user;
    Response<Long> wrong;
    try (var pipe = client.pipelined()) {
      for (int n = 0; n < 100; n++) pipe.set("p:" + n, "v" + n, SetParams.setParams().nx().ex(60));
      pipe.hset("user:1", Map.of("name", "Ann", "age", "44"));
      wrong = pipe.lpush("user:1", "x");
      user = pipe.hgetAll("user:1");
    }
    Scenario.equal(user.get(), Map.of("name", "Ann", "age", "44"));
    try {
      wrong.get();
      throw new AssertionError("a hash is no list");
    } catch (JedisDataException expected) {
      Scenario.equal(expected.getMessage().split(" ")[0], "WRONGTYPE");
    }
    Set<String> found = new java.util.HashSet<>();
    String cursor = ScanParams.SCAN_POINTER_START;
    do {
      var page = client.scan(cursor, new ScanParams().match("p:*").count(9));
      found.addAll(page.getResult());
      cursor = page.getCursor();
    } while (!cursor.equals("0"));
    Scenario.equal(found.size(), 100);
    Scenario.beside(() -> {
      Thread.sleep(100);
      client.rpush("row", "job");
    });
    Scenario.equal(client.blpop(5, "row"), List.of("row", "job"));
  }

  static void transactions(RedisClient client) {
    client.set("{t}a", "1");
    try (var transaction = client.transaction(false)) {
      transaction.watch("{t}a");
      client.set("{t}a", "2");
      transaction.multi();
      transaction.set("{t}a", "3");
      Scenario.equal(transaction.exec(), null);
    }
    try (var transaction = client.multi()) {
      transaction.incr("{t}a");
      transaction.zadd("{t}z", 1.5, "m");
      var board = transaction.zrange("{t}z", 0, -1);
      Scenario.equal(transaction.exec().subList(0, 2), List.of(3L, 1L));
      Scenario.equal(board.get(), List.of("m"));
    }
  }

  static void messages(RedisClient client) throws Exception {
    var heard = new LinkedBlockingQueue<String>();
    var listener = new JedisPubSub() {
      @Override
      public void onSubscribe(String channel, int count) {
        heard.add("subscribed");
      }

      @Override
      public void onMessage(String channel, String message) {
        heard.add(channel + " " + message);
        unsubscribe();
      }
    };
    Thread listening = Scenario.beside(() -> client.subscribe(listener, "news"));
    Scenario.equal(heard.take(), "subscribed");
    Scenario.equal(client.publish("news", "one"), 1L);
    Scenario.equal(heard.take(), "news one");
    listening.join();
  }

  static void streams(RedisClient client) {
    client.xgroupCreate("events", "workers", new StreamEntryID("0-0"), true);
    for (int n = 0; n < 3; n++) client.xadd("events", StreamEntryID.NEW_ENTRY, Map.of("n", "" + n));
    var unread = Map.of("events", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY);
    var read = client.xreadGroup("workers", "one", xReadGroupParams().count(2), unread).get(0).getValue();
    Scenario.equal(read.stream().map(StreamEntry::getFields).toList(), List.of(Map.of("n", "0"), Map.of("n", "1")));
    Scenario.equal(client.xack("events", "workers", read.get(0).getID()), 1L);
    var start = new StreamEntryID("0-0");
    var claimed = client.xautoclaim("events", "workers", "two", 0, start, new XAutoClaimParams()).getValue();
    Scenario.equal(claimed.get(0).getID(), read.get(1).getID());
    Scenario.equal(client.xpending("events", "workers").getConsumerMessageCount(), Map.of("two", 1L));
    Scenario.equal(client.xinfoGroups("events").get(0).getConsumers(), 2L);
  }

  static void scripts(RedisClient client) {
    String text = "return {redis.call('INCRBY', KEYS[1], ARGV[1]), redis.call('TYPE', KEYS[1])['ok']}";
    String digest = client.scriptLoad(text, "{t}a");
    Scenario.equal(client.evalsha(digest, List.of("{t}a"), List.of("7")), List.of(10L, "string"));
    Scenario.equal(client.scriptExists(digest, "{t}a"), true);
    client.functionLoadReplace("#!lua name=jedis\nredis.register_function{function_name='jedis_get', "
        + "callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}");
    Scenario.equal(client.fcallReadonly("jedis_get", List.of("{t}a"), List.of()), "10");
  }
}
