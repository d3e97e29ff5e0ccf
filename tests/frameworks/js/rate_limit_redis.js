// express-rate-limit with rate-limit-redis: a limit is counted once over all servers.
//
// package: rate-limit-redis
// home: yes

const express = require('express')
const { rateLimit } = require('express-rate-limit')
const { RedisStore } = require('rate-limit-redis')
const { createClient } = require('redis')
const { urls, equal, scenario } = require('./scenario.js')

scenario(async () => {
  const servers = []
  for (const url of urls) {
    const client = createClient({ url })
    await client.connect()
    const store = new RedisStore({ sendCommand: (...words) => client.sendCommand(words), prefix: 'limit:' })
    const app = express()
    app.use(rateLimit({ windowMs: 60_000, limit: 5, store, validate: false }))
    app.get('/', (_, response) => response.send('here'))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.on('listening', resolve))
    servers.push(`http://127.0.0.1:${server.address().port}/`)
  }
  const codes = []
  for (let index = 0; index < 8; index += 1) codes.push((await fetch(servers[index % servers.length])).status)
  equal(codes, [200, 200, 200, 200, 200, 429, 429, 429])
})
