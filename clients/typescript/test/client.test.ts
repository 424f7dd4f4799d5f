/** The client against the real program. RWD_BIN names it. */

import assert from 'node:assert/strict'
import { mkdtempSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { Gone, Refused, RwdError, Sidecar, type Callback } from '../src/index.ts'

function world(t: TestContext): { root: string; start: (callbacks?: Record<string, Callback>) => Promise<Sidecar> } {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'rwd-client-')))
  t.after(() => rmSync(top, { recursive: true, force: true }))
  const root = join(top, 'work')
  mkdirSync(root)
  const start = async (callbacks: Record<string, Callback> = {}): Promise<Sidecar> => {
    const sidecar = await Sidecar.start({ dataDir: join(top, 'data'), env: { HOME: top }, callbacks })
    t.after(() => sidecar.close())
    return sidecar
  }
  return { root, start }
}

const refused = (code: string) => (error: unknown) => error instanceof RwdError && error.code === code

test('a turn is played and taken back', async t => {
  const { root, start } = world(t)
  const file = join(root, 'a')
  const asked: unknown[] = []
  const rwd = await start({
    'approval.ask': () => ({ decision: 'approved' }),
    'session.fork': ({ boundary, child }) => {
      asked.push([boundary, readFileSync(file, 'utf8')])
      return { child }
    },
  })
  assert.equal(rwd.welcome.protocol, 1)
  const session = await rwd.open('s1', { harness: 'x', root, log: 'client' })
  assert.equal(session.opened.registered, true)
  for (const turn of [1, 2]) {
    await session.beginTurn(turn, { position: { ordinal: 10 * turn } })
    await session.beforeTool('write', { callId: `c${turn}` })
    writeFileSync(file, `after ${turn}`)
    await session.endTurn(turn, { position: { ordinal: 10 * turn + 9 } })
  }
  const preview = await session.preview('t2^')
  assert.deepEqual(preview.overwrite, [{ path: 'a' }])
  const done = await session.restore('t2^', { plan: preview.plan })
  assert.equal(done.status, 'restored')
  assert.deepEqual(asked, [[19, 'after 1']])
  await session.undo({ confirmed: true })
  assert.equal(readFileSync(file, 'utf8'), 'after 2')
  assert.equal((await session.list()).operations.length, 2)
  assert.equal(await rwd.close(), 0)
  await assert.rejects(session.list(), Gone)
})

test('errors carry their code, and a request can be given up', async t => {
  const { root, start } = world(t)
  const abort = new AbortController()
  const rwd = await start({
    'session.fork': () => {
      throw new Refused('not here', 'SESSION_NOT_LIVE')
    },
    'approval.ask': () => {
      abort.abort()
      return new Promise(() => {})
    },
  })
  const session = await rwd.open('s1', { harness: 'x', root, log: 'client' })
  await assert.rejects(session.restore('t9', { confirmed: true }), refused('not-found'))
  await assert.rejects(session.call('list', { limt: 3 }), refused('usage'))
  await assert.rejects(rwd.call('nothing', {}), refused('unknown-method'))
  await session.beginTurn(1, { position: { ordinal: 10 } })
  writeFileSync(join(root, 'a'), 'one')
  await session.endTurn(1, { position: { ordinal: 19 } })
  await session.call('name.set', { label: 'here' })
  await assert.rejects(session.call('name.rewind', { label: 'here' }), refused('SESSION_NOT_LIVE'))
  const removal = { policy: { exact: true }, scope: 'files' } as const
  await assert.rejects(session.restore('t1^', removal, abort.signal), refused('interrupted'))
  assert.equal(readFileSync(join(root, 'a'), 'utf8'), 'one')
})

test('a sidecar that is killed fails what is open', async t => {
  const rwd = await world(t).start()
  await rwd.kill()
  await assert.rejects(rwd.call('doctor', { session: 's1' }), Gone)
})
