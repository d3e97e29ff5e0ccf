// node-redis: RESP3, transactions under WATCH, a script, client-side caching, scans and subscriptions.
//
// package: redis

const { createClient, defineScript } = require('redis')
const { home, equal, scenario, waitUntil } = require('./scenario.js')

scenario(async () => {
  const addTo = defineScript({
    NUMBER_OF_KEYS: 1,
    SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
    parseCommand: (parser, key, by) => (parser.pushKey(key), parser.push(String(by))),
    transformReply: (reply) => reply,
  })
  const cache = { ttl: 0, maxEntries: 100, evictPolicy: 'LRU' }
  const client = createClient({ url: home, RESP: 3, scripts: { addTo }, clientSideCache: cache })
  const other = createClient({ url: home })
  await Promise.all([client.connect(), other.connect()])
  equal(await client.addTo('n', 5), 5)
  equal(await client.multi().set('{m}a', '1').get('{m}a').exec(), ['OK', '1'])
  await client.hSet('h', { one: '1', two: '2' })
  equal({ ...(await client.hGetAll('h')) }, { one: '1', two: '2' })
  equal(await client.get('{m}a'), '1')
  await other.set('{m}a', '2')
  await waitUntil(async () => (await client.get('{m}a')) === '2', 'the cache is invalidated')
  const keys = []
  for await (const part of client.scanIterator({ MATCH: '*' })) keys.push(...part)
  equal(keys.sort(), ['h', 'n', '{m}a'])
  const listener = other.duplicate()
  await listener.connect()
  const heard = new Promise((resolve) => {
    listener.subscribe('news', resolve).then(() => client.publish('news', 'hello'))
  })
  equal(await heard, 'hello')
})
