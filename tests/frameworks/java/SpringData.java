import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.data.annotation.Id;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.RedisHash;
import org.springframework.data.redis.core.RedisKeyValueAdapter;
import org.springframework.data.redis.core.RedisKeyValueTemplate;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.ScanOptions;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.index.Indexed;
import org.springframework.data.redis.core.mapping.RedisMappingContext;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.repository.support.RedisRepositoryFactory;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.data.repository.CrudRepository;

/**
 * Spring Data Redis over Lettuce and over Jedis: templates, transactions, scripts, listeners of channels and of
 * streams, repositories with an index, and caches, one of which locks.
 *
 * package: org.springframework.data:spring-data-redis
 * tags: keys of one transaction have one hash tag
 */
final class SpringData {
  @RedisHash("people")
  static final class Person {
    @Id String id;
    @Indexed String town;
    int age;

    Person(String id, String town, int age) {
      this.id = id;
      this.town = town;
      this.age = age;
    }
  }

  interface People extends CrudRepository<Person, String> {
    List<Person> findByTown(String town);
  }

  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      URI url = URI.create(urls[0]);
      var server = new RedisStandaloneConfiguration(url.getHost(), url.getPort());
      var factories = List.of(new LettuceConnectionFactory(server), new JedisConnectionFactory(server));
      for (RedisConnectionFactory factory : factories) {
        if (factory instanceof LettuceConnectionFactory lettuce) lettuce.start();
        if (factory instanceof JedisConnectionFactory jedis) jedis.start();
        var template = new StringRedisTemplate(factory);
        values(template);
        transactions(template);
        messages(template, factory);
        streams(template, factory);
        caches(factory);
        template.execute((org.springframework.data.redis.core.RedisCallback<Object>) connection -> {
          connection.serverCommands().flushDb();
          return null;
        });
      }
      repositories(new StringRedisTemplate(factories.get(0)));
    });
  }

  static void values(StringRedisTemplate template) {
    var values = template.opsForValue();
    Scenario.equal(values.setIfAbsent("a", "1", Duration.ofMinutes(1)), true);
    Scenario.equal(values.setIfAbsent("a", "2"), false);
    Scenario.equal(values.increment("a", 4), 5L);
    values.multiSet(Map.of("m:1", "x", "m:2", "y"));
    Scenario.equal(values.multiGet(List.of("m:2", "m:1")), List.of("y", "x"));
    template.<String, String>opsForHash().putAll("h", Map.of("a", "1", "b", "2"));
    Scenario.equal(template.opsForHash().entries("h"), Map.of("a", "1", "b", "2"));
    template.opsForList().rightPushAll("l", "a", "b");
    Scenario.equal(template.opsForList().leftPop("l", Duration.ofSeconds(2)), "a");
    template.opsForZSet().add("z", "m", 2);
    Scenario.equal(template.opsForZSet().incrementScore("z", "m", 1.5), 3.5);
    template.opsForSet().add("s", "a", "b");
    Scenario.equal(template.opsForSet().members("s"), Set.of("a", "b"));
    List<String> found = new ArrayList<>();
    try (var keys = template.scan(ScanOptions.scanOptions().match("m:*").count(10).build())) {
      keys.forEachRemaining(found::add);
    }
    Scenario.equal(Set.copyOf(found), Set.of("m:1", "m:2"));
    var script = RedisScript.of("return redis.call('INCRBY', KEYS[1], ARGV[1])", Long.class);
    Scenario.equal(template.execute(script, List.of("a"), "2"), 7L);
    Scenario.equal(template.execute(script, List.of("a"), "2"), 9L);
  }

  static void transactions(StringRedisTemplate template) {
    var answers = template.execute(new SessionCallback<List<Object>>() {
      @Override
      @SuppressWarnings("unchecked")
      public List<Object> execute(RedisOperations operations) {
        operations.watch("{t}a");
        operations.multi();
        operations.opsForValue().increment("{t}a");
        operations.opsForSet().add("{t}s", "x");
        operations.opsForSet().members("{t}s");
        return operations.exec();
      }
    });
    Scenario.equal(answers, List.of(1L, 1L, Set.of("x")));
    var piped = template.executePipelined((org.springframework.data.redis.core.RedisCallback<Object>) connection -> {
      for (int n = 0; n < 50; n++) connection.stringCommands().incr("piped".getBytes());
      return null;
    });
    Scenario.equal(piped.get(49), 50L);
  }

  static void messages(StringRedisTemplate template, RedisConnectionFactory factory) throws Exception {
    var heard = new LinkedBlockingQueue<String>();
    var container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.addMessageListener((message, pattern) -> heard.add(message.toString()), new PatternTopic("news.*"));
    container.afterPropertiesSet();
    container.start();
    Scenario.waitUntil("a listener listens", () -> template.convertAndSend("news.a", "one") > 0);
    Scenario.equal(heard.poll(5, TimeUnit.SECONDS), "one");
    container.stop();
  }

  static void streams(StringRedisTemplate template, RedisConnectionFactory factory) throws Exception {
    var heard = new LinkedBlockingQueue<MapRecord<String, String, String>>();
    var first = template.opsForStream().add("events", Map.of("n", "1"));
    template.opsForStream().createGroup("events", ReadOffset.from("0"), "workers");
    var container = StreamMessageListenerContainer.create(factory);
    var events = StreamOffset.create("events", ReadOffset.lastConsumed());
    container.receiveAutoAck(Consumer.from("workers", "one"), events, heard::add);
    container.start();
    Scenario.equal(heard.poll(10, TimeUnit.SECONDS).getId(), first);
    template.opsForStream().add("events", Map.of("n", "2"));
    Scenario.equal(heard.poll(10, TimeUnit.SECONDS).getValue(), Map.of("n", "2"));
    var pending = template.opsForStream().pending("events", "workers");
    Scenario.equal(pending.getTotalPendingMessages(), 0L);
    container.stop();
  }

  static void caches(RedisConnectionFactory factory) throws Exception {
    for (var writer : List.of(
        RedisCacheWriter.nonLockingRedisCacheWriter(factory), RedisCacheWriter.lockingRedisCacheWriter(factory))) {
      var kept = RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofMinutes(1));
      var cache = RedisCacheManager.builder(writer).cacheDefaults(kept).build().getCache("books");
      Scenario.equal(cache.get("a", () -> "loaded"), "loaded");
      Scenario.equal(cache.get("a", () -> "again"), "loaded");
      Scenario.equal(cache.putIfAbsent("a", "other").get(), "loaded");
      cache.put("b", "x");
      cache.evict("a");
      Scenario.waitUntil("what is evicted is away", () -> cache.get("a") == null);
      cache.clear();
      Scenario.waitUntil("a cleared cache is empty", () -> cache.get("b") == null);
    }
  }

  static void repositories(StringRedisTemplate template) {
    var adapter = new RedisKeyValueAdapter(template);
    adapter.afterPropertiesSet();
    var people = new RedisRepositoryFactory(new RedisKeyValueTemplate(adapter, new RedisMappingContext()))
        .getRepository(People.class);
    people.saveAll(List.of(new Person("1", "Ulm", 44), new Person("2", "Ulm", 33), new Person("3", "Jena", 22)));
    Scenario.equal(people.findByTown("Ulm").stream().mapToInt(person -> person.age).sum(), 77);
    people.save(new Person("1", "Jena", 45));
    Scenario.equal(people.findByTown("Jena").size(), 2);
    people.deleteById("3");
    Scenario.equal(people.count(), 2L);
    Scenario.equal(people.findById("1").get().town, "Jena");
  }
}
