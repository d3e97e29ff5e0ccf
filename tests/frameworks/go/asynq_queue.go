// asynq: tasks with results, a retry, a delay, a unique task, a group, an archived task and a paused queue. Producers
// are in all datacenters.
//
// package: github.com/hibiken/asynq
// home: yes

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

var _ = program("asynq_queue", func() {
	server := asynq.NewServer(must(asynq.ParseRedisURI(home())), asynq.Config{
		Concurrency:              2,
		Queues:                   map[string]int{"mail": 2, "slow": 1},
		LogLevel:                 asynq.ErrorLevel,
		TaskCheckInterval:        50 * time.Millisecond,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 50 * time.Millisecond },
		GroupGracePeriod:         time.Second,
		GroupAggregator: asynq.GroupAggregatorFunc(func(group string, tasks []*asynq.Task) *asynq.Task {
			return asynq.NewTask("upper", fmt.Appendf(nil, "%s of %d", group, len(tasks)), asynq.TaskID("joined-"+group))
		}),
	})
	check(server.Start(asynq.HandlerFunc(asynqWork)))
	defer server.Shutdown()
	for index, url := range urls {
		asynqProduce(must(asynq.ParseRedisURI(url)), fmt.Sprint("dc", index+1))
	}
})

func asynqWork(ctx context.Context, task *asynq.Task) error {
	retried, _ := asynq.GetRetryCount(ctx)
	switch {
	case task.Type() == "flaky" && retried == 0:
		return errors.New("once more")
	case task.Type() == "broken":
		return asynq.SkipRetry
	}
	_, err := task.ResultWriter().Write(bytes.ToUpper(task.Payload()))
	return err
}

func asynqProduce(at asynq.RedisConnOpt, group string) {
	client, inspector := asynq.NewClient(at), asynq.NewInspector(at)
	defer client.Close()
	defer inspector.Close()
	send := func(name string, more ...asynq.Option) string {
		options := append([]asynq.Option{asynq.Queue("mail"), asynq.Retention(time.Minute), asynq.MaxRetry(3)}, more...)
		return must(client.Enqueue(asynq.NewTask(name, []byte(name)), options...)).ID
	}
	is := func(id string, state asynq.TaskState, result string) {
		waitUntil(id+" is "+state.String(), func() bool {
			info, err := inspector.GetTaskInfo("mail", id)
			return err == nil && info.State == state && string(info.Result) == result
		})
	}
	is(send("upper"), asynq.TaskStateCompleted, "UPPER")
	is(send("flaky"), asynq.TaskStateCompleted, "FLAKY")
	is(send("late", asynq.ProcessIn(time.Second)), asynq.TaskStateCompleted, "LATE")
	is(send("broken"), asynq.TaskStateArchived, "")
	once := send("once", asynq.ProcessIn(time.Hour), asynq.Unique(time.Hour))
	options := []asynq.Option{asynq.Queue("mail"), asynq.Unique(time.Hour)}
	_, err := client.Enqueue(asynq.NewTask("once", []byte("once")), options...)
	equal(errors.Is(err, asynq.ErrDuplicateTask), true)
	check(inspector.RunTask("mail", once))
	is(once, asynq.TaskStateCompleted, "ONCE")
	for range 3 {
		send("part", asynq.Group(group))
	}
	check(inspector.PauseQueue("slow"))
	waiting := must(client.Enqueue(asynq.NewTask("upper", nil), asynq.Queue("slow")))
	// The task of a group goes to the queue of its parts, without retention, so that it is seen by what it leaves.
	waitUntil("a group is joined", func() bool { return must(inspector.GetQueueInfo("mail")).Aggregating == 0 })
	equal(must(inspector.GetQueueInfo("slow")).Pending, 1)
	check(inspector.DeleteTask("slow", waiting.ID))
	check(inspector.UnpauseQueue("slow"))
}
