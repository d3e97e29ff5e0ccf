// rate-limiter-flexible: points are spent once over all clients, also when all of them ask at once.
//
// package: rate-limiter-flexible
// home: yes

const { Redis } = require('ioredis')
const { RateLimiterRedis } = require('rate-limiter-flexible')
const { urls, equal, scenario } = require('./scenario.js')

scenario(async () => {
  const limiters = urls.map(
    (url) => new RateLimiterRedis({ storeClient: new Redis(url), keyPrefix: 'limit', points: 10, duration: 60 }),
  )
  const asked = Array.from({ length: 30 }, (_, index) => limiters[index % limiters.length].consume('who'))
  const answers = await Promise.allSettled(asked)
  for (const { status, reason } of answers) if (status === 'rejected' && reason instanceof Error) throw reason
  equal(answers.filter(({ status }) => status === 'fulfilled').length, 10)
  await limiters[0].delete('who')
  equal((await limiters[0].consume('who')).remainingPoints, 9)
  await limiters[0].block('who', 60)
  equal(await limiters.at(-1).consume('who').then(() => 'granted', () => 'blocked'), 'blocked')
})
