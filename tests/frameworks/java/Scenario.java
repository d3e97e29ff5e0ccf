import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;

/**
 * What all programs share: how they wait, and how they end.
 *
 * <p>A program is called with one or several URLs. With several, they are the datacenters of one cluster; the keys of
 * the program have their home in the first.
 */
final class Scenario {
  interface Body {
    void run() throws Exception;
  }

  /** Ends the process by what the program says; threads that a client keeps do not keep it. */
  static void scenario(Body body) {
    try {
      body.run();
      System.exit(0);
    } catch (Throwable failure) {
      failure.printStackTrace();
      System.exit(1);
    }
  }

  static void equal(Object found, Object expected) {
    if (!Objects.equals(found, expected)) throw new AssertionError(found + " instead of " + expected);
  }

  static void waitUntil(String what, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    while (!condition.call()) {
      if (System.nanoTime() > end) throw new AssertionError("after 20 s still not: " + what);
      Thread.sleep(50);
    }
  }

  /** Runs this beside the program, which fails with it. */
  static Thread beside(Body body) {
    Thread thread = new Thread(() -> {
      try {
        body.run();
      } catch (Throwable failure) {
        failure.printStackTrace();
        System.exit(1);
      }
    });
    thread.start();
    return thread;
  }
}
