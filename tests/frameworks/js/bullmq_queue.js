// BullMQ: jobs, a retry, a delay, priorities, a flow and a repeated job. Producers are in all datacenters.
//
// package: bullmq
// home: yes
// tags: `prefix` is a hash tag, because its scripts use several keys

const { Queue, QueueEvents, Worker, FlowProducer } = require('bullmq')
const { urls, home, at, equal, scenario, waitUntil } = require('./scenario.js')

scenario(async () => {
  const prefix = '{bull}'
  const options = (url) => ({ prefix, connection: { ...at(url), maxRetriesPerRequest: null } })
  const events = new QueueEvents('jobs', options(home))
  await events.waitUntilReady()
  const work = async (job) => {
    if (job.name === 'flaky' && job.attemptsMade === 0) throw new Error('once more')
    if (job.name === 'parent') return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0)
    return job.data.one + job.data.other
  }
  const worker = new Worker('jobs', work, { ...options(home), concurrency: 2 })
  for (const url of urls) {
    const queue = new Queue('jobs', options(url))
    const done = async (name, data, more) => (await queue.add(name, data, more)).waitUntilFinished(events, 30_000)
    equal(await done('add', { one: 1, other: 2 }), 3)
    equal(await done('flaky', { one: 2, other: 2 }, { attempts: 3, backoff: 50 }), 4)
    equal(await done('add', { one: 3, other: 2 }, { delay: 300 }), 5)
    equal(await done('add', { one: 3, other: 3 }, { priority: 2 }), 6)
    const many = await queue.addBulk([1, 2, 3].map((n) => ({ name: 'add', data: { one: n, other: n } })))
    equal(await Promise.all(many.map((job) => job.waitUntilFinished(events, 30_000))), [2, 4, 6])
    const flow = new FlowProducer(options(url))
    const child = (one) => ({ name: 'add', queueName: 'jobs', data: { one, other: one } })
    const tree = await flow.add({ name: 'parent', queueName: 'jobs', children: [child(1), child(2)] })
    equal(await tree.job.waitUntilFinished(events, 30_000), 6)
    const template = { name: 'add', data: { one: 5, other: 5 } }
    await queue.upsertJobScheduler(`every-${url}`, { every: 300, limit: 2 }, template)
    await waitUntil(async () => (await queue.getCompleted()).some((job) => job.data.one === 5), 'a repeated job')
    await queue.removeJobScheduler(`every-${url}`)
    await queue.obliterate({ force: true })
  }
  await worker.close(true)
})
