// redigo: pipelines, transactions, messages, scripts and pops that wait.
//
// package: github.com/gomodule/redigo
// tags: keys of one transaction have one hash tag

package main

import (
	"time"

	"github.com/gomodule/redigo/redis"
)

var _ = program("redigo_client", func() {
	pool := &redis.Pool{MaxIdle: 3, Dial: func() (redis.Conn, error) { return redis.DialURL(home()) }}
	first, second := pool.Get(), pool.Get()
	defer first.Close()
	defer second.Close()

	check(first.Send("HSET", "user:1", "name", "Ann", "age", 44))
	check(first.Send("HGETALL", "user:1"))
	check(first.Flush())
	equal(must(redis.Int(first.Receive())), 2)
	var user struct {
		Name string `redis:"name"`
		Age  int    `redis:"age"`
	}
	check(redis.ScanStruct(must(redis.Values(first.Receive())), &user))
	equal(user.Age, 44)

	must(first.Do("WATCH", "{t}a"))
	must(second.Do("SET", "{t}a", 1))
	check(first.Send("MULTI"))
	check(first.Send("SET", "{t}a", 2))
	equal(must(first.Do("EXEC")), nil)
	check(first.Send("MULTI"))
	check(first.Send("INCR", "{t}a"))
	check(first.Send("ZADD", "{t}z", "1.5", "m"))
	check(first.Send("ZRANGE", "{t}z", 0, -1, "WITHSCORES"))
	equal(must(redis.Values(first.Do("EXEC"))), []any{int64(2), int64(1), []any{[]byte("m"), []byte("1.5")}})

	script := redis.NewScript(1, "return redis.call('INCRBY', KEYS[1], ARGV[1])")
	equal(must(redis.Int(script.Do(first, "{t}a", 3))), 5)
	equal(must(redis.Int(script.Do(second, "{t}a", 3))), 8)

	messages := redis.PubSubConn{Conn: pool.Get()}
	check(messages.Subscribe("news"))
	equal(messages.Receive().(redis.Subscription).Count, 1)
	must(first.Do("PUBLISH", "news", "one"))
	equal(string(messages.Receive().(redis.Message).Data), "one")
	check(messages.Ping("x"))
	equal(messages.Receive().(redis.Pong).Data, "x")
	check(messages.Unsubscribe())

	go func() {
		time.Sleep(100 * time.Millisecond)
		must(second.Do("RPUSH", "row", "job"))
	}()
	equal(must(redis.Strings(first.Do("BLPOP", "row", 5))), []string{"row", "job"})
})
