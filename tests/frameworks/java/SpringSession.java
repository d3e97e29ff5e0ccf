import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.session.data.redis.RedisIndexedSessionRepository;
import org.springframework.session.data.redis.config.ConfigureNotifyKeyspaceEventsAction;
import org.springframework.session.events.SessionDestroyedEvent;
import org.springframework.session.events.SessionCreatedEvent;
import org.springframework.session.events.SessionExpiredEvent;

/**
 * Spring Session: sessions that are found by their user, change their id, and end by events of their keys.
 *
 * package: org.springframework.session:spring-session-data-redis
 */
final class SpringSession {
  static final String USER = FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME;

  public static void main(String[] urls) {
    Scenario.scenario(() -> {
      URI url = URI.create(urls[0]);
      var factory = new LettuceConnectionFactory(new RedisStandaloneConfiguration(url.getHost(), url.getPort()));
      factory.start();
      var template = new RedisTemplate<String, Object>();
      template.setConnectionFactory(factory);
      template.setKeySerializer(RedisSerializer.string());
      template.setHashKeySerializer(RedisSerializer.string());
      template.afterPropertiesSet();
      var repository = new RedisIndexedSessionRepository(template);
      Map<String, Class<?>> events = new ConcurrentHashMap<>();
      repository.setApplicationEventPublisher(event -> {
        if (event instanceof SessionCreatedEvent created) events.put(created.getSessionId(), event.getClass());
        if (event instanceof SessionDestroyedEvent ended) events.put(ended.getSessionId(), event.getClass());
      });
      repository.afterPropertiesSet();
      new ConfigureNotifyKeyspaceEventsAction().configure(factory.getConnection());
      listen(factory, repository);
      sessions(repository, events);
    });
  }

  static void listen(LettuceConnectionFactory factory, RedisIndexedSessionRepository repository) {
    var container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.addMessageListener(repository, new ChannelTopic(repository.getSessionDeletedChannel()));
    container.addMessageListener(repository, new ChannelTopic(repository.getSessionExpiredChannel()));
    container.addMessageListener(repository, new PatternTopic(repository.getSessionCreatedChannelPrefix() + "*"));
    container.afterPropertiesSet();
    container.start();
  }

  static void sessions(RedisIndexedSessionRepository repository, Map<String, Class<?>> events) throws Exception {
    var first = repository.createSession();
    first.setAttribute(USER, "ann");
    first.setAttribute("cart", "3 books");
    repository.save(first);
    var second = repository.createSession();
    second.setAttribute(USER, "ann");
    repository.save(second);
    Scenario.waitUntil("both have been created", () -> events.size() == 2);
    Scenario.equal(repository.findByPrincipalName("ann").keySet(), java.util.Set.of(first.getId(), second.getId()));

    var read = repository.findById(first.getId());
    Scenario.equal(read.getAttribute("cart"), "3 books");
    read.removeAttribute("cart");
    String before = read.getId();
    read.changeSessionId();
    repository.save(read);
    Scenario.equal(repository.findById(before), null);
    Scenario.equal(repository.findById(read.getId()).getAttribute("cart"), null);

    repository.deleteById(second.getId());
    Scenario.equal(repository.findByPrincipalName("ann").keySet(), java.util.Set.of(read.getId()));
    read.setMaxInactiveInterval(Duration.ofSeconds(1));
    read.setLastAccessedTime(Instant.now());
    repository.save(read);
    Scenario.waitUntil("a session ends by its deadline", () -> {
      repository.cleanUpExpiredSessions();
      return events.get(read.getId()) == SessionExpiredEvent.class;
    });
    Scenario.equal(repository.findById(read.getId()), null);
    Scenario.equal(repository.findByPrincipalName("ann"), Map.of());
  }
}
