// redislock: a lock is held once, is refreshed and released by its holder alone.
//
// package: github.com/bsm/redislock
// home: yes

package main

import (
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

var _ = program("redislock_lock", func() {
	at := func(url string) *redislock.Client { return redislock.New(redis.NewClient(must(redis.ParseURL(url)))) }
	first, other := at(home()), at(last())
	held := must(first.Obtain(ctx, "lock:a", 20*time.Second, nil))
	_, err := other.Obtain(ctx, "lock:a", 20*time.Second, nil)
	equal(err, redislock.ErrNotObtained)
	check(held.Refresh(ctx, 30*time.Second, nil))
	equal(must(held.TTL(ctx)) > 20*time.Second, true)
	check(held.Release(ctx))
	equal(held.Release(ctx), redislock.ErrLockNotHeld)
	patient := &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)}
	again := must(other.Obtain(ctx, "lock:a", 300*time.Millisecond, patient))
	must(first.Obtain(ctx, "lock:a", 20*time.Second, patient))
	equal(again.Release(ctx), redislock.ErrLockNotHeld)
})
