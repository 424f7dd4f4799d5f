import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { findProgram, platformPackage } from '../src/binary.ts'
import { Connection, LINE_LIMIT, type Handlers } from '../src/rpc.ts'
import { NoEngine, patient, Sidecar } from '../src/sidecar.ts'
import { config } from './support.ts'

function wire(handlers: Handlers = {}) {
  const sent: Record<string, unknown>[] = []
  const notices: [string, unknown][] = []
  const connection = new Connection(
    line => void sent.push(JSON.parse(line)),
    handlers,
    (method, params) => void notices.push([method, params]),
  )
  const feed = (message: unknown) => connection.feed(Buffer.from(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`))
  return { connection, sent, notices, feed }
}

test('an answer comes in any pieces, also inside a character', async () => {
  const { connection } = wire()
  const answer = connection.call('x', {})
  for (const byte of Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id: 1, result: 'grün' })}\n`)) connection.feed(Buffer.from([byte]))
  assert.equal(await answer, 'grün')
})

test('an error carries the engine’s code and hints', async () => {
  const { connection, feed } = wire()
  const answer = connection.call('x', {})
  feed({ id: 1, error: { code: -32000, message: 'no', data: { code: 'stale-plan', hints: ['look again'] } } })
  await assert.rejects(answer, { code: 'stale-plan', hints: ['look again'] })
})

test('garbage, huge lines and answers to nothing harm nobody', async () => {
  const { connection, feed, notices } = wire()
  const answer = connection.call('x', {})
  feed('{"id":1')
  feed('[]x')
  feed('7')
  feed({ id: 99, result: 1 })
  connection.feed(Buffer.alloc(LINE_LIMIT + 1, 0x61))
  connection.feed(Buffer.from('\n'))
  feed({ id: 1, result: 'fine' })
  assert.equal(await answer, 'fine')
  assert.equal(notices.length, 5)
  await assert.rejects(connection.call('big', 'x'.repeat(LINE_LIMIT)), { code: 'usage' })
})

test('the peer asks too: answers, errors with their code, unknown methods', async () => {
  const { sent, feed, notices } = wire({
    good: async params => ({ got: params }),
    bad: async () => {
      throw Object.assign(new Error('taken'), { code: 'SESSION_ALREADY_EXISTS' })
    },
  })
  feed({ id: 's1', method: 'good', params: 1 })
  feed({ id: 's2', method: 'bad' })
  feed({ id: 's3', method: 'toString' })
  feed({ method: 'notice', params: { text: 'hello' } })
  await new Promise(resolve => setImmediate(resolve))
  const byId = (id: string) => sent.find(message => message['id'] === id)
  assert.deepEqual(byId('s1')?.['result'], { got: 1 })
  assert.deepEqual((byId('s2')?.['error'] as { data: unknown }).data, { code: 'SESSION_ALREADY_EXISTS' })
  assert.equal((byId('s3')?.['error'] as { code: number }).code, -32601)
  assert.deepEqual(notices, [['notice', { text: 'hello' }]])
})

test('a peer that ends fails every open call and every later one', async () => {
  const { connection } = wire()
  const open = connection.call('x', {})
  connection.close('it died')
  await assert.rejects(open, { code: 'SIDECAR_GONE' })
  await assert.rejects(connection.call('y', {}), { code: 'SIDECAR_GONE' })
})

/** A process that answers hello and echoes the rest, and can be killed. */
function processes(answer: (message: { id: number; method: string }) => unknown = message => ({ id: message.id, result: message.method })) {
  const spawned: { argv: readonly string[]; env?: unknown; die: (code: number) => void; terminated: boolean }[] = []
  const spawn = (spec: { argv: readonly string[]; env?: unknown }) => {
    const stdout = new EventEmitter()
    let die: (code: number) => void = () => undefined
    const done = new Promise<{ exitCode: number; signal: null }>(resolve => (die = code => resolve({ exitCode: code, signal: null })))
    const child = { argv: spec.argv, env: spec.env, die, terminated: false }
    spawned.push(child)
    const stdin = Object.assign(new EventEmitter(), {
      write: (line: string) => {
        const reply = answer(JSON.parse(line))
        if (reply !== undefined) setImmediate(() => stdout.emit('data', Buffer.from(`${JSON.stringify(reply)}\n`)))
        return true
      },
      end: () => die(0),
    })
    return {
      pid: 1,
      stdin,
      stdout,
      collected: { stderr: { readFrom: () => ({ text: 'last words' }) } },
      done,
      terminate: () => void (child.terminated = true),
    }
  }
  return { spawned, spawn }
}

function sidecar(host: ReturnType<typeof processes>, find = async () => ({ path: '/bin/rwd' }) as Awaited<ReturnType<typeof findProgram>>) {
  const told: string[] = []
  const gone: number[] = []
  const clock = { now: 0 }
  const made = new Sidecar({
    subprocess: { spawn: host.spawn as never, resolveExecutable: async () => '' },
    config: config({ dataDir: '/points' }),
    log: { info: () => undefined, warn: message => void told.push(message) },
    find,
    handlers: {},
    restored: () => undefined,
    gone: () => void gone.push(1),
    now: () => clock.now,
  })
  return { made, told, gone, clock }
}

