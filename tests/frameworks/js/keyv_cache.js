// Keyv over @keyv/redis: values with and without a lifetime, several at once, iteration, clearing a namespace alone.
//
// package: @keyv/redis

const { default: KeyvRedis } = require('@keyv/redis')
const { default: Keyv } = require('keyv')
const { home, equal, scenario, sleep } = require('./scenario.js')

scenario(async () => {
  const one = new Keyv({ store: new KeyvRedis(home), namespace: 'one' })
  const other = new Keyv({ store: new KeyvRedis(home), namespace: 'other' })
  await other.set('kept', 1)
  await one.set('a', { deep: [1, 2] })
  await one.set('short', 1, 200)
  equal(await one.get('a'), { deep: [1, 2] })
  await sleep(400)
  equal(await one.get('short'), undefined)
  await one.setMany([{ key: 'b', value: 2 }, { key: 'c', value: 3 }])
  equal(await one.get(['b', 'c', 'none']), [2, 3, undefined])
  await one.clear()
  equal([await one.get('a'), await one.get('b'), await other.get('kept')], [undefined, undefined, 1])
})
