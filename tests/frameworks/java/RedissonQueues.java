import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RedissonClient;
import org.redisson.api.WorkerOptions;
import org.redisson.api.stream.StreamAddArgs;
import org.redisson.api.stream.StreamCreateGroupArgs;
import org.redisson.api.stream.StreamReadGroupArgs;

/**
 * Redisson: queues that wait, of priorities and of delays, a bounded one, a stream, and tasks of an executor. Producers
 * are in all datacenters.
 *
 * package: org.redisson:redisson
 * home: yes
 */
final class RedissonQueues {
  /** What a worker of the executor does. */
  static final class Square implements Callable<Integer>, java.io.Serializable {
    final int number;

    Square(int number) {
      this.number = number;
    }

    @Override
    public Integer call() {
      return number * number;
    }
  }

  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      RedissonClient home = RedissonLocks.connect(urls[0]);
      List<RedissonClient> clients = new ArrayList<>();
      for (String url : urls) clients.add(RedissonLocks.connect(url));
      handOver(home, clients);
      for (RedissonClient client : clients) orders(home, client);
      for (RedissonClient client : clients) streams(home, client);
      executor(home, clients);
    });
  }

  static void handOver(RedissonClient home, List<RedissonClient> clients) throws Exception {
    var taken = new ConcurrentLinkedQueue<Integer>();
    List<Thread> threads = new ArrayList<>();
    for (int n = 0; n < 2; n++) {
      threads.add(Scenario.beside(() -> {
        for (int of = 0; of < 50 * clients.size(); of++) {
          taken.add(home.<Integer>getBlockingQueue("jobs").poll(20, TimeUnit.SECONDS));
        }
      }));
    }
    for (int index = 0; index < clients.size(); index++) {
      for (int n = 0; n < 100; n++) clients.get(index).getBlockingQueue("jobs").add(100 * index + n);
    }
    for (Thread thread : threads) thread.join();
    Scenario.equal(taken.stream().distinct().count(), 100L * clients.size());
  }

  static void orders(RedissonClient home, RedissonClient client) throws Exception {
    var late = client.<String>getBlockingQueue("late");
    client.getDelayedQueue(late).offer("late", 300, TimeUnit.MILLISECONDS);
    home.getDelayedQueue(home.getBlockingQueue("late"));
    Scenario.equal(home.<String>getBlockingQueue("late").poll(20, TimeUnit.SECONDS), "late");
    var urgent = client.<Integer>getPriorityQueue("urgent");
    urgent.addAll(List.of(3, 1, 2));
    Scenario.equal(List.of(urgent.poll(), urgent.poll(), urgent.poll()), List.of(1, 2, 3));
    var bounded = client.<String>getBoundedBlockingQueue("bounded");
    bounded.trySetCapacity(1);
    Scenario.equal(bounded.offer("a") && !bounded.offer("b"), true);
    Scenario.equal(home.getBoundedBlockingQueue("bounded").poll(), "a");
    var deque = client.<String>getDeque("deque");
    deque.addFirst("b");
    deque.addFirst("a");
    Scenario.equal(deque.pollLast() + deque.pollLast(), "ba");
    var list = client.<String>getList("list");
    list.addAll(List.of("a", "b", "c"));
    list.add(1, "x");
    Scenario.equal(list.remove(0) + list.get(0) + list.indexOf("c"), "ax2");
    list.delete();
    var ring = client.<Integer>getRingBuffer("ring");
    ring.trySetCapacity(2);
    ring.addAll(List.of(1, 2, 3));
    Scenario.equal(ring.readAll(), List.of(2, 3));
    ring.delete();
  }

  static void streams(RedissonClient home, RedissonClient client) {
    var stream = client.<String, String>getStream("events");
    stream.createGroup(StreamCreateGroupArgs.name("workers").makeStream());
    var id = stream.add(StreamAddArgs.entry("a", "1"));
    var read = home.<String, String>getStream("events")
        .readGroup("workers", "one", StreamReadGroupArgs.neverDelivered().count(5));
    Scenario.equal(read, Map.of(id, Map.of("a", "1")));
    Scenario.equal(stream.ack("workers", id), 1L);
    stream.delete();
  }

  static void executor(RedissonClient home, List<RedissonClient> clients) throws Exception {
    home.getExecutorService("{tasks}").registerWorkers(WorkerOptions.defaults().workers(2));
    for (RedissonClient client : clients) {
      var executor = client.getExecutorService("{tasks}");
      Scenario.equal(executor.submit(new Square(7)).get(20, TimeUnit.SECONDS), 49);
      Scenario.equal(executor.schedule(new Square(3), 200, TimeUnit.MILLISECONDS).get(20, TimeUnit.SECONDS), 9);
    }
  }
}
