// cache-manager with a store of Keyv: wrapped functions run once, also when called at once.
//
// package: cache-manager

const { createCache } = require('cache-manager')
const { default: KeyvRedis } = require('@keyv/redis')
const { default: Keyv } = require('keyv')
const { home, equal, scenario } = require('./scenario.js')

scenario(async () => {
  const cache = createCache({ stores: [new Keyv({ store: new KeyvRedis(home) })], ttl: 60_000 })
  let calls = 0
  const slow = async () => (calls += 1)
  equal(await Promise.all([cache.wrap('a', slow), cache.wrap('a', slow)]), [1, 1])
  equal(await cache.wrap('a', slow), 1)
  await cache.mset([{ key: 'b', value: 2 }, { key: 'c', value: 3 }])
  equal(await cache.mget(['b', 'c']), [2, 3])
  await cache.del('a')
  equal(await cache.wrap('a', slow), 2)
  await cache.clear()
  equal(await cache.get('b') ?? null, null)
})
