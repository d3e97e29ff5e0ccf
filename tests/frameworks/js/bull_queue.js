// Bull: jobs, a retry, a delay and a pause.
//
// package: bull
// home: yes
// tags: `prefix` is a hash tag, because its scripts use several keys

const Bull = require('bull')
const { urls, home, at, equal, scenario } = require('./scenario.js')

scenario(async () => {
  const options = (url) => ({ prefix: '{bull}', redis: at(url), settings: { guardInterval: 500 } })
  const worker = new Bull('jobs', options(home))
  await worker.isReady()
  worker.process(2, async (job) => {
    if (job.data.flaky && job.attemptsMade === 0) throw new Error('once more')
    return job.data.one + job.data.other
  })
  for (const url of urls) {
    const queue = new Bull('jobs', options(url))
    await queue.isReady()
    const done = async (data, more) => (await queue.add(data, more)).finished()
    equal(await done({ one: 1, other: 2 }), 3)
    equal(await done({ one: 2, other: 2, flaky: true }, { attempts: 3, backoff: 50 }), 4)
    equal(await done({ one: 3, other: 2 }, { delay: 300 }), 5)
    await queue.pause()
    const waiting = await queue.add({ one: 3, other: 3 })
    await queue.resume()
    equal(await waiting.finished(), 6)
  }
})
