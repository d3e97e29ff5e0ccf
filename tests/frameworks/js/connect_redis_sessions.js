// express-session with connect-redis: a session counts visits, is listed, and is destroyed.
//
// package: connect-redis

const express = require('express')
const session = require('express-session')
const { RedisStore } = require('connect-redis')
const { createClient } = require('redis')
const { home, equal, scenario } = require('./scenario.js')

scenario(async () => {
  const client = createClient({ url: home })
  await client.connect()
  const store = new RedisStore({ client })
  const app = express()
  app.use(session({ store, secret: 'test', resave: false, saveUninitialized: false }))
  app.get('/visit', (request, response) => {
    request.session.visits = (request.session.visits ?? 0) + 1
    response.send(String(request.session.visits))
  })
  app.get('/leave', (request, response) => request.session.destroy(() => response.send('bye')))
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.on('listening', resolve))
  const base = `http://127.0.0.1:${server.address().port}`
  const first = await fetch(`${base}/visit`)
  const cookie = first.headers.get('set-cookie').split(';')[0]
  const get = async (path) => (await fetch(base + path, { headers: { cookie } })).text()
  equal([await first.text(), await get('/visit'), await get('/visit')], ['1', '2', '3'])
  equal(await store.length(), 1)
  equal((await store.all()).map((one) => one.visits), [3])
  await get('/leave')
  equal(await store.length(), 0)
})
