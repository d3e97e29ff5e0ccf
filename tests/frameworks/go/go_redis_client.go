// go-redis: pipelines, transactions, messages, streams, scripts, functions, structs and scans.
//
// package: github.com/redis/go-redis/v9
// tags: keys of one transaction have one hash tag

package main

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

var _ = program("go_redis_client", func() {
	client := redis.NewClient(must(redis.ParseURL(home())))
	goRedisPipelines(client)
	goRedisMessages(client)
	goRedisStreams(client)
	goRedisScripts(client)
})

func goRedisPipelines(client *redis.Client) {
	pipe := client.Pipeline()
	for n := range 100 {
		pipe.Set(ctx, "p:"+string(rune('A'+n)), n, time.Minute)
	}
	pipe.Incr(ctx, "{p}count")
	pipe.LPush(ctx, "{p}count", 1)
	answers, err := pipe.Exec(ctx)
	equal(len(answers), 102)
	equal(err.Error()[:9], "WRONGTYPE")
	found := must(client.MGet(ctx, "p:A", "p:none", "p:C").Result())
	equal(found, []any{"0", nil, "2"})

	add := func(tx *redis.Tx) error {
		count := must(tx.Get(ctx, "{p}count").Int())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "{p}count", count+1, 0)
			pipe.ZAdd(ctx, "{p}board", redis.Z{Score: float64(count), Member: "ann"})
			return nil
		})
		return err
	}
	done := make(chan bool)
	for range 3 {
		go func() {
			for client.Watch(ctx, add, "{p}count") == redis.TxFailedErr {
			}
			done <- true
		}()
	}
	for range 3 {
		<-done
	}
	equal(must(client.Get(ctx, "{p}count").Int()), 4)
	equal(must(client.ZScore(ctx, "{p}board", "ann").Result()), 3.0)

	type user struct {
		Name string `redis:"name"`
		Age  int    `redis:"age"`
	}
	check(client.HSet(ctx, "user:1", user{"Ann", 44}).Err())
	var read user
	check(client.HGetAll(ctx, "user:1").Scan(&read))
	equal(read, user{"Ann", 44})
	var keys []string
	for scan := client.Scan(ctx, 0, "p:*", 7).Iterator(); scan.Next(ctx); {
		keys = append(keys, scan.Val())
	}
	slices.Sort(keys)
	equal(len(slices.Compact(keys)), 100)
	equal(client.BLPop(ctx, time.Second, "{p}list").Err(), redis.Nil)
}

func goRedisMessages(client *redis.Client) {
	subscription := client.PSubscribe(ctx, "news.*")
	must(subscription.Receive(ctx))
	check(subscription.Subscribe(ctx, "mail"))
	must(subscription.Receive(ctx))
	check(client.Publish(ctx, "news.a", "one").Err())
	check(client.Publish(ctx, "mail", "two").Err())
	messages := subscription.Channel()
	first, second := <-messages, <-messages
	equal([]string{first.Pattern, first.Channel, first.Payload}, []string{"news.*", "news.a", "one"})
	equal([]string{second.Channel, second.Payload}, []string{"mail", "two"})
	equal(must(client.PubSubNumSub(ctx, "mail").Result())["mail"], int64(1))
	check(subscription.Close())
}

func goRedisStreams(client *redis.Client) {
	check(client.XGroupCreateMkStream(ctx, "events", "workers", "0").Err())
	for n := range 3 {
		check(client.XAdd(ctx, &redis.XAddArgs{Stream: "events", MaxLen: 100, Approx: true, Values: []any{"n", n}}).Err())
	}
	read := &redis.XReadGroupArgs{Group: "workers", Consumer: "one", Streams: []string{"events", ">"}, Count: 2}
	taken := must(client.XReadGroup(ctx, read).Result())[0].Messages
	equal(taken[1].Values, map[string]any{"n": "1"})
	equal(must(client.XAck(ctx, "events", "workers", taken[0].ID).Result()), int64(1))
	pending := must(client.XPending(ctx, "events", "workers").Result())
	equal(pending.Consumers, map[string]int64{"one": 1})
	claim := &redis.XAutoClaimArgs{Stream: "events", Group: "workers", Consumer: "two", Start: "0"}
	claimed, _, err := client.XAutoClaim(ctx, claim).Result()
	check(err)
	equal(claimed[0].ID, taken[1].ID)
	info := must(client.XInfoGroups(ctx, "events").Result())[0]
	equal([]int64{info.Consumers, info.Pending, info.EntriesRead, info.Lag}, []int64{2, 1, 2, 1})
	go func() { check(client.XAdd(ctx, &redis.XAddArgs{Stream: "later", Values: []any{"n", 9}}).Err()) }()
	wait := &redis.XReadArgs{Streams: []string{"later", "0"}, Block: 5 * time.Second}
	equal(must(client.XRead(ctx, wait).Result())[0].Messages[0].Values, map[string]any{"n": "9"})
	equal(must(client.XLen(ctx, "events").Result()), int64(3))
}

func goRedisScripts(client *redis.Client) {
	script := redis.NewScript(`
		local value = redis.call('INCRBY', KEYS[1], ARGV[1])
		redis.call('HSET', KEYS[2], 'last', value)
		return {value, redis.call('HGETALL', KEYS[2]), tostring(value / 2)}`)
	for n := range 2 {
		answer := must(script.Run(ctx, client, []string{"{s}a", "{s}b"}, 5).Slice())
		equal(answer[0], int64(5*(n+1)))
	}
	_, err := redis.NewScript("return redis.call('INCR', KEYS[1], 1)").Run(ctx, client, []string{"{s}a"}).Result()
	equal(err != nil, true)
	library := "#!lua name=go\nredis.register_function('go_add', function(keys, args) " +
		"return redis.call('INCRBY', keys[1], args[1]) end)"
	equal(must(client.FunctionLoadReplace(ctx, library).Result()), "go")
	equal(must(client.FCall(ctx, "go_add", []string{"{s}a"}, 7).Int()), 17)
}
