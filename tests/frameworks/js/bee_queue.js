// Bee-Queue: jobs, a retry and a delay.
//
// package: bee-queue
// home: yes
// tags: `prefix` is a hash tag, because its scripts use several keys

const Bee = require('bee-queue')
const { urls, home, at, equal, scenario } = require('./scenario.js')

scenario(async () => {
  const options = (url) => ({ prefix: '{bee}', redis: at(url), activateDelayedJobs: true })
  const worker = new Bee('jobs', options(home))
  const failed = new Set()
  worker.process(2, async (job) => {
    if (job.data.flaky && !failed.has(job.id) && failed.add(job.id)) throw new Error('once more')
    return job.data.one + job.data.other
  })
  for (const url of urls) {
    const queue = new Bee('jobs', { ...options(url), isWorker: false })
    const result = (job) =>
      new Promise((resolve, reject) => {
        job.on('succeeded', resolve)
        job.on('failed', reject)
        job.save().catch(reject)
      })
    equal(await result(queue.createJob({ one: 1, other: 2 })), 3)
    equal(await result(queue.createJob({ one: 2, other: 2, flaky: true }).retries(2)), 4)
    equal(await result(queue.createJob({ one: 3, other: 2 }).delayUntil(Date.now() + 300)), 5)
  }
})
