// socket.io over two servers, with the adapters over publish-subscribe, sharded, and over streams.
//
// package: @socket.io/redis-adapter

const http = require('node:http')
const { createAdapter, createShardedAdapter } = require('@socket.io/redis-adapter')
const { createAdapter: createStreams } = require('@socket.io/redis-streams-adapter')
const { createClient } = require('redis')
const { Server } = require('socket.io')
const { io } = require('socket.io-client')
const { home, equal, scenario, waitUntil } = require('./scenario.js')

const connected = async () => {
  const client = createClient({ url: home })
  await client.connect()
  return client
}

const adapters = {
  plain: async () => createAdapter(await connected(), await connected()),
  sharded: async () => createShardedAdapter(await connected(), await connected()),
  streams: async () => createStreams(await connected()),
}

async function serve(kind) {
  const server = http.createServer()
  const sockets = new Server(server, { adapter: await adapters[kind]() })
  sockets.on('connection', (socket) => socket.join('room'))
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.on('listening', resolve))
  return { sockets, url: `http://127.0.0.1:${server.address().port}` }
}

scenario(async () => {
  for (const kind of Object.keys(adapters)) {
    const servers = [await serve(kind), await serve(kind)]
    const clients = servers.map(({ url }) => io(url, { transports: ['websocket'] }))
    const heard = clients.map((client) => new Promise((resolve) => client.on('news', resolve)))
    await waitUntil(async () => {
      const all = await servers[0].sockets.in('room').fetchSockets().catch(() => [])
      return all.length === 2
    }, `${kind}: both clients are in the room`)
    servers[0].sockets.to('room').emit('news', kind)
    equal(await Promise.all(heard), [kind, kind])
    clients.forEach((client) => client.close())
    servers.forEach(({ sockets }) => sockets.close())
  }
})