const tick = () => new Promise(resolve => setImmediate(resolve))

test('one process, started when it is needed, with the data directory; started again after it died', async () => {
  const host = processes()
  const { made, told, gone } = sidecar(host)
  assert.deepEqual(await Promise.all([made.call('list', {}), made.call('gc', {})]), ['list', 'gc'])
  assert.deepEqual(host.spawned.map(child => child.argv), [patient(['/bin/rwd', '--data-dir', '/points', 'sidecar'])])
  host.spawned[0]?.die(9)
  await tick()
  assert.equal(gone.length, 1)
  assert.match(told.join(), /exit 9.*last words/)
  assert.equal(await made.call('list', {}), 'list')
  assert.equal(host.spawned.length, 2)
})

test('a program that keeps dying is not started for ever; after a while it is tried again', async () => {
  const host = processes(message => (message.method === 'hello' ? { id: message.id, result: {} } : undefined))
  const { made, clock } = sidecar(host)
  for (let at = 0; at < 5; at++) {
    const call = made.call('x', {})
    const failed = assert.rejects(call, { code: 'SIDECAR_GONE' })
    await tick()
    await tick()
    host.spawned[at]?.die(1)
    await failed
  }
  await assert.rejects(made.call('x', {}), NoEngine)
  clock.now = 60_001
  const again = made.call('x', {})
  await tick()
  await tick()
  assert.equal(host.spawned.length, 6)
  host.spawned[5]?.die(1)
  await assert.rejects(again)
})

test('another protocol, and no program, are no engine: the reason is kept', async () => {
  const other = processes(message => ({ id: message.id, error: { code: -32000, message: 'protocol 9' } }))
  await assert.rejects(sidecar(other).made.call('x', {}), (error: NoEngine) => error.code === 'NO_ENGINE' && error.message.includes('protocol 9'))
  assert.ok(other.spawned[0]?.terminated)
  await assert.rejects(sidecar(processes(), async () => ({ missing: 'not installed' })).made.call('x', {}), /not installed/)
})

test('TL24 a program that comes late serves the first call after it came', async () => {
  const host = processes()
  let there = false
  const { made } = sidecar(host, async () => (there ? { path: '/bin/rwd' } : { missing: 'not installed' }))
  await assert.rejects(made.call('capture', {}), /not installed/)
  await assert.rejects(made.call('capture', {}), /not installed/)
  there = true
  assert.equal(await made.call('capture', {}), 'capture')
  assert.equal(host.spawned.length, 1)
})

test('TL06 TL12 the end is orderly: shutdown, then the end of input; nothing is started after it', async () => {
  const host = processes()
  const { made, told } = sidecar(host)
  await made.call('list', {})
  await made.end()
  assert.deepEqual(told, [])
  await assert.rejects(made.call('list', {}), NoEngine)
  assert.equal(host.spawned.length, 1)
})

test('the host’s first signal is not heard, and no argument is read by the shell', async () => {
  // The program signals itself: where the signal is heard it prints nothing.
  const itself = ['/bin/sh', '-c', 'kill -TERM $$; printf "%s|" "$@"', 'x', 'a b', '$HOME', '"; exit 1']
  const [program, ...args] = patient(itself, 'linux')
  const { stdout } = spawnSync(program ?? '', args, { encoding: 'utf8' })
  assert.equal(stdout, 'a b|$HOME|"; exit 1|')
  assert.equal(spawnSync(itself[0] ?? '', itself.slice(1), { encoding: 'utf8' }).stdout, '')
  assert.deepEqual(patient(['rwd.exe'], 'win32'), ['rwd.exe'])
})

test('design § 13 where the program is found: RWD_BIN, the PATH, the package of this platform', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'rwd-dsh-'))
  try {
    const program = join(dir, 'rwd')
    await writeFile(program, '')
    const none = { resolveExecutable: async () => Promise.reject(new Error('not on PATH')) }
    const nowhere = (): string => {
      throw new Error('no package')
    }
    assert.match(JSON.stringify(await findProgram(none, { RWD_BIN: program }, nowhere)), /cannot be run/)
    await chmod(program, 0o755)
    assert.deepEqual(await findProgram(none, { RWD_BIN: program }, nowhere), { path: program })
    assert.match(JSON.stringify(await findProgram(none, { RWD_BIN: 'rwd' }, nowhere)), /absolute path/)
    assert.deepEqual(await findProgram({ resolveExecutable: async name => `/usr/bin/${name}` }, {}, nowhere), { path: '/usr/bin/rwd' })
    assert.deepEqual(await findProgram(none, {}, name => (assert.ok(name.startsWith(platformPackage())), program)), { path: program })
    assert.match(JSON.stringify(await findProgram(none, {}, nowhere)), /missing.*RWD_BIN/)
  } finally {
    await rm(dir, { recursive: true })
  }
})
