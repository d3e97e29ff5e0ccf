import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.api.LocalCachedMapOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RedissonClient;
import org.redisson.api.TransactionOptions;
import org.redisson.client.codec.StringCodec;

/**
 * Redisson: maps, one with deadlines and one that clients cache, sets, sorted sets, batches, messages, a Bloom filter.
 *
 * package: org.redisson:redisson
 * tags: keys of one transaction have one hash tag
 */
final class RedissonMaps {
  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      RedissonClient client = RedissonLocks.connect(urls[0]), other = RedissonLocks.connect(urls[0]);
      maps(client);
      cached(client, other);
      sets(client);
      batches(client);
      messages(client, other);
    });
  }

  static void maps(RedissonClient client) throws Exception {
    var map = client.<String, Integer>getMap("map");
    Scenario.equal(map.put("a", 1), null);
    Scenario.equal(map.putIfAbsent("a", 2), 1);
    Scenario.equal(map.replace("a", 1, 3), true);
    Scenario.equal(map.merge("a", 4, Integer::sum), 7);
    map.putAll(Map.of("b", 2, "c", 3));
    Scenario.equal(map.readAllMap(), Map.of("a", 7, "b", 2, "c", 3));
    Scenario.equal(map.fastRemove("b", "none"), 1L);
    Scenario.equal(map.keySet(), Set.of("a", "c"));
    var deadlines = client.<String, String>getMapCache("deadlines");
    deadlines.put("short", "x", 300, TimeUnit.MILLISECONDS);
    deadlines.put("long", "y", 1, TimeUnit.HOURS);
    Scenario.waitUntil("an entry ends", () -> deadlines.get("short") == null);
    Scenario.equal(deadlines.get("long"), "y");
    var numbers = client.<String, Integer>getMap("numbers", StringCodec.INSTANCE);
    Scenario.equal(String.valueOf(numbers.addAndGet("n", 5)), "5");
    var many = client.<String, String>getListMultimap("multimap");
    many.put("a", "1");
    many.put("a", "2");
    Scenario.equal(many.get("a").readAll(), List.of("1", "2"));
  }

  static void cached(RedissonClient client, RedissonClient other) throws Exception {
    var one = client.getLocalCachedMap("near", LocalCachedMapOptions.<String, String>defaults());
    var two = other.getLocalCachedMap("near", LocalCachedMapOptions.<String, String>defaults());
    one.put("a", "1");
    Scenario.equal(two.get("a"), "1");
    one.put("a", "2");
    Scenario.waitUntil("the other cache is told", () -> "2".equals(two.get("a")));
  }

  static void sets(RedissonClient client) {
    var set = client.<String>getSet("set");
    set.addAll(List.of("a", "b", "c"));
    Scenario.equal(set.remove("b") && !set.remove("b"), true);
    Scenario.equal(set.readAll(), Set.of("a", "c"));
    var board = client.<String>getScoredSortedSet("board");
    board.addAll(Map.of("ann", 3.0, "bob", 1.0));
    board.addScore("bob", 5);
    Scenario.equal(board.rank("bob"), 1);
    Scenario.equal(board.pollFirst(), "ann");
    var sorted = client.<Integer>getSortedSet("sorted");
    sorted.addAll(List.of(3, 1, 2));
    Scenario.equal(List.copyOf(sorted.readAll()), List.of(1, 2, 3));
    var filter = client.<String>getBloomFilter("filter");
    filter.tryInit(1000, 0.01);
    filter.add("a");
    Scenario.equal(filter.contains("a") && !filter.contains("b"), true);
    var distinct = client.<String>getHyperLogLog("distinct");
    distinct.addAll(List.of("a", "b", "a"));
    Scenario.equal(distinct.count(), 2L);
    var bits = client.getBitSet("bits");
    bits.set(3);
    Scenario.equal(bits.cardinality(), 1L);
  }

  static void batches(RedissonClient client) {
    RBatch batch = client.createBatch();
    for (int n = 0; n < 50; n++) batch.getBucket("batch:" + n).setAsync(n);
    batch.getAtomicLong("batch:count").incrementAndGetAsync();
    Scenario.equal(batch.execute().getResponses().get(50), 1L);
    Scenario.equal(client.getBuckets().get("batch:1", "batch:none", "batch:9"), Map.of("batch:1", 1, "batch:9", 9));
    var bucket = client.<String>getBucket("bucket");
    Scenario.equal(bucket.setIfAbsent("a") && !bucket.setIfAbsent("b") && bucket.compareAndSet("a", "c"), true);
    Scenario.equal(bucket.getAndDelete(), "c");
    var transaction = client.createTransaction(TransactionOptions.defaults());
    transaction.<String, String>getMap("{t}map").put("a", "1");
    transaction.<String>getBucket("{t}bucket").set("b");
    transaction.commit();
    Scenario.equal(client.getMap("{t}map").get("a"), "1");
    Scenario.equal(client.getKeys().deleteByPattern("batch:*"), 51L);
  }

  static void messages(RedissonClient client, RedissonClient other) throws Exception {
    var heard = new LinkedBlockingQueue<String>();
    client.getTopic("news").addListener(String.class, (channel, message) -> heard.add(message));
    client.getPatternTopic("n*").addListener(String.class, (pattern, channel, message) -> heard.add(message));
    Scenario.equal(other.getTopic("news").publish("one"), 2L);
    for (int n = 0; n < 2; n++) Scenario.equal(heard.poll(5, TimeUnit.SECONDS), "one");
    var reliable = client.getReliableTopic("{reliable}news");
    reliable.addListener(String.class, (channel, message) -> heard.add("reliably " + message));
    other.getReliableTopic("{reliable}news").publish("two");
    Scenario.equal(heard.poll(10, TimeUnit.SECONDS), "reliably two");
  }
}
