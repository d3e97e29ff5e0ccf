// `produce URL FROM TO` sends jobs, `work URL FILE` does them until it is stopped.

const { appendFileSync } = require('node:fs')
const { Queue, Worker } = require('bullmq')

const [role, url, third, fourth] = process.argv.slice(2)
const connection = { host: new URL(url).hostname, port: Number(new URL(url).port), maxRetriesPerRequest: null }
const options = { prefix: '{bull}', connection }

async function produce(begin, end) {
  const queue = new Queue('jobs', options)
  queue.on('error', () => {})
  for (let number = begin; number < end; number += 1) {
    for (;;) {
      try {
        const jobId = `job-${number}`
        await queue.add('job', { number }, { jobId, removeOnFail: false, attempts: 5, backoff: 200 })
        break
      } catch (error) {
        console.log(`again: ${error.message}`.slice(0, 120))
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    }
  }
  process.exit(0)
}

if (role === 'produce') {
  produce(Number(third), Number(fourth))
} else {
  const stalled = { lockDuration: 5_000, stalledInterval: 5_000, maxStalledCount: 100 }
  const worker = new Worker('jobs', async (job) => appendFileSync(third, `${job.data.number}\n`), {
    ...options,
    ...stalled,
    concurrency: 2,
  })
  worker.on('error', (error) => console.log(`again: ${error.message}`.slice(0, 120)))
  process.on('SIGTERM', () => process.exit(0))
}
