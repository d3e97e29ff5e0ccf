// redlock: a lock is held once, extended, and released; workers of all datacenters take it in turn.
//
// package: redlock
// home: yes

const { Redis } = require('ioredis')
const { default: Redlock } = require('redlock')
const { urls, equal, scenario, sleep } = require('./scenario.js')

scenario(async () => {
  const at = (url, retryCount) => new Redlock([new Redis(url)], { retryCount, retryDelay: 50 })
  const first = at(urls[0], 0)
  const other = at(urls.at(-1), 0)
  let lock = await first.acquire(['job'], 10_000)
  equal(await other.acquire(['job'], 10_000).then(() => 'granted', () => 'refused'), 'refused')
  lock = await lock.extend(10_000)
  await lock.release()
  await (await other.acquire(['job'], 10_000)).release()
  let inside = 0
  let most = 0
  let done = 0
  const work = async (url) => {
    const locks = at(url, 400)
    for (let round = 0; round < 3; round += 1) {
      const held = await locks.acquire(['shared'], 20_000)
      inside += 1
      most = Math.max(most, inside)
      await sleep(10)
      inside -= 1
      done += 1
      await held.release()
    }
  }
  const workers = [...urls, ...urls]
  await Promise.all(workers.map(work))
  equal([most, done], [1, 3 * workers.length])
})
