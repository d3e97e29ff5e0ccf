// redis_rate: a limit is one for all datacenters, and is reset.
//
// package: github.com/go-redis/redis_rate/v10
// home: yes

package main

import (
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

var _ = program("redis_rate_limit", func() {
	var limiters []*redis_rate.Limiter
	for _, url := range urls {
		limiters = append(limiters, redis_rate.NewLimiter(redis.NewClient(must(redis.ParseURL(url)))))
	}
	allowed := 0
	for n := range 12 {
		allowed += must(limiters[n%len(limiters)].Allow(ctx, "user", redis_rate.PerMinute(6))).Allowed
	}
	equal(allowed, 6)
	equal(must(limiters[0].AllowAtMost(ctx, "user", redis_rate.PerMinute(6), 3)).Allowed, 0)
	check(limiters[0].Reset(ctx, "user"))
	equal(must(limiters[0].AllowAtMost(ctx, "user", redis_rate.PerMinute(6), 9)).Allowed, 6)
})
