// redsync, over go-redis and over redigo: a lock is held once, is extended, and again after its release.
//
// package: github.com/go-redsync/redsync/v4
// home: yes

package main

import (
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
)

var _ = program("redsync_lock", func() {
	pool := &redigoclient.Pool{Dial: func() (redigoclient.Conn, error) { return redigoclient.DialURL(last()) }}
	first := redsync.New(goredis.NewPool(redis.NewClient(must(redis.ParseURL(home())))))
	other := redsync.New(redigo.NewPool(pool))
	options := []redsync.Option{redsync.WithExpiry(20 * time.Second), redsync.WithTries(1)}
	held, refused := first.NewMutex("lock:a", options...), other.NewMutex("lock:a", options...)
	check(held.Lock())
	equal(refused.TryLock() != nil, true)
	equal(must(held.Extend()), true)
	equal(must(held.Unlock()), true)
	check(refused.Lock())
	_, err := held.Extend()
	equal(err != nil, true)
	equal(must(refused.Unlock()), true)

	inside := make(chan bool, 1)
	done := make(chan int)
	work := func(locks *redsync.Redsync) {
		for range 10 {
			lock := locks.NewMutex("lock:b", redsync.WithTries(500), redsync.WithRetryDelay(20*time.Millisecond))
			check(lock.Lock())
			select {
			case inside <- true:
			default:
				panic("Error: a lock is held twice")
			}
			<-inside
			must(lock.Unlock())
		}
		done <- 10
	}
	go work(first)
	go work(other)
	equal(<-done+<-done, 20)
})
