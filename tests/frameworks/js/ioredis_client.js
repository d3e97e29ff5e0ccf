// ioredis: pipelines, transactions, a defined script, scans, subscriptions, streams and automatic pipelining.
//
// package: ioredis

const { Redis } = require('ioredis')
const { home, equal, scenario, sleep } = require('./scenario.js')

scenario(async () => {
  const client = new Redis(home, { enableAutoPipelining: true })
  equal(await client.pipeline().set('a', 1).incr('a').exec(), [[null, 'OK'], [null, 2]])
  equal(await client.multi().set('b', 1).get('b').exec(), [[null, 'OK'], [null, '1']])
  client.defineCommand('addTo', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" })
  equal(await client.addTo('c', 5), 5)
  equal(await Promise.all([client.get('a'), client.get('b'), client.get('c')]), ['2', '1', '5'])
  const keys = []
  for await (const part of client.scanStream({ match: '?' })) keys.push(...part)
  equal(keys.sort(), ['a', 'b', 'c'])
  const listener = new Redis(home)
  await listener.psubscribe('news:*')
  const heard = new Promise((resolve) => listener.on('pmessage', (_, channel, text) => resolve([channel, text])))
  await client.publish('news:one', 'hello')
  equal(await heard, ['news:one', 'hello'])
  const reader = new Redis(home)
  const read = reader.xread('BLOCK', 10_000, 'STREAMS', 'log', '$')
  await sleep(300)
  await client.xadd('log', '*', 'field', 'value')
  equal((await read)[0][1][0][1], ['field', 'value'])
  equal((await client.info('server')).includes('redis_version'), true)
})
