// What all programs share: their servers, and how they wait.
//
// A program is called with one or several URLs. With several, they are the datacenters of one cluster; the keys of the
// program have their home in the first.

const { isDeepStrictEqual, inspect } = require('node:util')

const urls = process.argv.slice(2)
const home = urls[0]
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const at = (url) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) })

async function waitUntil(condition, what, timeout = 20_000) {
  const end = Date.now() + timeout
  for (;;) {
    const answer = await condition()
    if (answer) return answer
    if (Date.now() > end) throw new Error(`after ${timeout} ms still not: ${what}`)
    await sleep(50)
  }
}

function equal(found, expected) {
  if (!isDeepStrictEqual(found, expected)) throw new Error(`${inspect(found)} instead of ${inspect(expected)}`)
}

// Ends the process by what the scenario says; connections that are still open do not keep it.
function scenario(body) {
  body().then(
    () => process.exit(0),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
}

module.exports = { urls, home, at, sleep, waitUntil, equal, scenario }
