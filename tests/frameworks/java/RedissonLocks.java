import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson: locks of four kinds, semaphores, a latch, a rate limiter and atomic numbers, used by all datacenters.
 *
 * package: org.redisson:redisson
 * home: yes
 */
final class RedissonLocks {
  static RedissonClient connect(String url) {
    Config config = new Config();
    config.useSingleServer().setAddress(url).setConnectionMinimumIdleSize(2).setConnectionPoolSize(16);
    config.setThreads(4).setNettyThreads(4);
    return Redisson.create(config);
  }

  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      List<RedissonClient> clients = new ArrayList<>();
      for (String url : urls) clients.add(connect(url));
      if (urls.length == 1) clients.add(connect(urls[0]));
      RedissonClient first = clients.get(0), last = clients.get(clients.size() - 1);
      locks(first, last);
      crowd(clients);
      counted(first, last);
      limited(clients);
    });
  }

  static void locks(RedissonClient first, RedissonClient last) throws Exception {
    RLock held = first.getLock("lock:a"), other = last.getLock("lock:a");
    held.lock(20, TimeUnit.SECONDS);
    held.lock(20, TimeUnit.SECONDS);
    Scenario.equal(other.tryLock(), false);
    Scenario.equal(held.getHoldCount(), 2);
    held.unlock();
    Scenario.equal(other.isLocked(), true);
    Thread waiting = Scenario.beside(() -> {
      Scenario.equal(other.tryLock(15, 20, TimeUnit.SECONDS), true);
      other.unlock();
    });
    Thread.sleep(100);
    held.unlock();
    waiting.join();
    var files = first.getReadWriteLock("lock:files");
    var same = last.getReadWriteLock("lock:files");
    files.readLock().lock(20, TimeUnit.SECONDS);
    Scenario.equal(same.readLock().tryLock(), true);
    Scenario.equal(same.writeLock().tryLock(), false);
    files.readLock().unlock();
    same.readLock().unlock();
    Scenario.equal(same.writeLock().tryLock(), true);
    same.writeLock().unlock();
    long token = first.getFencedLock("lock:fenced").lockAndGetToken();
    first.getFencedLock("lock:fenced").unlock();
    Scenario.equal(last.getFencedLock("lock:fenced").lockAndGetToken(), token + 1);
    last.getFencedLock("lock:fenced").unlock();
    RLock spin = first.getSpinLock("lock:spin");
    spin.lock();
    Scenario.equal(last.getSpinLock("lock:spin").tryLock(), false);
    spin.unlock();
  }

  /** Read, and write later: without the lock some would be lost. */
  static void crowd(List<RedissonClient> clients) throws Exception {
    AtomicInteger inside = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (RedissonClient client : clients) {
      for (String name : List.of("lock:crowd", "lock:crowd")) {
        threads.add(Scenario.beside(() -> {
          for (int n = 0; n < 6; n++) {
            RLock lock = n % 2 == 0 ? client.getFairLock("fair:crowd") : client.getLock(name);
            lock.lock();
            if (n % 2 == 0) Scenario.equal(inside.incrementAndGet(), 1);
            if (n % 2 == 0) inside.decrementAndGet();
            lock.unlock();
          }
        }));
      }
    }
    for (Thread thread : threads) thread.join();
  }

  static void counted(RedissonClient first, RedissonClient last) throws Exception {
    var seats = first.getSemaphore("seats");
    seats.trySetPermits(2);
    seats.acquire();
    Scenario.equal(last.getSemaphore("seats").tryAcquire(), true);
    Scenario.equal(last.getSemaphore("seats").tryAcquire(), false);
    Thread waiting = Scenario.beside(() -> last.getSemaphore("seats").acquire());
    Thread.sleep(100);
    seats.release();
    waiting.join();
    var permits = first.getPermitExpirableSemaphore("permits");
    permits.trySetPermits(1);
    String id = permits.acquire(20, TimeUnit.SECONDS);
    Scenario.equal(last.getPermitExpirableSemaphore("permits").tryAcquire(), null);
    permits.release(id);
    Scenario.equal(last.getPermitExpirableSemaphore("permits").availablePermits(), 1);
    var latch = first.getCountDownLatch("latch");
    latch.trySetCount(2);
    Thread behind = Scenario.beside(() -> Scenario.equal(latch.await(15, TimeUnit.SECONDS), true));
    last.getCountDownLatch("latch").countDown();
    last.getCountDownLatch("latch").countDown();
    behind.join();
    Scenario.equal(first.getAtomicLong("number").incrementAndGet(), 1L);
    Scenario.equal(last.getAtomicLong("number").compareAndSet(1, 5), true);
    Scenario.equal(first.getAtomicLong("number").compareAndSet(1, 6), false);
  }

  static void limited(List<RedissonClient> clients) {
    clients.get(0).getRateLimiter("limit").trySetRate(RateType.OVERALL, 5, Duration.ofHours(1));
    int allowed = 0;
    for (int n = 0; n < 12; n++) {
      if (clients.get(n % clients.size()).getRateLimiter("limit").tryAcquire()) allowed++;
    }
    Scenario.equal(allowed, 5);
  }
}
