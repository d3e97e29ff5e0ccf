import io.lettuce.core.Consumer;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import reactor.core.publisher.Flux;

/**
 * Lettuce: commands of three styles, a cache at the client, transactions, messages, streams, scripts and functions.
 *
 * package: io.lettuce:lettuce-core
 * tags: keys of one transaction have one hash tag
 */
final class LettuceClient {
  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      RedisClient client = RedisClient.create(urls[0]);
      pipelines(client.connect());
      cache(client.connect(), client.connect());
      transactions(client.connect(), client.connect());
      messages(client);
      streams(client.connect());
      scripts(client.connect());
    });
  }

  static void pipelines(StatefulRedisConnection<String, String> connection) {
    var async = connection.async();
    connection.setAutoFlushCommands(false);
    List<RedisFuture<?>> answers = new ArrayList<>();
    for (int n = 0; n < 100; n++) answers.add(async.set("p:" + n, "v" + n));
    answers.add(async.mget("p:0", "none", "p:99"));
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    Scenario.equal(LettuceFutures.awaitAll(Duration.ofSeconds(20), answers.toArray(RedisFuture[]::new)), true);
    Scenario.equal(
        connection.sync().mget("p:0", "none").get(1), KeyValue.empty("none"));
    var found = new HashSet<String>();
    ScanIterator.scan(connection.sync(), ScanArgs.Builder.matches("p:*").limit(9)).forEachRemaining(found::add);
    Scenario.equal(found.size(), 100);
    var lengths = Flux.range(0, 20).flatMap(n -> connection.reactive().append("r:" + n % 2, "x")).count().block();
    Scenario.equal(lengths, 20L);
    Scenario.equal(connection.reactive().strlen("r:1").block(), 10L);
  }

  static void cache(
      StatefulRedisConnection<String, String> connection, StatefulRedisConnection<String, String> other)
      throws Exception {
    Map<String, String> kept = new HashMap<>();
    var frontend = ClientSideCaching.enable(CacheAccessor.forMap(kept), connection, TrackingArgs.Builder.enabled());
    for (String value : List.of("one", "two")) {
      other.sync().set("c", value);
      Scenario.waitUntil("the cache has " + value, () -> value.equals(frontend.get("c")));
      Scenario.equal(kept, Map.of("c", value));
    }
    other.sync().del("c");
    Scenario.waitUntil("the cache is told of a deletion", kept::isEmpty);
  }

  static void transactions(
      StatefulRedisConnection<String, String> connection, StatefulRedisConnection<String, String> other) {
    var sync = connection.sync();
    sync.watch("{t}a");
    other.sync().set("{t}a", "1");
    sync.multi();
    sync.set("{t}a", "2");
    Scenario.equal(sync.exec().wasDiscarded(), true);
    sync.multi();
    sync.incr("{t}a");
    sync.hset("{t}h", Map.of("a", "1", "b", "2"));
    sync.hgetall("{t}h");
    Scenario.equal(sync.exec().stream().toList(), List.of(2L, 2L, Map.of("a", "1", "b", "2")));
    Scenario.beside(() -> {
      Thread.sleep(100);
      other.sync().zadd("{t}z", 1.5, "job");
    });
    Scenario.equal(sync.bzpopmin(5, "{t}y", "{t}z").getValue().getScore(), 1.5);
  }

  static void messages(RedisClient client) throws Exception {
    var heard = new LinkedBlockingQueue<String>();
    var listening = client.connectPubSub();
    listening.addListener(new RedisPubSubAdapter<>() {
      @Override
      public void message(String pattern, String channel, String message) {
        heard.add(pattern + " " + channel + " " + message);
      }

      @Override
      public void smessage(String channel, String message) {
        heard.add("shard " + channel + " " + message);
      }
    });
    listening.sync().psubscribe("news.*");
    listening.sync().ssubscribe("near");
    client.connect().sync().publish("news.a", "one");
    Scenario.equal(heard.poll(5, TimeUnit.SECONDS), "news.* news.a one");
    client.connect().sync().spublish("near", "two");
    Scenario.equal(heard.poll(5, TimeUnit.SECONDS), "shard near two");
    listening.sync().punsubscribe();
  }

  static void streams(StatefulRedisConnection<String, String> connection) {
    var sync = connection.sync();
    String first = sync.xadd("events", Map.of("n", "1"));
    sync.xgroupCreate(XReadArgs.StreamOffset.from("events", "0"), "workers");
    var args = XReadArgs.Builder.block(Duration.ofSeconds(2)).count(5);
    var read = sync.xreadgroup(Consumer.from("workers", "one"), args, XReadArgs.StreamOffset.lastConsumed("events"));
    Scenario.equal(read.get(0).getBody(), Map.of("n", "1"));
    Scenario.equal(sync.xpending("events", "workers").getCount(), 1L);
    Scenario.equal(sync.xack("events", "workers", first), 1L);
    Scenario.equal(sync.xrevrange("events", io.lettuce.core.Range.unbounded()).size(), 1);
  }

  static void scripts(StatefulRedisConnection<String, String> connection) {
    var sync = connection.sync();
    String text = "local all = {} for n = 1, ARGV[1] do all[n] = redis.call('RPUSH', KEYS[1], n) end return all";
    String digest = sync.scriptLoad(text);
    List<Long> answer = sync.evalsha(digest, ScriptOutputType.MULTI, new String[] {"{t}list"}, "3");
    Scenario.equal(answer, List.of(1L, 2L, 3L));
    String library = "#!lua name=lettuce\nredis.register_function('lettuce_len', "
        + "function(keys) return redis.call('LLEN', keys[1]) end)";
    Scenario.equal(sync.functionLoad(library, true), "lettuce");
    Scenario.equal(sync.<Long>fcall("lettuce_len", ScriptOutputType.INTEGER, "{t}list"), 3L);
  }
}
