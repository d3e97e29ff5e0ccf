// rueidis: a cache at the client that is told of changes, pipelines, a transaction, messages, scripts and streams.
//
// package: github.com/redis/rueidis
// tags: keys of one transaction have one hash tag

package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

var _ = program("rueidis_client", func() {
	client := must(rueidis.NewClient(must(rueidis.ParseURL(home()))))
	defer client.Close()
	rueidisCache(client)
	rueidisOthers(client)

	// Told of every key with a prefix, also of those that were not read.
	told := make(chan string, 100)
	options := must(rueidis.ParseURL(home()))
	options.ClientTrackingOptions = []string{"PREFIX", "b:", "BCAST"}
	options.OnInvalidations = func(keys []rueidis.RedisMessage) {
		for _, key := range keys {
			told <- must(key.ToString())
		}
	}
	all := must(rueidis.NewClient(options))
	defer all.Close()
	check(all.Do(ctx, all.B().Ping().Build()).Error())
	check(client.Do(ctx, client.B().Set().Key("b:1").Value("x").Build()).Error())
	equal(<-told, "b:1")
})

func rueidisCache(client rueidis.Client) {
	read := func(key string) (string, bool) {
		answer := client.DoCache(ctx, client.B().Get().Key(key).Cache(), time.Minute)
		return must(answer.ToString()), answer.IsCacheHit()
	}
	other := must(rueidis.NewClient(must(rueidis.ParseURL(home()))))
	defer other.Close()
	for _, value := range []string{"one", "two"} {
		check(other.Do(ctx, other.B().Set().Key("c:a").Value(value).Build()).Error())
		waitUntil("the cache has "+value, func() bool { found, _ := read("c:a"); return found == value })
		found, cached := read("c:a")
		equal([]any{found, cached}, []any{value, true})
	}
	check(other.Do(ctx, other.B().Hset().Key("c:h").FieldValue().FieldValue("f", "1").Build()).Error())
	both := rueidis.Commands{other.B().Set().Key("c:b").Value("3").Build(), other.B().Set().Key("c:d").Value("4").Build()}
	for _, answer := range client.DoMulti(ctx, both...) {
		check(answer.Error())
	}
	many := must(rueidis.MGetCache(client, ctx, time.Minute, []string{"c:a", "c:b", "c:d"}))
	d := many["c:d"]
	equal(must(d.ToString()), "4")
	fields := client.DoCache(ctx, client.B().Hgetall().Key("c:h").Cache(), time.Minute)
	equal(must(fields.AsStrMap()), map[string]string{"f": "1"})
	check(other.Do(ctx, other.B().Flushdb().Build()).Error())
	waitUntil("an emptied keyspace empties the cache", func() bool {
		answer := client.DoCache(ctx, client.B().Get().Key("c:d").Cache(), time.Minute)
		return rueidis.IsRedisNil(answer.Error())
	})
}

func rueidisOthers(client rueidis.Client) {
	check(client.Dedicated(func(one rueidis.DedicatedClient) error {
		check(one.Do(ctx, one.B().Watch().Key("{t}a").Build()).Error())
		answers := one.DoMulti(ctx,
			one.B().Multi().Build(),
			one.B().Incr().Key("{t}a").Build(),
			one.B().Zadd().Key("{t}z").ScoreMember().ScoreMember(1.5, "m").Build(),
			one.B().Exec().Build(),
		)
		numbers := must(answers[3].AsIntSlice())
		equal(numbers, []int64{1, 1})
		return nil
	}))
	script := rueidis.NewLuaScript("return {redis.call('INCR', KEYS[1]), ARGV[1]}")
	for range 2 {
		check(script.Exec(ctx, client, []string{"{t}a"}, []string{"x"}).Error())
	}
	equal(must(client.Do(ctx, client.B().Get().Key("{t}a").Build()).AsInt64()), int64(3))

	heard, ready := make(chan string), make(chan bool)
	end, stop := context.WithCancel(ctx)
	hooks := func(one rueidis.DedicatedClient) {
		one.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage:      func(message rueidis.PubSubMessage) { heard <- message.Message },
			OnSubscription: func(rueidis.PubSubSubscription) { ready <- true },
		})
		check(one.Do(end, one.B().Subscribe().Channel("news").Build()).Error())
	}
	one, release := client.Dedicate()
	go hooks(one)
	<-ready
	check(client.Do(ctx, client.B().Publish().Channel("news").Message("one").Build()).Error())
	equal(<-heard, "one")
	stop()
	release()

	check(client.Do(ctx, client.B().Xadd().Key("events").Id("*").FieldValue().FieldValue("n", "1").Build()).Error())
	entries := must(client.Do(ctx, client.B().Xread().Streams().Key("events").Id("0").Build()).AsXRead())
	equal(entries["events"][0].FieldValues, map[string]string{"n": "1"})
	waits := client.B().Blpop().Key("row").Timeout(5).Build()
	go client.Do(ctx, client.B().Rpush().Key("row").Element("job").Build())
	equal(must(client.Do(ctx, waits).AsStrSlice()), []string{"row", "job"})
}
