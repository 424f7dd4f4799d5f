import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'

import type { Found } from '../src/binary.ts'
import { Older, stores } from '../src/older.ts'
import { rewindPoints } from '../src/render.ts'
import { config, point } from './support.ts'

const HOME = '/home/u/.dsh'

interface Ending {
  readonly code: number | null
  readonly says: string
}

function stage(there: readonly string[], ends: (kind: string) => Ending | Promise<Ending>, raw: Record<string, unknown> = {}, found: Found = { path: '/bin/rwd' }) {
  const spawned: { argv: readonly string[]; env?: Record<string, string | undefined> }[] = []
  const told: string[] = []
  const older = new Older({
    config: config(raw),
    log: { info: (message: string) => void told.push(`info ${message}`), warn: (message: string) => void told.push(`warn ${message}`) },
    find: async () => found,
    home: HOME,
    exists: path => there.includes(path),
    patienceMs: 30,
    subprocess: {
      spawn: spec => {
        spawned.push(spec)
        const stdout = new EventEmitter()
        const kind = spec.argv[spec.argv.indexOf('--from') + 1] ?? ''
        const done = Promise.resolve(ends(kind)).then(({ code, says }) => {
          // In pieces, as a pipe may give it.
          for (const byte of Buffer.from(says)) stdout.emit('data', Buffer.from([byte]))
          return { exitCode: code, signal: null }
        })
        return { pid: 1, stdin: new PassThrough(), stdout: stdout as never, collected: {}, done, terminate: () => undefined }
      },
    },
  })
  return { older, spawned, told }
}

const nothing = { code: 6, says: '{}' }

test('TJ16 stores are looked for in their default places, or where the settings say', () => {
  const at = (...there: string[]) => (path: string) => there.includes(path)
  assert.deepEqual(stores(HOME, undefined, at()), [])
  assert.deepEqual(stores(HOME, undefined, at(`${HOME}/checkpoint`)), [{ kind: 'dsh-checkpoint' }])
  assert.deepEqual(stores(HOME, undefined, at(`${HOME}/storages`, `${HOME}/storages/checkpoint.json`)), [{ kind: 'dsh-checkpoint-rewind' }, { kind: 'tool-checkpoint' }])
  assert.deepEqual(stores(HOME, '/d', at('/d', '/d/checkpoint', `${HOME}/checkpoint`)), [
    { kind: 'dsh-checkpoint', path: '/d/checkpoint' },
    { kind: 'dsh-checkpoint' },
    { kind: 'dsh-checkpoint-rewind', path: '/d' },
  ])
})

test('TJ16 each store is read once for a workspace, and what came in is told in one line', async () => {
  const said: Record<string, Ending> = { 'dsh-checkpoint': { code: 0, says: JSON.stringify({ points: [{ new: true }, { new: true }, { new: false }], marks: [] }) } }
  const { older, spawned, told } = stage([`${HOME}/checkpoint`, `${HOME}/storages`], kind => said[kind] ?? nothing)
  older.begin('/shop')
  older.begin('/shop')
  await older.settled()
  assert.deepEqual(
    spawned.map(({ argv }) => argv.join(' ')),
    [
      '/bin/rwd -C /shop --json --no-input import --once --from dsh-checkpoint',
      '/bin/rwd -C /shop --json --no-input import --once --from dsh-checkpoint-rewind',
    ],
  )
  assert.equal(spawned[0]?.env?.['DSH_HOME'], HOME)
  assert.deepEqual(told, ['info rwd: from the store of dsh-checkpoint, which stays as it is: 2 points and 0 marks of /shop'])
})

test('TJ16 no store, no program: nothing is run and nothing said', async () => {
  const without = stage([], () => nothing)
  const unfound = stage([`${HOME}/checkpoint`], () => nothing, {}, { missing: 'no rwd' })
  for (const { older, spawned, told } of [without, unfound]) {
    older.begin('/shop')
    await older.settled()
    assert.deepEqual([spawned, told], [[], []])
  }
})

test('TJ16 a failure is told once and breaks nothing', async () => {
  const error = { code: 8, says: JSON.stringify({ error: { message: 'the index is damaged' } }) }
  const garbage = { code: 0, says: 'no JSON' }
  const partial = { code: 5, says: JSON.stringify({ points: [], marks: [{ new: true }], skipped: [{}, {}] }) }
  for (const [ending, line] of [
    [error, /^warn .*\/shop was not taken over: the index is damaged$/],
    [garbage, /^warn .*not taken over/],
    [partial, /^warn .*1 marks of \/shop; 2 records could not be taken over/],
  ] as const) {
    const { older, told } = stage([`${HOME}/checkpoint`], () => ending)
    older.begin('/shop')
    await older.settled()
    assert.equal(told.length, 1)
    assert.match(told[0] ?? '', line)
  }
})

test('TJ16 a list waits for a store that takes long, but not for ever', async () => {
  const { older } = stage([`${HOME}/checkpoint`], () => new Promise<Ending>(() => undefined))
  older.begin('/shop')
  await older.settled()
})

test('TJ16 records of 002 are listed beside new ones; ends of turns of 000 belong to /checkpoint', () => {
  const points = [point({ id: 'a' }), point({ id: 'b', kind: 'import', fromRewind: true }), point({ id: 'c', kind: 'import' }), point({ id: 'd', kind: 'turn-end' })]
  assert.deepEqual(rewindPoints(points).map(({ id }) => id), ['a', 'b'])
})
